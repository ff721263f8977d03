//! What may not happen unnoticed: open proxies, closed tunnels, queries in the clear, errors behind other errors.

use sealway_v2ray::config::{File, Options, Severity, load};

use super::*;

/// Every problem, with how bad it is.
fn all(text: &str, strict: bool) -> Vec<(Severity, String)> {
    let options = Options { strict, env: &env };
    let file = File {
        name: "c.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &options);
    let errors = loaded.errors().next().is_some();
    assert_eq!(loaded.config.is_none(), errors, "{:?}", loaded.problems);
    let told = loaded.problems.iter();
    told.map(|problem| (problem.severity, problem.to_string())).collect()
}

#[test]
fn a_proxy_that_anyone_can_use_is_told_with_its_place() {
    for (inbound, place) in [
        (
            r#"{"port": 1, "protocol": "socks"}"#,
            "c.json:2:1: warning: inbounds[0].settings.auth: ",
        ),
        (
            r#"{"port": 1, "protocol": "socks", "settings": {"auth": "noauth"}}"#,
            "c.json:2:55: warning: inbounds[0].settings.auth: ",
        ),
        (
            r#"{"port": 1, "listen": "0.0.0.0", "protocol": "http"}"#,
            "c.json:2:1: warning: inbounds[0].settings.accounts: ",
        ),
        (
            r#"{"port": 1, "listen": "192.0.2.1", "protocol": "mixed"}"#,
            "c.json:2:1: ",
        ),
        (r#"{"port": 1, "listen": "::", "protocol": "http"}"#, "c.json:2:1: "),
        (r#"{"port": "1-9", "listen": "", "protocol": "socks"}"#, "c.json:2:1: "),
    ] {
        let text = format!("{{\"inbounds\":[\n{inbound}],\"outbounds\":[{FREEDOM}]}}");
        let told = all(&text, false);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].1.starts_with(place) && told[0].1.contains(OPEN), "{told:?}");
        assert_eq!(all(&text, true)[0].0, Severity::Error);
    }
    for closed in [
        r#"{"port": 1, "listen": "127.0.0.1", "protocol": "socks"}"#,
        r#"{"port": 1, "listen": "127.9.9.9", "protocol": "http"}"#,
        r#"{"port": 1, "listen": "[::1]", "protocol": "socks"}"#,
        r#"{"port": 1, "listen": "::ffff:127.0.0.1", "protocol": "socks"}"#,
        r#"{"listen": "/run/p.sock", "protocol": "socks"}"#,
        r#"{"listen": "@p", "protocol": "http"}"#,
        r#"{"port": 1, "protocol": "http", "settings": {"accounts": [{"user": "a", "pass": "b"}]}}"#,
        r#"{"port": 1, "protocol": "socks", "settings": {"auth": "password", "accounts": [{"user": "a", "pass": "b"}]}}"#,
    ] {
        assert_eq!(all(&inbound(closed), true), [], "{closed}");
    }
    // Certificates of clients are accounts of another kind.
    let tls = |verify: bool| {
        format!(
            r#"{{"port": 1, "protocol": "http", "streamSettings": {{"security": "tls", "tlsSettings": {{
            "verifyClientCertificate": {verify}, "certificates": [{{"certificateFile": "c", "keyFile": "k"}},
            {{"usage": "verifyclient", "certificateFile": "a"}}]}}}}}}"#
        )
    };
    assert_eq!(all(&inbound(&tls(true)), true), []);
    assert_eq!(all(&inbound(&tls(false)), false).len(), 1);
}

#[test]
fn a_tunnel_that_the_guard_would_close_is_told() {
    let door = |more: &str, address: &str, rest: &str| {
        format!(
            r#"{{"inbounds": [{{"tag": "door", "port": 53, {more} "protocol": "tunnel", "settings": {{{address}}}}}],
            "outbounds": [{{"tag": "direct", "protocol": "freedom"}}]{rest}}}"#
        )
    };
    let inside = r#""address": "10.1.2.3""#;
    for (text, wanted) in [
        (door("", inside, ""), 1),
        (door("", "", ""), 1),
        (door(r#""listen": "127.0.0.1","#, inside, ""), 0),
        (door("", r#""address": "192.0.1.7""#, ""), 0),
        (door("", r#""address": "a.example""#, ""), 0),
        (
            door(
                "",
                inside,
                r#", "routing": {"rules": [{"ip": "10.1.2.3", "outboundTag": "direct"}]}"#,
            ),
            0,
        ),
    ] {
        let told = all(&text, false);
        assert_eq!(told.len(), wanted, "{text}: {told:?}");
        assert!(told.iter().all(|(_, line)| line.contains(REFUSED)), "{told:?}");
    }
}

#[test]
fn no_error_hides_another() {
    let text = r#"{"dns": {"servers": ["quic+local://1.1.1.1"]},
"routing": {"rules": [{"ip": "geoip:", "domain": "geosite:cn@", "port": 99999, "outboundTag": "gone"}]},
"inbounds": [{"port": 1, "protocol": "vless", "settings": {"clients": [{"id": ""}]},
  "streamSettings": {"network": "kcp", "security": "tls", "tlsSettings": {"minVersion": "9"}, "sockopt": {"mark": "x"}}},
  {"tag": "right", "listen": "127.0.0.1", "port": 2, "protocol": "socks"}],
"outbounds": [{"protocol": "vmess", "mux": 7, "settings": {"address": "a"}}, {"tag": "direct", "protocol": "freedom"}]}"#;
    let told = bad(text);
    for place in [
        "dns.servers[0]: not supported yet",
        "routing.rules[0].ip[0]: ",
        "routing.rules[0].domain[0]: ",
        "routing.rules[0].port: ",
        "routing.rules[0].outboundTag: no outbound has the tag",
        "inbounds[0].settings.clients[0].id: ",
        "inbounds[0].settings: `decryption` is missing",
        "inbounds[0].streamSettings.network: ",
        "inbounds[0].streamSettings.tlsSettings.minVersion: ",
        "inbounds[0].streamSettings.sockopt.mark: ",
        "outbounds[0].mux: ",
        "outbounds[0].settings.vnext[0]: `port` is missing",
    ] {
        assert!(
            told.iter().any(|line| line.contains(place)),
            "{place} is not in {told:#?}"
        );
    }
    // What is right can be put to the test all the same.
    let draft = read(text).draft;
    let places: Vec<_> = draft.inbounds.iter().map(|(at, one)| (*at, one.tag.as_str())).collect();
    assert_eq!(places, [(1, "right")]);
    assert_eq!(draft.outbounds.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1]);
}
