//! `api`: who may reach it, and what it has.

use sealway_v2ray::config::{ApiService, ServiceListen, UnixName};

use super::*;

/// A configuration with this API, and this rule beside a tunnel that listens here.
fn api(api: &str, tunnel: &str) -> String {
    format!(
        "{{\"api\":{api},\n\"inbounds\":[{{\"tag\":\"in\",\"protocol\":\"tunnel\",{tunnel}}}],\"outbounds\":[{FREEDOM}],\
         \"routing\":{{\"rules\":[{{\"inboundTag\":[\"in\"],\"outboundTag\":\"API\"}}]}}}}"
    )
}

const LOCAL: &str = r#""listen":"127.0.0.1","port":62789,"settings":{"address":"127.0.0.1"}"#;

#[test]
fn the_old_way_and_the_new_one_are_read() {
    let config = good(&api(
        r#"{"tag":"API","services":["HandlerService","StatsService","statsservice","ReflectionService"]}"#,
        LOCAL,
    ));
    let read = config.api.unwrap();
    assert_eq!(
        (read.tag.as_str(), &read.listen, read.expose_secrets),
        ("API", &None, false)
    );
    let all = [
        ApiService::HandlerService,
        ApiService::StatsService,
        ApiService::ReflectionService,
    ];
    assert_eq!(read.services, all);
    // As one panel writes it: no port, no settings.
    let config = good(&api(
        r#"{"tag":"API","services":["StatsService"]}"#,
        r#""listen":"@xtls-api-1""#,
    ));
    assert!(config.api.is_some());
    for (text, listen) in [
        ("127.0.0.1:8080", ServiceListen::Ip("127.0.0.1:8080".parse().unwrap())),
        ("localhost:1", ServiceListen::Ip("127.0.0.1:1".parse().unwrap())),
        ("[::1]:2", ServiceListen::Ip("[::1]:2".parse().unwrap())),
        (
            "/run/api.sock",
            ServiceListen::Unix(UnixName::Path("/run/api.sock".into()), None),
        ),
        (
            "/run/api.sock,0660",
            ServiceListen::Unix(UnixName::Path("/run/api.sock".into()), Some(0o660)),
        ),
        (
            "@@api",
            ServiceListen::Unix(UnixName::Abstract([&b"api"[..], &[0; 104]].concat()), None),
        ),
    ] {
        let config = good(&api(
            &format!(r#"{{"tag":"API","listen":"{text}","services":"StatsService"}}"#),
            LOCAL,
        ));
        assert_eq!(config.api.unwrap().listen, Some(listen), "{text}");
    }
    // Without rules, and without a tag.
    let text = r#"{"listen":"127.0.0.1:1","services":["LoggerService"]}"#;
    let text = format!("{{\"api\":{text},\"inbounds\":[{SOCKS}],\"outbounds\":[{FREEDOM}]}}");
    assert_eq!(good(&text).api.unwrap().tag, "");
}

#[test]
fn whoever_is_not_on_this_machine_needs_a_certificate_or_a_word() {
    let tls = r#""tls":{"certificateFile":"c","keyFile":"k","clientCaFile":"a"}"#;
    for listen in ["0.0.0.0:8080", "192.0.2.1:8080", ":8080", "[::]:8080"] {
        let with = |more: &str| {
            let more = if more.is_empty() {
                String::new()
            } else {
                format!(",{more}")
            };
            api(
                &format!(r#"{{"tag":"API","services":["StatsService"],"listen":"{listen}"{more}}}"#),
                LOCAL,
            )
        };
        let told = bad(&with(""));
        assert!(told[0].starts_with("c.json:1:"), "{told:?}");
        assert!(
            told[0].contains("api.listen: other machines reach this address"),
            "{told:?}"
        );
        assert!(told[0].contains("allowRemote"), "{told:?}");
        let config = good(&with(tls));
        assert_eq!(config.api.unwrap().tls.unwrap().client_authorities, "a");
        assert!(good(&with(r#""allowRemote":true"#)).api.unwrap().allow_remote);
    }
    // TLS without an authority for clients is none of these.
    let half = r#"{"tag":"API","listen":"0.0.0.0:1","tls":{"certificateFile":"c","keyFile":"k"}}"#;
    assert!(bad(&api(half, LOCAL)).iter().any(|line| line.contains("clientCaFile")));
}

#[test]
fn an_open_inbound_that_rules_lead_from_is_refused_too() {
    let open = r#""port":62789,"settings":{"address":"127.0.0.1"}"#;
    let text = api(r#"{"tag":"API","services":["StatsService"]}"#, open);
    let told = bad(&text);
    assert!(
        told[0].starts_with("c.json:2:13: error: inbounds[0]: a rule leads from here"),
        "{told:?}"
    );
    good(&text.replace("\"services\"", "\"allowRemote\":true,\"services\""));
    // The rule says who may come, or it is about others.
    good(&text.replace("\"inboundTag\"", "\"source\":[\"192.0.2.7\"],\"inboundTag\""));
    let other = text.replace("[\"in\"]", "[\"other\"]");
    assert!(
        warned(&other)
            .iter()
            .all(|line| line.contains("no inbound has the tag"))
    );
    // Users are known, whatever the rule says.
    let users = text.replace("\"tunnel\"", "\"vless\"").replace(
        r#"{"address":"127.0.0.1"}"#,
        &format!(r#"{{"clients":[{{"id":"{ID}"}}],"decryption":"none"}}"#),
    );
    good(&users);
    let socks = text
        .replace("\"tunnel\"", "\"socks\"")
        .replace(r#"{"address":"127.0.0.1"}"#, "{}");
    assert!(bad(&socks)[0].contains("a rule leads from here"));
}

#[test]
fn what_cannot_be_meant_is_told() {
    let told = warned(&api(r#"{"tag":"API","services":["StatService"]}"#, LOCAL));
    assert!(told[1].contains("there is no service \"StatService\""), "{told:?}");
    assert!(told[1].contains("did you mean \"StatsService\"?"), "{told:?}");
    assert!(told[0].contains("the API has no service"), "{told:?}");
    let told = bad(&api(r#"{"services":["StatsService"]}"#, LOCAL));
    assert!(
        told.iter().any(|line| line.contains("api: nobody can reach the API")),
        "{told:?}"
    );
    let told = bad(&api(r#"{"tag":"API","listen":"nowhere"}"#, LOCAL));
    assert!(told[0].contains("\"nowhere\" ends in no port"), "{told:?}");
    let taken = api(r#"{"tag":"API","services":["StatsService"]}"#, LOCAL)
        .replace(FREEDOM, r#"{"protocol":"freedom","tag":"API"}"#);
    assert!(bad(&taken)[0].contains("an outbound has the tag \"API\""));
    // The API's own listener has this one.
    for own in [
        api(r#"{"tag":"API","services":["StatsService"]}"#, LOCAL).replace("\"in\"", "\"api.listen\""),
        api(r#"{"tag":"API","services":["StatsService"]}"#, LOCAL).replace(
            FREEDOM,
            &format!(r#"{FREEDOM},{{"protocol":"freedom","tag":"api.listen"}}"#),
        ),
    ] {
        assert!(bad(&own)[0].contains("that of the API's own listener"), "{own}");
    }
    let unled = api(r#"{"tag":"other","services":["StatsService"]}"#, LOCAL);
    assert!(bad(&unled)[0].contains("no outbound has the tag \"API\""));
    let unled =
        format!(r#"{{"api":{{"tag":"a","services":["StatsService"]}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#);
    assert!(warned(&unled)[0].contains("no rule leads to \"a\""));
}
