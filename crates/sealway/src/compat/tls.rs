//! `xray tls`: certificates and what is told of them.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sealway_tls::reality::keys::{clamped, x25519_public};
use zeroize::Zeroizing;

use super::flags::{Flags, Takes, length};
use super::{ech, ping};
use super::{help, print, refused, with};
use crate::commands::keys::given_or_new;
use crate::commands::tls::certificate::{self, aligned, hashes};
use crate::commands::tls::make::{Made, Wanted};
use crate::exit::Exit;
use crate::problem::note;

/// How long a certificate holds unless something else is said.
const QUARTER: Duration = Duration::from_secs(90 * 24 * 3600);
/// A hello shows this name where none is given; it is the one that Xray takes.
const PUBLIC_NAME: &str = "cloudflare-ech.com";

pub(super) fn run(words: &[OsString]) -> ExitCode {
    let rest = words.get(1..).unwrap_or_default();
    match words.first().and_then(|word| word.to_str()) {
        Some("cert") => {
            const KNOWN: [(&str, Takes); 7] = [
                ("domain", Takes::Value),
                ("name", Takes::Value),
                ("org", Takes::Value),
                ("ca", Takes::Nothing),
                ("json", Takes::Nothing),
                ("file", Takes::Value),
                ("expire", Takes::Time),
            ];
            with("tls cert", &KNOWN, rest, |flags| match cert(flags) {
                Ok(text) => print(&text),
                Err(text) => refused(Exit::Internal, text),
            })
        }
        Some("hash") => with("tls hash", &[("cert", Takes::Value)], rest, |flags| told(hash(flags))),
        Some("ech") => {
            const KNOWN: [(&str, Takes); 3] = [
                ("serverName", Takes::Value),
                ("pem", Takes::Nothing),
                ("i", Takes::Value),
            ];
            with("tls ech", &KNOWN, rest, |flags| told(hello_keys(flags)))
        }
        Some("ping") => with("tls ping", &[("ip", Takes::Value)], rest, ping::run),
        Some(word) => {
            note(format_args!("xray tls {}: unknown command", word.escape_debug()));
            // Of older versions, and of V2Ray.
            if ["certChainHash", "leafCertHash"].contains(&word) {
                note(
                    "'xray tls hash' prints the hash of each certificate, and 'sealway tls hash' that of the chain as well.",
                );
            }
            refused(Exit::Usage, "Run 'xray help tls' for usage.")
        }
        None => refused(Exit::Usage, help::overview()),
    }
}

fn told(text: Result<Zeroizing<String>, String>) -> ExitCode {
    match text {
        Ok(text) => print(&text),
        Err(text) => print(&format!("{text}\n")),
    }
}

/// A certificate signed by itself.
fn cert(flags: &Flags) -> Result<Zeroizing<String>, String> {
    let name = |flag| flags.text(flag).unwrap_or_else(|| "Sealway".to_owned());
    let domains = flags.all(&["domain"]).map(|name| name.to_string_lossy().into_owned());
    let made = Made::new(Wanted {
        domains: domains.collect(),
        common_name: name("name"),
        organisation: name("org"),
        is_authority: flags.is("ca"),
        holds: flags.text("expire").and_then(|text| length(&text)).unwrap_or(QUARTER),
    })?;
    if let Some(path) = flags.text("file") {
        made.write(Path::new(&path))
            .map_err(|(path, error)| format!("{}: {error}", path.display()))?;
    }
    let printed = flags.last("json").is_none() || flags.is("json");
    Ok(if printed { made.json() } else { Zeroizing::default() })
}

/// The hashes of certificates, for pinning.
fn hash(flags: &Flags) -> Result<Zeroizing<String>, String> {
    let path = flags.text("cert").unwrap_or_else(|| "fullchain.pem".to_owned());
    let read = certificate::read(Path::new(&path)).map_err(|error| error.to_string());
    let chain = read.flatten().map_err(|what| format!("{path}: {what}"))?;
    Ok(Zeroizing::new(aligned(&hashes(&chain))))
}

/// Keys of an encrypted client hello, new ones or the list of those that are given.
fn hello_keys(flags: &Flags) -> Result<Zeroizing<String>, String> {
    let (keys, list) = match flags.text("i").filter(|text| !text.is_empty()).map(Zeroizing::new) {
        Some(text) => {
            let keys = STANDARD
                .decode(text.trim())
                .map(Zeroizing::new)
                .map_err(|_| "the keys are not base64")?;
            let list = ech::list_of(&keys)
                .ok_or("the keys are none of an encrypted client hello")?
                .to_vec();
            (keys, list)
        }
        None => {
            let name = flags.text("serverName").unwrap_or_else(|| PUBLIC_NAME.to_owned());
            let random = given_or_new::<32>("private key", None).map_err(|problem| problem.message().to_owned())?;
            let private = clamped(*random);
            let public = x25519_public(&private);
            let list = ech::list(&public, &name);
            let keys = ech::server_keys(&private, &public, &name);
            keys.zip(list).ok_or("the name has 1 to 255 bytes")?
        }
    };
    let keys = Zeroizing::new(STANDARD.encode(&*keys));
    let list = STANDARD.encode(list);
    Ok(Zeroizing::new(match flags.is("pem") {
        true => format!(
            "{}{}",
            pem("ECH CONFIGS", &list),
            *Zeroizing::new(pem("ECH KEYS", &keys))
        ),
        false => format!("ECH config list: \n{list}\nECH server keys: \n{}\n", *keys),
    }))
}

fn pem(title: &str, base64: &str) -> String {
    let lines = base64
        .as_bytes()
        .chunks(64)
        .map(|line| format!("{}\n", String::from_utf8_lossy(line)));
    format!(
        "-----BEGIN {title}-----\n{}-----END {title}-----\n",
        lines.collect::<String>()
    )
}
