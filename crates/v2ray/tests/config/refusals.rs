//! What other programs have, or once had, and this one does not: each is refused by its name, with what to write instead
//! where there is something.

use super::*;

/// One line of the message: where it stands, and what is said.
#[track_caller]
fn refused(text: &str, place: &str, said: &[&str]) {
    let told = bad(text);
    assert_eq!(told.len(), 1, "{text}: {told:?}");
    let start = "c.json:2:";
    assert!(told[0].starts_with(start), "no line: {}", told[0]);
    assert!(told[0].contains(&format!(": error: {place}: ")), "{place}: {}", told[0]);
    for said in said {
        assert!(told[0].contains(said), "{said}: {}", told[0]);
    }
}

#[test]
fn transports() {
    let stream = |stream: &str| {
        inbound(&format!(
            "{{\"port\":1,\"protocol\":\"socks\",\"listen\":\"::1\",\n\"streamSettings\":{{{stream}}}}}"
        ))
    };
    for (name, said) in [
        (
            "quic",
            ["\"quic\" is obsolete", "write xhttp or raw on both ends, with tls"],
        ),
        (
            "kcp",
            [
                "not supported yet: the transport mkcp",
                "write ws, grpc or xhttp with tls",
            ],
        ),
        (
            "mkcp",
            [
                "not supported yet: the transport mkcp",
                "write ws, grpc or xhttp with tls",
            ],
        ),
        (
            "hysteria",
            ["not supported yet: the transport hysteria", "write grpc or xhttp"],
        ),
        (
            "hysteria2",
            ["not supported yet: the transport hysteria2", "write grpc or xhttp"],
        ),
        (
            "domainsocket",
            ["\"domainsocket\" is obsolete", "a path as the inbound's `listen`"],
        ),
        ("ds", ["\"ds\" is obsolete", "a path as the inbound's `listen`"]),
    ] {
        // Settings of a transport that is refused bring no second line.
        for more in [
            "",
            r#","kcpSettings":{"header":{"type":"srtp"},"seed":"s"},"hy2Settings":{"password":"p"}"#,
        ] {
            let text = stream(&format!("\"network\":\"{name}\"{more}"));
            refused(&text, "inbounds[0].streamSettings.network", &said);
        }
    }
    refused(
        &stream(r#""security":"xtls""#),
        "inbounds[0].streamSettings.security",
        &["\"xtls\" is obsolete", "write tls"],
    );
    refused(
        &stream(r#""xtlsSettings":{"a":1}"#),
        "inbounds[0].streamSettings.xtlsSettings",
        &["`xtlsSettings` is obsolete", "write `tlsSettings`"],
    );
    for kind in [
        "fragment",
        "noise",
        "header-custom",
        "salamander",
        "sudoku",
        "xmc",
        "xdns",
        "xicmp",
        "realm",
        "mkcp-legacy",
    ] {
        for list in ["tcp", "udp"] {
            refused(
                &stream(&format!(
                    r#""finalmask":{{"{list}":[{{"type":"{kind}","settings":{{}}}}]}}"#
                )),
                &format!("inbounds[0].streamSettings.finalmask.{list}[0].type"),
                &[&format!("not supported yet: `finalmask` of the type {kind}")],
            );
        }
    }
    refused(
        &stream(r#""finalmask":{"tcp":[{"type":"fog"}]}"#),
        "inbounds[0].streamSettings.finalmask.tcp[0].type",
        &["\"fog\" is no type of `finalmask`"],
    );
    good(&stream(r#""finalmask":{"tcp":[],"udp":[]}"#));
}

#[test]
fn protocols() {
    for (name, said) in [
        (
            "wireguard",
            [
                "not supported yet: the protocol wireguard",
                "the system's own WireGuard",
            ],
        ),
        (
            "hysteria",
            [
                "not supported yet: the protocol hysteria",
                "write vless or trojan, with tls",
            ],
        ),
        (
            "hysteria2",
            [
                "not supported yet: the protocol hysteria2",
                "write vless or trojan, with tls",
            ],
        ),
    ] {
        let text = inbound(&format!(
            "{{\"port\":1,\n\"protocol\":\"{name}\",\"settings\":{{\"secretKey\":\"k\"}}}}"
        ));
        refused(&text, "inbounds[0].protocol", &said);
        let text = outbound(&format!(
            "{{\"tag\":\"o\",\n\"protocol\":\"{name}\",\"settings\":{{\"secretKey\":\"k\"}}}}"
        ));
        refused(&text, "outbounds[0].protocol", &said);
    }
    refused(
        &inbound("{\"tag\":\"t\",\n\"protocol\":\"tun\",\"port\":0,\"settings\":{\"name\":\"xray0\",\"MTU\":1492}}"),
        "inbounds[0].protocol",
        &["not supported yet: the protocol tun", "`sealway gateway`"],
    );
    let id = "b831381d-6324-4d53-ad4f-8cda48b30811";
    for flow in ["xtls-rprx-direct", "xtls-rprx-splice", "xtls-rprx-origin"] {
        let said = [&format!("\"{flow}\" is obsolete")[..], "`security`"];
        let text = inbound(&format!(
            "{{\"port\":1,\"protocol\":\"vless\",\"settings\":{{\"decryption\":\"none\",\n\"clients\":[{{\"id\":\"{id}\",\"flow\":\"{flow}\"}}]}}}}"
        ));
        refused(&text, "inbounds[0].settings.clients[0].flow", &said);
        let text = inbound(&format!(
            "{{\"port\":1,\"protocol\":\"trojan\",\"settings\":{{\n\"clients\":[{{\"password\":\"p\",\"flow\":\"{flow}\"}}]}}}}"
        ));
        refused(&text, "inbounds[0].settings.clients[0].flow", &said);
    }
    refused(
        &outbound("{\"protocol\":\"freedom\",\"settings\":{\n\"ipsBlocked\":[\"10.0.0.0/8\"]}}"),
        "outbounds[0].settings.ipsBlocked",
        &["write `finalRules`"],
    );
}

#[test]
fn keys_of_the_whole_file() {
    for (key, said) in [
        (
            "transport",
            "write the settings into the `streamSettings` of each inbound and outbound",
        ),
        ("reverse", "it has no successor here yet"),
    ] {
        let text = format!("{{\n\"{key}\":{{\"a\":1}},\"inbounds\":[{SOCKS}],\"outbounds\":[{FREEDOM}]}}");
        refused(&text, key, &[&format!("`{key}` is obsolete"), said]);
    }
}

/// What works, and is warned about.
#[test]
fn what_is_only_warned_about() {
    let far = |protocol: &str, settings: &str, stream: &str| {
        outbound(&format!(
            r#"{{"protocol":"{protocol}","settings":{{"address":"1.1.1.1","port":1,{settings}}},"streamSettings":{{{stream}}}}}"#
        ))
    };
    let id = r#""id":"b831381d-6324-4d53-ad4f-8cda48b30811","encryption":"none""#;
    for (text, said) in [
        (far("vless", id, ""), "VLESS does not encrypt"),
        (far("trojan", r#""password":"p""#, ""), "Trojan does not encrypt"),
        (
            far(
                "trojan",
                r#""password":"p""#,
                r#""security":"tls","tlsSettings":{"allowInsecure":true}"#,
            ),
            "allowInsecure",
        ),
    ] {
        let told = warned(&text);
        assert!(told.len() == 1 && told[0].contains(said), "{told:?}");
    }
}

#[test]
fn what_a_rule_would_tell_somebody() {
    let text = |rule: &str| {
        format!(
            "{{\"inbounds\":[{{\"port\":1,\"protocol\":\"socks\",\"listen\":\"::1\"}}],\"outbounds\":[{{\"tag\":\"a\",\"protocol\":\"freedom\"}}],\"routing\":{{\"rules\":[\n{{\"outboundTag\":\"a\",\"network\":\"tcp\"{rule}}}]}}}}"
        )
    };
    let webhook = text(",\"webhook\":{\"url\":\"http://127.0.0.1/\"}");
    let told = warned(&webhook);
    assert!(
        told.len() == 1 && told[0].contains("not supported yet: telling somebody by HTTP"),
        "{told:?}"
    );
}

/// Ports that change are V2Ray's alone: what is said is that they stay.
#[test]
fn dynamic_ports_are_told() {
    let vmess = |allocate: &str, detour: &str| {
        inbound(&format!(
            r#"{{"port":"4000-4010","protocol":"vmess","allocate":{{{allocate}}},"settings":{{"clients":[{{"id":"{ID}"}}]{detour}}}}}"#
        ))
    };
    good(&vmess("", ""));
    good(&vmess(
        r#""strategy":"always","refresh":5,"concurrency":3"#,
        r#","detour":{}"#,
    ));
    for (text, said) in [
        (
            vmess(r#""strategy":"random","refresh":5,"concurrency":3"#, ""),
            "inbounds[0].allocate.strategy: not supported yet: ports chosen anew",
        ),
        (
            vmess(r#""strategy":"external""#, ""),
            "inbounds[0].allocate.strategy: not supported yet: ports chosen anew",
        ),
        (
            vmess("", r#","detour":{"to":"other"}"#),
            "inbounds[0].settings.detour: not supported yet: dynamic ports",
        ),
    ] {
        let told = warned(&text);
        assert!(told.len() == 1 && told[0].contains(said), "{told:?}");
    }
}
