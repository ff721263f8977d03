//! `metrics`: where numbers are asked for.

use sealway_v2ray::config::{ServiceListen, UnixName};

use super::{good, read, told};

fn with(metrics: &str, more: &str) -> String {
    format!(
        r#"{{"outbounds":[{{"tag":"direct","protocol":"freedom"}}],"inbounds":[{}],"metrics":{metrics}{more}}}"#,
        super::SOCKS
    )
}

fn listen(text: &str) -> ServiceListen {
    let config = good(&with(&format!(r#"{{"listen":"{text}"}}"#), ""));
    config.metrics.unwrap().listen.unwrap()
}

#[test]
fn it_listens_on_loopback_or_on_unix_sockets() {
    let ip = |text: &str| ServiceListen::Ip(text.parse().unwrap());
    assert_eq!(listen("127.0.0.1:9500"), ip("127.0.0.1:9500"));
    assert_eq!(listen("127.3.2.1:9500"), ip("127.3.2.1:9500"));
    assert_eq!(listen("[::1]:9500"), ip("[::1]:9500"));
    assert_eq!(listen("localhost:9500"), ip("127.0.0.1:9500"));
    let path = UnixName::Path("/run/m.sock".into());
    assert_eq!(listen("/run/m.sock"), ServiceListen::Unix(path.clone(), None));
    assert_eq!(listen("/run/m.sock,0660"), ServiceListen::Unix(path, Some(0o660)));
    let name = UnixName::Abstract(b"m".to_vec());
    assert_eq!(listen("@m"), ServiceListen::Unix(name, None));
}

#[test]
fn other_machines_are_let_in_by_an_explicit_word_alone() {
    for address in [
        "0.0.0.0:9500",
        "192.0.2.1:9500",
        "[::]:9500",
        ":9500",
        "[2001:db8::1]:9500",
        "[::ffff:192.0.2.1]:9500",
    ] {
        let refused = read(&with(&format!(r#"{{"listen":"{address}"}}"#), ""));
        assert!(refused.config.is_none(), "{address}");
        let said = told(&refused);
        assert!(
            said.len() == 1 && said[0].contains(": error: metrics.listen: other machines reach this address"),
            "{said:?}"
        );
        let config = good(&with(&format!(r#"{{"listen":"{address}","allowRemote":true}}"#), ""));
        assert!(!config.metrics.unwrap().listen.unwrap().is_this_machine(), "{address}");
    }
}

#[test]
fn what_is_no_address_is_refused_with_its_place() {
    for (metrics, words) in [
        (r#"{"listen":"9500"}"#, "has no address in front of its port"),
        (r#"{"listen":"127.0.0.1"}"#, "ends in no port"),
        (r#"{"listen":"127.0.0.1:0"}"#, "ends in no port"),
        (
            r#"{"listen":"example.org:9500"}"#,
            "is a name, and what is listened on is an address",
        ),
        (r#"{"listen":"/run/m.sock,9"}"#, "is no mode of a file"),
        (r#"{"listen":9500}"#, "a string"),
        (r#"{}"#, "neither `listen` nor `tag`"),
        (r#"{"tag":"direct"}"#, "an outbound has the tag \"direct\" already"),
    ] {
        let refused = read(&with(metrics, ""));
        let said = told(&refused);
        assert!(refused.config.is_none() && said.len() == 1, "{said:?}");
        assert!(said[0].starts_with("c.json:1:") && said[0].contains(words), "{said:?}");
    }
}

#[test]
fn rules_lead_to_its_tag_and_balancers_do_not() {
    let config = good(&with(
        r#"{"tag":"numbers"}"#,
        r#","routing":{"rules":[{"port":1,"outboundTag":"numbers"}]}"#,
    ));
    assert_eq!(config.metrics.unwrap().tag, "numbers");
    assert_eq!(config.routing.rules.len(), 1);
    let balanced = r#","routing":{"balancers":[{"tag":"b","selector":["numbers"]}]}"#;
    let said = told(&read(&with(r#"{"tag":"numbers"}"#, balanced)));
    assert!(
        said.iter().any(|line| line.contains("routing.balancers[0]")),
        "{said:?}"
    );
}
