//! What comes along in the files of those who move in.

use super::*;

const FREEDOM: &str = r#"{"tag":"direct","protocol":"freedom"}"#;

fn with_rules(rules: &str, more: &str) -> String {
    format!(
        r#"{{"inbounds":[{{"tag":"in","listen":"127.0.0.1","port":1,"protocol":"socks"}}],"outbounds":[{FREEDOM}],
            "routing":{{"rules":[{rules}]}}{more}}}"#
    )
}

/// Clients export rules of their API without the API.
#[test]
fn a_rule_that_nothing_comes_to_may_lead_nowhere() {
    let lost = |inbounds: &str| format!(r#"{{"inboundTag":{inbounds},"outboundTag":"api"}}"#);
    let told = warned(&with_rules(&lost(r#"["api","old"]"#), ""));
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told.iter().any(|line| line.contains(
            "warning: routing.rules[0].outboundTag: no outbound has the tag \"api\", and no inbound one of the rule's"
        )),
        "{told:?}"
    );
    // What may come to it goes where it says, or nothing starts.
    for (inbounds, more) in [
        (r#"["api","in"]"#, ""),
        (r#""queries""#, r#","dns":{"tag":"queries"}"#),
        ("[]", r#","log":{}"#),
    ] {
        let told = bad(&with_rules(&lost(inbounds), more));
        assert!(
            told.iter()
                .any(|line| line.contains("error: routing.rules[0].outboundTag: ")),
            "{told:?}"
        );
    }
    let balanced = bad(&with_rules(r#"{"inboundTag":"api","balancerTag":"b"}"#, ""));
    assert!(balanced[1].contains("no balancer has the tag"), "{balanced:?}");
}

#[test]
fn a_configuration_of_another_program_is_called_so_and_nothing_else() {
    for text in [
        r#"{"log":{"level":"info"},"inbounds":[{"type":"mixed","listen_port":1}],"outbounds":[{"type":"direct"}]}"#,
        r#"{"outbounds":[{"type":"direct"}],"route":{"final":"direct"}}"#,
        r#"{"route":{"rules":[]}}"#,
    ] {
        let told = bad(text);
        assert!(
            told.len() == 1 && told[0].contains("a configuration of sing-box"),
            "{told:?}"
        );
    }
    for text in [
        r#"{"log":{"access":{"type":"None"}},"outbounds":[{"protocol":"freedom"}]}"#,
        r#"{"router":{"rule":[]},"outbounds":[{"protocol":"freedom"}]}"#,
        r#"{"inbounds":[{"protocol":"vmess","port":1,"streamSettings":{"transport":"ws","security":"tls"}}]}"#,
    ] {
        let told = bad(text);
        assert!(told.len() == 1 && told[0].contains("jsonv5"), "{told:?}");
    }
    // One outbound that is called by the wrong key makes no other program.
    let told = bad(&format!(r#"{{"outbounds":[{FREEDOM},{{"type":"direct"}}]}}"#));
    assert!(
        told.iter()
            .any(|line| line.contains("outbounds[1]: `protocol` is missing")),
        "{told:?}"
    );
}

#[test]
fn names_for_the_reader_are_taken() {
    let rule = r#"{"port":1,"outboundTag":"direct","remarks":"a name"}"#;
    good(&with_rules(rule, r#","remarks":"a name""#));
}

/// The likely key, `enableSessionResumption`, says the contrary.
#[test]
fn resumption_that_is_forbidden_is_not_allowed() {
    let text = r#"{"inbounds":[{"listen":"127.0.0.1","port":1,"protocol":"socks"}],"outbounds":[{"protocol":"trojan",
        "settings":{"address":"a","port":1,"password":"p"},
        "streamSettings":{"security":"tls","tlsSettings":{"disableSessionResumption":true}}}]}"#;
    assert!(!good(text).outbounds[0].stream.tls.as_ref().unwrap().session_resumption);
}

/// V2Ray has other keys for it than Xray.
#[test]
fn a_hello_that_is_to_be_hidden_is_not_sent_in_the_clear() {
    for key in [r#""echConfig":"AA==""#, r#""echDohServer":"https://1.1.1.1/dns-query""#] {
        let text = format!(
            r#"{{"inbounds":[{SOCKS}],"outbounds":[{{"protocol":"trojan","settings":{{"address":"a","port":1,"password":"p"}},
                "streamSettings":{{"security":"tls","tlsSettings":{{{key}}}}}}}]}}"#
        );
        assert!(
            bad(&text)[0].contains("not supported yet: encrypted client hello"),
            "{key}"
        );
    }
}

/// What VLESS itself seals needs no TLS: advice about that would be wrong.
#[test]
fn encryption_of_vless_is_the_one_thing_that_is_told() {
    let word = "mlkem768x25519plus.native.0rtt.k";
    let (flow, id) = (r#""flow":"xtls-rprx-vision""#, format!(r#""id":"{ID}""#));
    let server = format!(
        r#"{{"inbounds":[{{"port":1,"protocol":"vless","settings":{{"decryption":"{word}","clients":[{{{id},{flow}}}]}}}}],
            "outbounds":[{FREEDOM}]}}"#
    );
    let client = format!(
        r#"{{"inbounds":[{{"listen":"127.0.0.1","port":1,"protocol":"socks"}}],"outbounds":[{{"protocol":"vless",
            "settings":{{"address":"a","port":1,{id},"encryption":"{word}",{flow}}}}}]}}"#
    );
    for text in [server, client] {
        let told = bad(&text);
        assert!(told.len() == 1 && told[0].contains("VLESS encryption"), "{told:?}");
    }
}
