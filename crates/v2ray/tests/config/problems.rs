use sealway_v2ray::config::{File, Options, Severity, load};

use super::*;

#[test]
fn a_misspelt_key_is_named_with_its_place_and_the_likely_one() {
    let text = "{\n  \"inbounds\": [\n    {\"port\": 1, \"protocoll\": \"socks\", \"protocol\": \"socks\", \"listen\": \"::1\"}\n  ],\n  \"outbounds\": [{\"protocol\": \"freedom\"}]\n}";
    let told = warned(text);
    let wanted =
        "c.json:3:17: warning: inbounds[0]: unknown key \"protocoll\" in inbounds[] (did you mean `protocol`?)";
    assert_eq!(told, [wanted]);
    let options = Options {
        strict: true,
        env: &|_| None,
    };
    let strict = load(
        &[File {
            name: "c.json",
            text: text.as_bytes(),
        }],
        &options,
    );
    assert!(strict.config.is_none());
    assert_eq!(strict.problems[0].severity, Severity::Error);
    assert_eq!((strict.problems[0].line, strict.problems[0].column), (3, 17));
}

#[test]
fn a_key_in_the_wrong_object_is_shown_its_home() {
    let told = warned(&inbound(r#"{"port":1,"protocol":"socks","acceptProxyProtocol":true}"#));
    assert_eq!(
        told,
        [
            "c.json:1:43: warning: inbounds[0]: unknown key \"acceptProxyProtocol\" in inbounds[] \
          (`acceptProxyProtocol` belongs to streamSettings.rawSettings)"
        ]
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let told = bad(
        "{\"inbounds\": [\n{\"port\": \"x\", \"protocol\": \"socks\"},\n{\"port\": 1, \"protocol\": \"sock\"},\n{\"port\": 2}\n],\n\"outbounds\": [\n{\"protocol\": \"freedom\", \"tag\": 5}]}",
    );
    assert_eq!(
        told,
        [
            "c.json:2:10: error: inbounds[0].port: \"x\" is no port; a port is a number from 0 to 65535",
            "c.json:3:25: error: inbounds[1].protocol: \"sock\" is not known here (did you mean \"socks\"?)",
            "c.json:4:1: error: inbounds[2]: `protocol` is missing (write one of dokodemo-door, tunnel, socks, mixed, http, shadowsocks, trojan, vless, vmess)",
            "c.json:7:32: error: outbounds[0].tag: a string is expected here, not a number",
        ]
    );
}

/// A tag or an e-mail with a line end wrote lines of the access log, of whoever made up the configuration or the link.
#[test]
fn names_that_could_forge_lines_of_a_log_are_refused() {
    let id = format!("\"id\":\"{ID}\"");
    for (text, place) in [
        (
            inbound(r#"{"port":1,"protocol":"socks","tag":"a\nb"}"#),
            ("1:49", "inbounds[0].tag"),
        ),
        (
            outbound(r#"{"protocol":"freedom","tag":"a\nb"}"#),
            ("1:89", "outbounds[0].tag"),
        ),
        (
            inbound(&format!(
                r#"{{"port":1,"protocol":"vmess","settings":{{"clients":[{{{id},"email":"a\nb"}}]}}}}"#
            )),
            ("1:119", "inbounds[0].settings.clients[0].email"),
        ),
        (
            inbound(&format!(
                r#"{{"port":1,"protocol":"vless","settings":{{"decryption":"none","clients":[{{{id},"email":"a\nb"}}]}}}}"#
            )),
            ("1:139", "inbounds[0].settings.clients[0].email"),
        ),
    ] {
        let wanted = format!(
            "c.json:{}: error: {}: \"a\\nb\" holds the control character \\u{{a}} (names stand in logs, where it could \
             forge lines: take it out)",
            place.0, place.1
        );
        assert_eq!(bad(&text), [wanted]);
    }
    for hidden in ["\\u001b[2J", "\\u0085", "\\u202e", "\\u2028", "\\u007f", "\\u0000"] {
        bad(&outbound(&format!(r#"{{"protocol":"freedom","tag":"{hidden}"}}"#)));
    }
    // What joins letters and emoji is part of names.
    good(&outbound(
        "{\"protocol\":\"freedom\",\"tag\":\"\u{1f468}\u{200d}\u{1f467} \u{646}\u{6cc}\u{200c}\u{645}\"}",
    ));
}

#[test]
fn what_is_known_but_missing_is_named() {
    for (text, what) in [
        (
            inbound(r#"{"port":1,"protocol":"wireguard"}"#),
            "the protocol wireguard",
        ),
        (
            inbound(r#"{"port":1,"protocol":"socks","streamSettings":{"network":"kcp"}}"#),
            "the transport mkcp",
        ),
        (outbound(r#"{"protocol":"loopback"}"#), "the protocol loopback"),
        (
            outbound(r#"{"protocol":"freedom","settings":{"ipsBlocked":["192.0.2.1"]}}"#),
            "`ipsBlocked`",
        ),
    ] {
        let told = bad(&text);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("not supported yet: "), "{}", told[0]);
        assert!(told[0].contains(what), "{}", told[0]);
    }
    // What is switched off asks for nothing.
    good(&format!(
        r#"{{"api":{{}},"fakedns":null,"observatory":{{}},"outbounds":[{{"protocol":"freedom","mux":{{"enabled":false}}}}],"inbounds":[{SOCKS}]}}"#
    ));
    let told = warned(&outbound(r#"{"protocol":"freedom","mux":{"enabled":true}}"#));
    assert_eq!(
        told,
        [
            "c.json:1:100: warning: outbounds[0].mux.enabled: there is no server here that could take many connections in one: \
             `mux` has no effect (leave it out)"
        ]
    );
    for mux in [
        r#"{"enabled":true,"xudpProxyUDP443":"deny"}"#,
        r#"{"enabled":true,"concurrency":40000}"#,
        r#"{"enabled":true,"xudpConcurrency":1.5}"#,
    ] {
        let told = bad(&outbound(&format!(
            r#"{{"protocol":"socks","mux":{mux},"settings":{{"servers":[{{"address":"127.0.0.1","port":1}}]}}}}"#
        )));
        assert_eq!(told.len(), 1, "{told:?}");
    }
}

#[test]
fn ancient_keys_say_what_to_write() {
    for key in [
        "inbound",
        "outbound",
        "inboundDetour",
        "outboundDetour",
        "transport",
        "reverse",
    ] {
        let told = bad(&format!(
            r#"{{"{key}":{{"a":1}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
        ));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with(&format!("c.json:1:2: error: {key}: `{key}` is obsolete (")),
            "{}",
            told[0]
        );
        // Forms leave them empty.
        for empty in ["{}", "null"] {
            good(&format!(
                r#"{{"{key}":{empty},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
            ));
        }
    }
}

#[test]
fn rules_lead_somewhere() {
    let text = |rule: &str| {
        format!(
            "{{\"inbounds\":[{{\"tag\":\"in\",\"port\":1,\"protocol\":\"socks\"}}],\n\"outbounds\":[{{\"tag\":\"direct\",\"protocol\":\"freedom\"}}],\n\"routing\":{{\"rules\":[{rule}]}}}}"
        )
    };
    let to = sealway_v2ray::config::RuleTarget::Outbound("direct".into());
    assert_eq!(
        good(&text(r#"{"port":53,"outboundTag":"direct"}"#)).routing.rules[0].to,
        to
    );
    assert_eq!(
        bad(&text(r#"{"port":53,"outboundTag":"dirct"}"#)),
        [
            "c.json:3:46: error: routing.rules[0].outboundTag: no outbound has the tag \"dirct\" (did you mean \"direct\"?)"
        ]
    );
    assert_eq!(
        bad(&text(r#"{"outboundTag":"direct"}"#)),
        [
            "c.json:3:21: error: routing.rules[0]: the rule has no condition (for a rule that always fits, write \"network\": \"tcp,udp\")"
        ]
    );
    assert_eq!(
        bad(&text(r#"{"port":1}"#)),
        ["c.json:3:21: error: routing.rules[0]: the rule leads nowhere (name an outbound: \"outboundTag\": \"…\")"]
    );
    assert_eq!(
        bad(&text(r#"{"port":1,"balancerTag":"b"}"#)),
        ["c.json:3:45: error: routing.rules[0].balancerTag: no balancer has the tag \"b\" (none has a tag)"]
    );
    assert_eq!(
        warned(&text(r#"{"inboundTag":"inn","outboundTag":"direct"}"#)),
        ["c.json:3:35: warning: routing.rules[0].inboundTag: no inbound has the tag \"inn\" (did you mean \"in\"?)"]
    );
    assert!(bad(&text(r#"{"domain":["regexp:("],"outboundTag":"direct"}"#))[0].contains("is no regular expression"));
    assert!(bad(&text(r#"{"domain":["fulll:a"],"outboundTag":"direct"}"#))[0].contains("the forms are"));
    assert_eq!(
        bad(&text(r#"{"attrs":"attrs[':path'] == '/'","outboundTag":"direct"}"#)),
        [
            "c.json:3:30: error: routing.rules[0].attrs: `attrs` as an expression is V2Ray's alone, and is not supported \
             (write an object: {\":method\": \"^GET$\", \"accept\": \"html\"})"
        ]
    );
    assert!(
        bad(&text(r#"{"attrs":{"a":"("},"outboundTag":"direct"}"#))[0]
            .contains("rules[0].attrs.a: \"(\" is no regular")
    );
    assert_eq!(
        warned(&text(r#"{"protocol":["http","bitorrent"],"outboundTag":"direct"}"#)),
        [
            "c.json:3:41: warning: routing.rules[0].protocol[1]: no protocol that is found is called \"bitorrent\" \
             (did you mean \"bittorrent\"?)"
        ]
    );
    assert!(bad(&text(r#"{"ip":["10.0.0.0/33"],"outboundTag":"direct"}"#))[0].contains("routing.rules[0].ip[0]: "));
}

#[test]
fn balancers_have_outbounds_and_measurements() {
    let text = |routing: &str, more: &str| {
        format!(
            "{{\"inbounds\":[{SOCKS}],\"outbounds\":[{{\"tag\":\"proxy-a\",\"protocol\":\"freedom\"}},{{\"tag\":\"direct\",\"protocol\":\"freedom\"}}],\n\"routing\":{{{routing}}}{more}}}"
        )
    };
    let measured = r#","observatory":{"subjectSelector":["proxy"]}"#;
    for (routing, more, wanted) in [
        (
            r#""balancers":[{"tag":"b","selector":["proxi-"]}]"#,
            "",
            r#"c.json:2:47: error: routing.balancers[0].selector: no outbound has a tag that begins with "proxi-" (did you mean "proxy-a"?)"#,
        ),
        (
            r#""balancers":[{"tag":"b","selector":[]}]"#,
            "",
            "c.json:2:47: error: routing.balancers[0].selector: the balancer selects nothing (the tags are \"direct\", \"proxy-a\")",
        ),
        (
            r#""balancers":[{"tag":"","selector":["proxy"]}]"#,
            "",
            "c.json:2:32: error: routing.balancers[0].tag: the tag is empty (rules name the balancer by it)",
        ),
        (
            r#""balancers":[{"tag":"b","selector":["proxy"],"fallbackTag":"dirct"}]"#,
            measured,
            r#"c.json:2:71: error: routing.balancers[0].fallbackTag: no outbound has the tag "dirct" (did you mean "direct"?)"#,
        ),
        (
            r#""balancers":[{"tag":"b","selector":["proxy"],"strategy":{"type":"leastPing"}}]"#,
            "",
            "c.json:2:25: error: routing.balancers[0]: nothing measures what the balancer chooses by, leastPing (add \"observatory\": {\"subjectSelector\": […]}, or burstObservatory)",
        ),
        (
            r#""balancers":[{"tag":"b","selector":["proxy"],"fallbackTag":"direct"}]"#,
            "",
            "c.json:2:25: error: routing.balancers[0]: nothing measures what the balancer chooses by, fallbackTag (add \"observatory\": {\"subjectSelector\": […]}, or burstObservatory)",
        ),
        (
            r#""balancers":[{"tag":"b","selector":["proxy"],"strategy":{"type":"leastLoad","settings":{"tolerance":1.5}}}]"#,
            measured,
            "c.json:2:112: error: routing.balancers[0].strategy.settings.tolerance: the tolerance is a share from 0 to 1",
        ),
        (
            r#""balancers":[{"tag":"b","selector":["proxy"],"strategy":{"type":"leastLoad","settings":{"baselines":["1x"]}}}]"#,
            measured,
            "c.json:2:113: error: routing.balancers[0].strategy.settings.baselines[0]: \"1x\" is no time (write a number and a unit, \"300ms\", \"10s\" or \"1m30s\", of at most a year)",
        ),
        (
            r#""balancers":[{"tag":"balance","selector":["proxy"]}],"rules":[{"port":1,"balancerTag":"balanse"}]"#,
            "",
            r#"c.json:2:98: error: routing.rules[0].balancerTag: no balancer has the tag "balanse" (did you mean "balance"?)"#,
        ),
        (
            r#""rules":[{"process":["bin/x"],"outboundTag":"direct"}]"#,
            "",
            r#"c.json:2:33: error: routing.rules[0].process[0]: "bin/x" is no absolute path (write curl, /usr/bin/curl or /usr/bin/)"#,
        ),
        (
            "",
            r#","observatory":{"subjectSelector":["proxy"],"probeURL":"gopher://a"}"#,
            r#"c.json:2:68: error: observatory.probeURL: "gopher://a" cannot be fetched (write http:// or https://, a host and a path)"#,
        ),
    ] {
        assert_eq!(bad(&text(routing, more)), [wanted], "{routing}{more}");
    }
    let warnings = |routing: &str, more: &str| warned(&text(routing, more));
    assert_eq!(
        warnings(
            r#""balancers":[{"tag":"b","selector":["proxy","direct"],"strategy":{"type":"leastPing"}}]"#,
            measured
        ),
        [
            "c.json:2:25: warning: routing.balancers[0]: the outbound \"direct\" is never chosen, for nothing measures it (name it in subjectSelector)"
        ]
    );
    assert_eq!(
        warnings("", r#","observatory":{"subjectSelector":["x"],"probeInterval":0}"#),
        [
            "c.json:2:47: warning: observatory.subjectSelector: nothing is measured: no outbound has a tag that begins so (the tags are \"direct\", \"proxy-a\")",
            "c.json:2:69: warning: observatory.probeInterval: measurements follow each other after 100ms at the soonest"
        ]
    );
}

#[test]
fn tags_ids_and_emails_are_unique() {
    let told = bad(
        "{\"inbounds\":[{\"tag\":\"a\",\"port\":1,\"protocol\":\"socks\"},\n{\"tag\":\"a\",\"port\":2,\"protocol\":\"socks\"}],\"outbounds\":[{\"protocol\":\"freedom\"}]}",
    );
    assert_eq!(
        told,
        [
            "c.json:2:8: error: inbounds[1].tag: the one on line 1 has the same tag \"a\" (a tag is how rules and counters tell them apart)"
        ]
    );
    for protocol in ["vless", "vmess"] {
        let told = bad(&inbound(&format!(
            "{{\"port\":1,\"protocol\":\"{protocol}\",\"settings\":{{\"decryption\":\"none\",\"clients\":[\n{{\"id\":\"{ID}\",\"email\":\"a@b\"}},\n{{\"id\":\"{}\",\"email\":\"A@B\"}}]}}}}",
            ID.replace('-', "").to_uppercase()
        )));
        let told: Vec<_> = told.into_iter().filter(|line| !line.contains("unknown key")).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with(
                "c.json:3:7: error: inbounds[0].settings.clients[1].id: the user on line 2 has the same id"
            )
        );
        assert!(
            told[1].starts_with(
                "c.json:3:50: error: inbounds[0].settings.clients[1].email: the user on line 2 has the same e-mail"
            ),
            "{}",
            told[1]
        );
    }
}

#[test]
fn repeated_keys_are_told() {
    assert_eq!(
        warned(&inbound(r#"{"port":1,"PORT":2,"protocol":"socks"}"#)),
        [
            "c.json:1:15: warning: inbounds[0].port: `PORT` stands here again on line 1, and the last one counts (remove one of them)"
        ]
    );
    assert_eq!(
        warned(&inbound(
            r#"{"port":1,"protocol":"socks","streamSettings":{"tcpSettings":{},"rawSettings":{}}}"#
        )),
        [
            "c.json:1:61: warning: inbounds[0].streamSettings.tcpSettings: `rawSettings` on line 1 is the same key and counts instead (remove one of them)"
        ]
    );
}

#[test]
fn the_peers_traps() {
    let vless = |settings: &str| inbound(&format!(r#"{{"port":1,"protocol":"vless","settings":{{{settings}}}}}"#));
    assert!(bad(&vless(""))[0].contains("`decryption` is missing (write \"decryption\": \"none\")"));
    assert!(
        bad(&vless(r#""decryption":"mlkem768x25519plus.native.0rtt.k""#))[0]
            .contains("not supported yet: VLESS encryption")
    );
    assert!(bad(&vless(r#""decryption":"none","fallback":{"dest":80}"#))[0].contains("`fallback` is obsolete"));
    assert!(
        bad(&vless(&format!(
            r#""decryption":"none","clients":[{{"id":"{ID}","encryption":"none"}}]"#
        )))[0]
            .contains("`decryption`, beside the users")
    );
    assert!(
        bad(&inbound(
            r#"{"port":1,"protocol":"socks","streamSettings":{"security":"xtls"}}"#
        ))[0]
            .contains("`flow`")
    );
    assert!(
        bad(&inbound(
            r#"{"port":1,"protocol":"socks","streamSettings":{"security":"tls"}}"#
        ))[0]
            .contains("needs a certificate")
    );
    assert!(
        bad(&inbound(
            r#"{"port":1,"protocol":"socks","settings":{"auth":"password"}}"#
        ))[0]
            .contains("nobody could use it")
    );
    let told = warned(&outbound(&format!(
        r#"{{"protocol":"vless","settings":{{"address":"example.com","port":1,"id":"{ID}","encryption":"none"}}}}"#
    )));
    assert!(
        told.len() == 1 && told[0].contains("VLESS does not encrypt"),
        "{told:?}"
    );
    let told = warned(&outbound(&format!(
        r#"{{"protocol":"vmess","settings":{{"address":"example.com","port":1,"id":"{ID}","alterId":64}}}}"#
    )));
    assert!(told.len() == 1 && told[0].contains("only the AEAD header"), "{told:?}");
    let old = format!(
        r#"{{"port":1,"protocol":"vmess","settings":{{"clients":[{{"id":"{ID}"}},{{"id":"a","alterId":4}}]}}}}"#
    );
    let told = warned(&inbound(&old));
    assert!(
        told[0].contains(" inbounds[0].settings.clients[1].alterId: "),
        "{told:?}"
    );
    let insecure = r#"{"protocol":"socks","settings":{"address":"a","port":1},"streamSettings":{"security":"tls","tlsSettings":{"allowInsecure":true}}}"#;
    assert!(warned(&outbound(insecure))[0].contains("will not be checked"));
    assert!(
        bad("{\"inbounds\":[]}")
            .iter()
            .any(|line| line.contains("`outbounds` is missing"))
    );
    let two = format!(
        r#"{{"protocol":"vmess","settings":{{"vnext":[{{"address":"a","port":1,"users":[{{"id":"{ID}"}},{{"id":"x"}}]}}]}}}}"#
    );
    assert!(bad(&outbound(&two))[0].contains("more than one user"));
}

#[test]
fn a_misspelt_key_of_a_flat_outbound_is_found() {
    let text = format!(r#"{{"protocol":"vmess","settings":{{"adress":"a","port":1,"id":"{ID}"}}}}"#);
    let told = bad(&outbound(&text));
    assert_eq!(
        told,
        [
            "c.json:1:92: error: outbounds[0].settings.vnext[0]: `address` is missing (it is written as IP address or domain name)",
            "c.json:1:93: warning: outbounds[0].settings.vnext[0]: unknown key \"adress\" in vmess outbound settings.vnext[] \
             (did you mean `address`?)"
        ]
    );
}

#[test]
fn a_rule_is_checked_even_if_an_inbound_is_wrong() {
    let told = bad(
        "{\"routing\":{\"rules\":[{\"port\":1,\"outboundTag\":\"x\"},{\"port\":1,\"outboundTag\":\"d\"}]},\n\
         \"inbounds\":[{\"port\":0.5,\"protocol\":\"socks\"}],\"outbounds\":[{\"tag\":\"d\",\"protocol\":\"freedm\"}]}",
    );
    assert_eq!(
        told,
        [
            "c.json:1:46: error: routing.rules[0].outboundTag: no outbound has the tag \"x\" (the tags are \"d\")",
            "c.json:2:21: error: inbounds[0].port: \"0.5\" is no port; a port is a number from 0 to 65535",
            "c.json:2:81: error: outbounds[0].protocol: \"freedm\" is not known here (did you mean \"freedom\"?)",
        ]
    );
}
