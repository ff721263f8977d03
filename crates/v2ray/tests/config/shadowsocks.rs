use sealway_v2ray::config::*;
use sealway_v2ray::shadowsocks::{Key, KeyChain, Method};

use super::*;

const K16: &str = "AAECAwQFBgcICQoLDA0ODw==";
const K32: &str = "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8=";
const OTHER: &str = "ICEiIyQlJicoKSorLC0uLw==";

fn settings(settings: &str) -> String {
    inbound(&format!(
        r#"{{"port":1,"protocol":"shadowsocks","settings":{settings}}}"#
    ))
}

fn read_good(text: &str) -> ShadowsocksInbound {
    let InboundProtocol::Shadowsocks(shadowsocks) = good(&settings(text)).inbounds.remove(0).protocol else {
        panic!()
    };
    shadowsocks
}

#[test]
fn one_user() {
    let one = read_good(r#"{"method":"AES-256-GCM","password":"p","email":"A@b","level":3}"#);
    let ShadowsocksUsers::Classic(users) = &one.users else {
        panic!()
    };
    assert_eq!(users[0].id, Key::new(Method::Aes256Gcm, "p").unwrap());
    assert_eq!((users[0].email.as_str(), users[0].level, users.len()), ("A@b", 3, 1));
    // The cores take streams only, unless more is asked for, but for the methods of 2022.
    assert_eq!((one.networks.tcp, one.networks.udp, one.once), (true, false, true));
    let both = read_good(r#"{"method":"chacha20-poly1305","password":"p","network":"tcp,udp","ivCheck":false}"#);
    assert_eq!((both.networks.tcp, both.networks.udp, both.once), (true, true, false));
    let modern = read_good(&format!(
        r#"{{"method":"2022-blake3-chacha20-poly1305","password":"{K32}"}}"#
    ));
    assert!(matches!(&modern.users, ShadowsocksUsers::One(user) if user.id.method().is_2022()));
    assert_eq!((modern.networks.tcp, modern.networks.udp), (true, true));
    let only = read_good(&format!(
        r#"{{"method":"2022-blake3-aes-256-gcm","password":"{K32}","network":"udp"}}"#
    ));
    assert_eq!((only.networks.tcp, only.networks.udp), (false, true));
}

/// Panels begin with it, and Xray takes it.
#[test]
fn an_empty_list_is_nobody() {
    for text in [
        r#"{"clients":[],"network":"tcp,udp"}"#,
        r#"{"method":"aes-128-gcm","users":[]}"#,
    ] {
        assert_eq!(read_good(text).users, ShadowsocksUsers::Classic(Vec::new()), "{text}");
    }
    // Nor does the inbound's password let anybody in.
    let loaded = read(&settings(r#"{"method":"aes-128-gcm","password":"p","clients":[]}"#));
    assert!(
        told(&loaded)[0].contains("settings.password: beside `clients` it does nothing"),
        "{:?}",
        told(&loaded)
    );
    let InboundProtocol::Shadowsocks(nobody) = loaded.config.unwrap().inbounds.remove(0).protocol else {
        panic!()
    };
    assert_eq!(nobody.users, ShadowsocksUsers::Classic(Vec::new()));
    // With a method of 2022 it is the one user's.
    let text = format!(r#"{{"method":"2022-blake3-aes-128-gcm","password":"{K16}","clients":[]}}"#);
    assert!(matches!(read_good(&text).users, ShadowsocksUsers::One(_)));
}

#[test]
fn several_users() {
    let several = read_good(
        r#"{"method":"aes-128-gcm","users":[{"password":"a","email":"a"},
            {"password":"b","method":"xchacha20-poly1305","level":1}]}"#,
    );
    let ShadowsocksUsers::Classic(users) = &several.users else {
        panic!()
    };
    assert_eq!(users[0].id, Key::new(Method::Aes128Gcm, "a").unwrap());
    assert_eq!(users[1].id, Key::new(Method::XChaCha20Poly1305, "b").unwrap());
    let modern = read_good(&format!(
        r#"{{"method":"2022-blake3-aes-128-gcm","password":"{K16}","clients":[{{"password":"{OTHER}","email":"a"}}]}}"#
    ));
    let ShadowsocksUsers::Many(key, users) = &modern.users else {
        panic!()
    };
    assert_eq!(*key, Key::new(Method::Blake3Aes128Gcm, K16).unwrap());
    assert_eq!(users[0].id, Key::new(Method::Blake3Aes128Gcm, OTHER).unwrap());
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let modern = |rest: &str| format!(r#"{{"method":"2022-blake3-aes-128-gcm","password":"{K16}",{rest}}}"#);
    for (text, wanted) in [
        (r#"{"password":"p"}"#.to_owned(), "settings: `method` is missing"),
        (
            r#"{"method":"aes-128-gcm"}"#.to_owned(),
            "settings: `password` is missing",
        ),
        (
            r#"{"method":"aes-128-gcm","password":""}"#.to_owned(),
            "settings: `password` is missing",
        ),
        (
            r#"{"method":"none","password":"p"}"#.to_owned(),
            "settings.method: \"none\" is obsolete (it encrypts nothing: write 2022-blake3-aes-256-gcm",
        ),
        (
            r#"{"method":"plain","password":"p"}"#.to_owned(),
            "settings.method: \"plain\" is obsolete (it encrypts nothing",
        ),
        (
            r#"{"method":"aes-256-cfb","password":"p"}"#.to_owned(),
            "settings.method: \"aes-256-cfb\" is obsolete (whoever is in between",
        ),
        (
            r#"{"method":"2022-blake3-aes-256-gcm","password":"secret"}"#.to_owned(),
            "settings.password: a password of Shadowsocks 2022 is a key in base64",
        ),
        (
            format!(r#"{{"method":"2022-blake3-aes-256-gcm","password":"{K16}"}}"#),
            "settings.password: 2022-blake3-aes-256-gcm takes a key of 32 bytes in base64, not of 16; `openssl rand -base64 32`",
        ),
        (
            modern(&format!(r#""clients":[{{"password":"{K32}"}}]"#)),
            "settings.clients[0].password: 2022-blake3-aes-128-gcm takes a key of 16 bytes in base64, not of 32",
        ),
        (
            modern(&format!(
                r#""clients":[{{"password":"{OTHER}"}},{{"password":"{OTHER}"}}]"#
            )),
            "settings.clients[1].password: the user on line 1 has the same password",
        ),
        (
            modern(&format!(
                r#""clients":[{{"password":"{OTHER}","method":"aes-128-gcm"}}]"#
            )),
            "settings.clients[0].method: the inbound's method is 2022-blake3-aes-128-gcm",
        ),
        (
            modern(&format!(
                r#""clients":[{{"password":"{OTHER}","address":"a.b","port":1}}]"#
            )),
            "settings.clients[0].address: not supported yet: relaying a user to another Shadowsocks server",
        ),
        (
            format!(
                r#"{{"method":"2022-blake3-chacha20-poly1305","password":"{K32}","clients":[{{"password":"{K32}"}}]}}"#
            ),
            "settings: 2022-blake3-chacha20-poly1305 has one key, and no users beside it",
        ),
        (
            r#"{"method":"aes-128-gcm","clients":[{"password":"a","method":"2022-blake3-aes-128-gcm"}]}"#.to_owned(),
            "settings.clients[0].method: a method of 2022 belongs to the inbound",
        ),
        (
            r#"{"clients":[{"password":"a"}]}"#.to_owned(),
            "settings.clients[0]: `method` is missing",
        ),
        (
            r#"{"method":"aes-128-gcm","password":"p","network":"sctp"}"#.to_owned(),
            "settings.network: \"sctp\" is no network",
        ),
        (
            r#"{"method":"aes-128-gcm","password":"p","plugin":"v2ray-plugin"}"#.to_owned(),
            "settings.plugin: not supported yet: plugins of Shadowsocks (SIP003)",
        ),
    ] {
        let told = bad(&settings(&text));
        assert!(told[0].contains(&format!("inbounds[0].{wanted}")), "{text}: {told:?}");
    }
}

#[test]
fn an_outbound() {
    let flat = r#"{"address":"a.b","port":8388,"method":"aes-128-gcm","password":"p w","email":"e"}"#;
    let nested = format!(r#"{{"servers":[{flat}]}}"#);
    for settings in [flat, &nested] {
        let text = outbound(&format!(r#"{{"protocol":"shadowsocks","settings":{settings}}}"#));
        let OutboundProtocol::Shadowsocks(out) = good(&text).outbounds.remove(0).protocol else {
            panic!()
        };
        assert_eq!(out.keys, KeyChain::new(Method::Aes128Gcm, "p w").unwrap());
        assert_eq!(
            (out.server.address.to_string().as_str(), out.server.port),
            ("a.b", 8388)
        );
        assert_eq!((out.password.as_str(), out.email.as_str()), ("p w", "e"));
        assert!(!format!("{out:?}").contains("p w"));
    }
    let with = |rest: &str| {
        let server = format!(r#"{{"address":"a.b","port":1,{rest}}}"#);
        outbound(&format!(
            r#"{{"protocol":"shadowsocks","settings":{{"servers":[{server}]}}}}"#
        ))
    };
    good(&with(&format!(
        r#""method":"2022-blake3-aes-128-gcm","password":"{K16}:{OTHER}","uot":false"#
    )));
    for (rest, wanted) in [
        (
            r#""method":"aes-128-gcm","password":"p","uot":true"#.to_owned(),
            "uot: not supported yet: datagrams inside of streams (`uot`)",
        ),
        (
            format!(r#""method":"2022-blake3-chacha20-poly1305","password":"{K32}:{K32}""#),
            "password: 2022-blake3-chacha20-poly1305 takes one key: only the AES methods",
        ),
        (
            format!(r#""method":"2022-blake3-aes-128-gcm","password":"{K16}:{K32}""#),
            "password: 2022-blake3-aes-128-gcm takes a key of 16 bytes in base64, not of 32",
        ),
        (r#""method":"aes-128-gcm""#.to_owned(), ": `password` is missing"),
    ] {
        let told = bad(&with(&rest));
        let wanted = match wanted.strip_prefix(':') {
            Some(rest) => format!("outbounds[0].settings.servers[0]:{rest}"),
            None => format!("outbounds[0].settings.servers[0].{wanted}"),
        };
        assert!(told[0].contains(&wanted), "{rest}: {told:?}");
    }
}

/// What is written for one user says nothing of several, and is not dropped silently.
#[test]
fn what_clients_make_void_is_warned_about() {
    let text = r#"{"method":"aes-128-gcm","password":"p","email":"a","level":1,"clients":[{"password":"q"}]}"#;
    let told = warned(&settings(text));
    for key in ["email", "level", "password"] {
        let wanted = format!("inbounds[0].settings.{key}: beside `clients` it does nothing");
        assert_eq!(told.iter().filter(|line| line.contains(&wanted)).count(), 1, "{told:?}");
    }
    let text =
        format!(r#"{{"method":"2022-blake3-aes-128-gcm","password":"{K16}","clients":[{{"password":"{OTHER}"}}]}}"#);
    let told = warned(&settings(&text));
    assert!(!told.iter().any(|line| line.contains("does nothing")), "{told:?}");
}
