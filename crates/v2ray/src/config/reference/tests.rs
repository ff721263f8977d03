use super::*;
use crate::config::context::Cx;
use crate::config::schema::{Loses, Other};
use crate::config::table::Decode;
use crate::json::read;

/// The page that is kept in step with the tables.
fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md")
}

#[test]
fn the_reference_page_is_up_to_date() {
    let wanted = reference();
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(page().parent().unwrap()).unwrap();
        std::fs::write(page(), &wanted).unwrap();
    }
    let found = std::fs::read_to_string(page()).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/reference/config.md is out of date; SEALWAY_UPDATE_GOLDEN=1 cargo test -p sealway-v2ray reference writes it anew"
    );
}

#[test]
fn no_two_keys_of_an_object_have_the_same_name() {
    for object in objects() {
        let mut names: Vec<String> = Vec::new();
        for key in object.keys {
            names.push(key.name.to_lowercase());
            names.extend(key.aliases.iter().map(|alias| alias.to_lowercase()));
        }
        names.extend(object.others.iter().map(|other| other.name.to_lowercase()));
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{}", object.title);
    }
}

#[test]
fn every_key_has_a_meaning_and_every_default_is_json() {
    assert!(objects().len() > 30);
    for object in objects() {
        assert!(!object.about.is_empty(), "{}", object.title);
        for Key {
            name,
            meaning,
            presence,
            ..
        } in object.keys
        {
            assert!(
                meaning.first().is_some_and(|line| !line.trim().is_empty()),
                "{}.{name}",
                object.title
            );
            if let Presence::Default(json) = presence {
                assert!(read(json.as_bytes(), 0).is_ok(), "{}.{name}", object.title);
            }
        }
    }
}

#[test]
fn an_empty_object_has_all_defaults_without_a_problem() {
    macro_rules! check {
        ($($Type:ty),*) => {$(
            let mut cx = Cx::new(Settings::TABLE, &["f"], true, &|_| None);
            let value = read(b"{}", 0).unwrap().value;
            assert!(<$Type>::decode(value, &mut cx).is_some(), stringify!($Type));
            assert_eq!(cx.finish(), []);
        )*};
    }
    check!(
        crate::config::Log,
        crate::config::LevelPolicy,
        crate::config::Policy,
        crate::config::SystemPolicy,
        crate::config::dns::DnsSettings,
        crate::config::Routing,
        crate::config::Sockopt,
        crate::config::Stream,
        crate::config::Tls,
        crate::config::Sniffing,
        crate::config::Mux,
        crate::config::FreedomSettings,
        crate::config::DokodemoSettings,
        crate::config::SocksSettings,
        crate::config::HttpSettings
    );
}

/// Everything that is known and not read, of every table and every list of words: where it stands, and it.
fn others() -> Vec<(String, &'static Other)> {
    fn words(title: &str, kind: Kind, all: &mut Vec<(String, &'static Other)>) {
        match kind {
            Kind::Words(_, others) => all.extend(others.iter().map(|other| (title.to_owned(), other))),
            Kind::List(kind) | Kind::Map(kind) => words(title, *kind, all),
            Kind::Text(_) | Kind::Object(_) | Kind::ByProtocol(_) => {}
        }
    }
    let mut all = Vec::new();
    for object in objects() {
        all.extend(object.others.iter().map(|other| (object.title.to_owned(), other)));
        for key in object.keys {
            words(&format!("{}.{}", object.title, key.name), (key.kind)(), &mut all);
        }
    }
    all
}

/// Words that tell a user to do without.
const WITHOUT: [&str; 8] = [
    "take it out",
    "take them out",
    "remove",
    "delete",
    "leave",
    "without",
    "empty",
    "noauth",
];

#[test]
fn no_hint_leads_to_less_protection() {
    let all = others();
    assert!(all.len() > 100, "{}", all.len());
    let class = |title: &str, name: &str| {
        let found = all.iter().find(|(place, other)| place == title && other.name == name);
        found.unwrap_or_else(|| panic!("{title}.{name}")).1.why.loses()
    };
    // Those that are known to protect are said to.
    for (title, name) in [
        ("streamSettings.finalmask", "settings"),
        ("streamSettings.network", "kcp"),
        ("streamSettings.sockopt", "customSockopt"),
        ("streamSettings.tlsSettings", "echConfigList"),
        ("streamSettings.tlsSettings", "echForceQuery"),
        ("streamSettings.tlsSettings.curvePreferences", "SecP384r1MLKEM1024"),
        ("freedom settings", "ipsBlocked"),
    ] {
        assert_eq!(class(title, name), Some(Loses::Protection), "{title}.{name}");
    }
    // Those that are not are none whose name or text speaks of protection.
    let protects = [
        "reality", "ech", "pinned", "vision", "flow", "encrypt", "tls", "secur", "proxy", "guard", "block", "verify",
        "auth", "hide", "cert",
    ];
    let known = ["overrideAccessLogDest", "blockDelay", "issue"];
    for (title, other) in &all {
        let hint = match (other.why.loses(), other.why) {
            (Some(Loses::Protection), _) => Loses::Protection.hint(),
            (Some(_), _) => {
                let text = format!("{} {}", other.name, other.text).to_lowercase();
                let found = protects.iter().find(|word| {
                    text.split(|c: char| !c.is_alphanumeric())
                        .any(|w| w.starts_with(**word))
                });
                assert!(
                    found.is_none() || known.contains(&other.name),
                    "{title}.{}: {found:?}",
                    other.name
                );
                continue;
            }
            (None, Why::Gone) => other.text,
            (None, _) => continue,
        };
        let moved = other.text.contains("remove it: on an inbound the key is");
        let found = WITHOUT.iter().find(|word| hint.contains(**word));
        assert!(found.is_none() || moved, "{title}.{}: {hint}", other.name);
    }
}

#[test]
fn no_hint_about_a_key_that_protects_leads_to_less_protection() {
    use crate::config::{File, Options, load};
    let id = "b831381d-6324-4d53-ad4f-8cda48b30811";
    let out = |stream: &str, user: &str| {
        format!(
            r#"{{"inbounds": [{{"listen": "::1", "port": 1, "protocol": "socks", "settings": {{"auth": "password"}}}}, {{"listen": "::1", "port": 2,
            "protocol": "http", "streamSettings": {{"security": "tls", "tlsSettings": {{
            "certificates": [{{"certificateFile": "c", "keyFile": "k"}}], "pinnedPeerCertSha256": "{0}{0}",
            "disableSystemRoot": true, "verifyPeerCertByName": "a"}}}}}}],
            "outbounds": [{{"protocol": "vless", "settings": {{"address": "a", "port": 1, "id": "{id}"{user}}},
            "streamSettings": {{{stream}}}}}]}}"#,
            "00".repeat(16)
        )
    };
    let none = r#", "encryption": "none""#;
    for text in [
        out(r#""security": "reality", "realitySettings": {"publicKey": "k"}"#, none),
        out(r#""security": "tls", "sockopt": {"dialerProxy": "up"}"#, none),
        out(
            r#""security": "tls", "tlsSettings": {"echConfigList": "x", "verifyClientCertificate": true, "rejectUnknownSni": true}"#,
            none,
        ),
        out(
            r#""security": "tls", "tlsSettings": {"pinnedPeerCertSha": "x", "fingerprint": "chrome"}"#,
            none,
        ),
        out(
            r#""security": "tls""#,
            r#", "encryption": "none", "flow": "xtls-rprx-vision""#,
        ),
        out(
            r#""security": "tls""#,
            r#", "encryption": "none", "flow": "xtls-rprx-direct""#,
        ),
        out(
            r#""security": "tls""#,
            r#", "encryption": "mlkem768x25519plus.native.1rtt.k""#,
        ),
        out(r#""security": "tls""#, r#", "encryption": "mlkem1024.native""#),
        out(r#""security": "xtls""#, none),
        out(r#""network": "quic", "security": "tls""#, none),
    ] {
        let file = File {
            name: "c.json",
            text: text.as_bytes(),
        };
        let loaded = load(&[file], &Options::default());
        assert!(!loaded.problems.is_empty(), "{text}");
        for problem in &loaded.problems {
            let found = WITHOUT.iter().find(|word| problem.hint.contains(**word));
            let hides_nothing = problem.hint.contains("hides nothing without TLS");
            assert!(found.is_none() || hides_nothing, "{problem}");
        }
    }
}

#[test]
fn an_empty_string_is_no_key_where_there_is_no_default() {
    macro_rules! check {
        ($($Type:ty),*) => {$(
            for key in <$Type>::TABLE.keys.iter().filter(|key| key.presence == Presence::Optional) {
                let mut cx = Cx::new(Settings::TABLE, &["f"], true, &|_| None);
                let text = format!(r#"{{"{}": ""}}"#, key.name);
                let value = read(text.as_bytes(), 0).unwrap().value;
                assert!(<$Type>::decode(value, &mut cx).is_some(), "{} {}", stringify!($Type), key.name);
                assert_eq!(cx.finish(), []);
            }
        )*};
    }
    check!(
        crate::config::Log,
        crate::config::dns::DnsSettings,
        crate::config::Policy,
        crate::config::Sockopt,
        crate::config::FreedomSettings,
        crate::config::DokodemoSettings,
        crate::config::SocksSettings,
        crate::config::HttpSettings,
        crate::config::Sniffing
    );
}
