//! Every key that is read does something, or says that it does not.

mod inbounds;
mod outbounds;
mod reality;
mod streams;
mod top;

use std::collections::BTreeSet;

use sealway_proxy::settings::*;
use sealway_v2ray::config::{File, Options, Problem, keys, load};
use sealway_v2ray::shadowsocks::{Key, KeyChain, Method};

/// What becomes of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Becomes {
    /// Another value makes another server, and nothing is said about it.
    Applied,
    /// It is named, with its place, as something that is not there or has no effect.
    Named,
    /// It is for whoever reads the file, or says what another key shows already.
    Read,
}
use Becomes::*;

/// Keys, and for each of them members without it (or with one value) and with it (or another).
type Rows = &'static [(&'static str, &'static str, &'static str, Becomes)];

/// The object, a configuration with `$` where its members go, and keys of it.
type Group = (&'static str, &'static str, Rows);

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
const OTHER_ID: &str = "450bae28-b9da-67d0-16bc-4918dc8d79b5";
const OUT: &str = r#""outbounds":[{"protocol":"freedom"}]"#;
const PEM: &str = r#"{"certificateFile":"c","keyFile":"k"}"#;
const HASH: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

const GROUPS: [&[Group]; 5] = [
    top::GROUPS,
    inbounds::GROUPS,
    outbounds::GROUPS,
    streams::GROUPS,
    reality::GROUPS,
];

/// Which passwords of the table are those of Shadowsocks: `Debug` hides the keys that they become.
fn passwords(settings: &Settings) -> Vec<&'static str> {
    let mut found = Vec::new();
    for password in ["p", "q"] {
        let inbounds = settings.inbounds.iter().any(|inbound| match &inbound.protocol {
            InboundProtocol::Shadowsocks(ShadowsocksIn {
                users: ShadowsocksUsers::Classic(users),
                ..
            }) => users
                .iter()
                .any(|user| Key::new(user.id.method(), password).is_ok_and(|key| key == user.id)),
            _ => false,
        });
        let outbounds = settings.outbounds.iter().any(|outbound| match &outbound.protocol {
            OutboundProtocol::Shadowsocks(out) => {
                KeyChain::new(Method::Aes128Gcm, password).is_ok_and(|keys| keys == out.keys)
            }
            _ => false,
        });
        if inbounds || outbounds {
            found.push(password);
        }
    }
    found
}

/// The first bytes of the keys of REALITY, which `Debug` hides too.
fn secrets(settings: &Settings) -> Vec<[u8; 4]> {
    let realities = settings
        .inbounds
        .iter()
        .filter_map(|inbound| inbound.transport.reality.as_ref());
    let secrets = realities.flat_map(|reality| [Some(&reality.private_key), reality.mldsa65_seed.as_ref()]);
    secrets
        .flatten()
        .map(|secret| *secret.0.first_chunk().unwrap())
        .collect()
}

/// What else `Debug` does not show of REALITY.
fn realities(settings: &Settings) -> String {
    let inbounds = settings
        .inbounds
        .iter()
        .filter_map(|one| one.transport.reality.as_ref());
    let inbounds = inbounds.map(|one| {
        let versions = (one.min_client_version, one.max_client_version, one.max_time_diff);
        let limits = (one.limit_upload, one.limit_download, &one.key_log);
        format!("{:?} {:?} {versions:?} {limits:?}", one.xver, one.short_ids)
    });
    let outbounds = settings
        .outbounds
        .iter()
        .filter_map(|one| one.transport.reality.as_ref());
    let outbounds = outbounds.map(|one| {
        let keys = (one.public_key, one.short_id, &one.mldsa65_verify);
        format!("{keys:?} {:?} {:?}", one.spider_x, one.key_log)
    });
    inbounds.chain(outbounds).collect()
}

/// What a configuration makes, or `None`, and what is said about it.
fn made(template: &str, members: &str) -> (Option<String>, Vec<Problem>) {
    let text = template.replace('$', members);
    let text = text
        .replace("PEM", PEM)
        .replace("SERVER", reality::SERVER)
        .replace("CLIENT", reality::CLIENT)
        .replace("VERIFY", &"A".repeat(1952 / 3 * 4 + 3))
        .replace("HASH", HASH)
        .replace("OTHER", OTHER_ID);
    let text = text.replace(r#""ID""#, &format!("\"{ID}\"")).replace("OUT", OUT);
    let file = File {
        name: "c.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let made = loaded.config.map(|config| {
        let settings = Settings::from_config(&config).unwrap_or_else(|error| panic!("{text}: {error}"));
        // The error log is the caller's.
        format!(
            "{settings:?} {:?} {:?} {:?} {:?}",
            config.log,
            passwords(&settings),
            secrets(&settings),
            realities(&settings)
        )
    });
    (made, loaded.problems)
}

/// Whether a problem is about the key: it stands in its path, or in what is said of the object around it.
fn is_about(problem: &Problem, object: &str, key: &str) -> bool {
    let within = match object {
        "outbounds[].mux" => "mux",
        "tlsSettings.certificates[]" if key == "usage" => "certificates",
        _ => key,
    };
    let named = problem.path.contains(within) || problem.text.contains(&format!("`{within}`"));
    named && problem.file == "c.json" && problem.line == 1 && problem.column > 1 && !problem.hint.is_empty()
}

#[test]
fn no_key_is_left_out_in_silence() {
    let (mut declared, mut wrong) = (BTreeSet::new(), Vec::new());
    for (object, template, rows) in GROUPS.into_iter().flatten() {
        for (key, without, with, becomes) in *rows {
            declared.insert((*object, *key));
            let ((before, told_before), (after, told)) = (made(template, without), made(template, with));
            let Some(before) = before else {
                wrong.push(format!("{object}, {key}: {told_before:?}"));
                continue;
            };
            let new: Vec<_> = told.iter().filter(|p| is_about(p, object, key)).collect();
            let is_named = !new.is_empty() && !told_before.iter().any(|p| is_about(p, object, key));
            let is_applied = after.as_ref().is_some_and(|after| *after != before);
            let found = match (is_named, is_applied) {
                (true, _) => Named,
                (false, true) => Applied,
                (false, false) => Read,
            };
            if found != *becomes || !(*becomes == Named || after.is_some()) {
                wrong.push(format!("{object}, {key}: {found:?}, {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let all: BTreeSet<_> = keys().into_iter().collect();
    let missing: Vec<_> = all.difference(&declared).collect();
    assert!(missing.is_empty(), "nothing is declared about {missing:?}");
    let gone: Vec<_> = declared.difference(&all).collect();
    assert!(gone.is_empty(), "{gone:?} is not read any more");
}
