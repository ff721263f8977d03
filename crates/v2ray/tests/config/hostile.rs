use proptest::prelude::*;
use sealway_v2ray::config::{File, Options, load};

use super::*;

fn load_bytes(text: &[u8]) -> Loaded {
    load(
        &[File { name: "c", text }],
        &Options {
            strict: false,
            env: &env,
        },
    )
}

#[test]
fn bad_bytes() {
    for text in [&b""[..], b"\xff", b"\xef\xbb\xbf", b"\0", b"null", b"[]", b"1", b"\"\""] {
        let loaded = load_bytes(text);
        assert!(loaded.config.is_none() && !loaded.problems.is_empty(), "{text:?}");
    }
    // A byte order mark and old comments in another encoding are no reason to refuse a file.
    let text = [b"\xef\xbb\xbf// \xd6\xd0\n".as_slice(), with(SOCKS, FREEDOM).as_bytes()].concat();
    assert!(load_bytes(&text).config.is_some());
    let text = inbound(r#"{"tag":"?","port":1,"protocol":"socks"}"#).into_bytes();
    let text: Vec<u8> = text.into_iter().map(|b| if b == b'?' { 0xff } else { b }).collect();
    let loaded = load_bytes(&text);
    assert!(told(&loaded)[0].contains("is not UTF-8"));
    assert_eq!(loaded.config.unwrap().inbounds[0].tag, "\u{fffd}");
}

#[test]
fn huge_numbers_and_wrong_types() {
    for port in [
        "65536",
        "-1",
        "1e3",
        "80.0",
        "99999999999999999999999",
        "\"+80\"",
        "\"1-0\"",
        "true",
        "[]",
        "\"env:NONE\"",
    ] {
        let told = bad(&inbound(&format!(r#"{{"port":{port},"protocol":"socks"}}"#)));
        assert!(told[0].contains("inbounds[0].port: "), "{port}: {told:?}");
    }
    let told = bad(&format!(
        r#"{{"policy":{{"levels":{{"0":{{"connIdle":1e99}}}}}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    assert_eq!(
        told[0].split(": error: ").nth(1).unwrap(),
        "policy.levels.0.connIdle: 1e99 is not a whole number from 0 to 4294967295"
    );
}

#[test]
fn the_list_of_problems_is_bounded() {
    let keys: Vec<String> = (0..10_000).map(|i| format!("\"{i}xxxxxxxxxxxxx\":1")).collect();
    let loaded = read(&format!("{{{}, \"api\":{{\"a\":1}}}}", keys.join(",")));
    assert!(loaded.problems.len() <= 210, "{}", loaded.problems.len());
    assert!(loaded.errors().next().is_some());
    assert!(
        loaded
            .problems
            .last()
            .unwrap()
            .text
            .contains("more problems are not listed")
    );
}

#[test]
fn messages_hold_no_control_characters() {
    let text = "{\"\\u001b[31m\":1,\"inbounds\":[{\"protocol\":\"\\u001b]0;x\\u0007\",\"port\":\"\\u0007\"}],\"dns\":{\"hosts\":{\"\\u0007\":1}},\"outbounds\":[]}";
    for line in told(&read(text)) {
        assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
    }
}

/// JSON of the shape of configurations: real keys and words, in wrong places too.
fn json() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("tcp"),
        Just("ws"),
        Just("tls"),
        Just("none"),
        Just("shadowsocks"),
        Just("trojan"),
        Just("vless"),
        Just("vmess"),
        Just("socks"),
        Just("freedom"),
        Just("a"),
        Just("/x?ed=9"),
        Just("1-2"),
        Just("::1"),
        Just("regexp:("),
        Just("geoip:private"),
        Just(ID),
        Just("@@é"),
        Just("env:PORT"),
        Just("host:1"),
        Just("dns"),
        Just("")
    ];
    let key = prop_oneof![
        Just("inbounds"),
        Just("outbounds"),
        Just("settings"),
        Just("streamSettings"),
        Just("clients"),
        Just("id"),
        Just("protocol"),
        Just("port"),
        Just("fallbacks"),
        Just("password"),
        Just("dest"),
        Just("routing"),
        Just("rules"),
        Just("ip"),
        Just("domain"),
        Just("outboundTag"),
        Just("tag"),
        Just("network"),
        Just("security"),
        Just("tlsSettings"),
        Just("wsSettings"),
        Just("path"),
        Just("address"),
        Just("vnext"),
        Just("users"),
        Just("policy"),
        Just("levels"),
        Just("0"),
        Just("dns"),
        Just("hosts"),
        Just("env"),
        Just("sockopt"),
        Just("listen"),
        Just("certificates")
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i32>().prop_map(|n| n.to_string()),
        word.prop_map(|w| format!("\"{w}\"")),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            proptest::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<String> = members.into_iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_panics(text in json(), second in json()) {
        let files = [File { name: "a", text: text.as_bytes() }, File { name: "b", text: second.as_bytes() }];
        for files in [&files[..1], &files[..]] {
            let loaded = load(files, &Options { strict: false, env: &env });
            // Either a configuration, or a reason why there is none.
            prop_assert_eq!(loaded.config.is_none(), loaded.errors().next().is_some());
        }
    }
}
