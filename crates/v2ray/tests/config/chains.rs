//! Outbounds that dial through other outbounds.

use super::*;

/// A configuration with these outbounds beside one inbound.
fn outbounds(list: &str) -> String {
    format!("{{\"inbounds\":[{SOCKS}],\"outbounds\":[{list}]}}")
}

/// A freedom outbound with a tag that dials through another one.
fn dialer(tag: &str, other: &str) -> String {
    let stream = format!(r#"{{"sockopt":{{"dialerProxy":"{other}"}}}}"#);
    format!(r#"{{"tag":"{tag}","protocol":"freedom","streamSettings":{stream}}}"#)
}

fn proxied(tag: &str, proxy: &str) -> String {
    format!(r#"{{"tag":"{tag}","protocol":"freedom","proxySettings":{proxy}}}"#)
}

#[test]
fn both_keys_are_read() {
    let all = [
        dialer("a", "b"),
        proxied("b", r#"{"tag":"c"}"#),
        proxied("c", r#"{"tag":"d","transportLayer":true}"#),
        dialer("d", ""),
        proxied("e", r#"{"tag":""}"#),
    ];
    let config = good(&outbounds(&all.join(",")));
    let [a, b, c, d, e] = &config.outbounds[..] else {
        panic!("five");
    };
    assert_eq!(a.stream.sockopt.dialer_proxy.as_ref().unwrap().value, "b");
    assert!(a.proxy.is_none());
    let proxy = b.proxy.as_ref().unwrap();
    assert!(*proxy.tag == *"c" && !proxy.transport_layer);
    assert!(c.proxy.as_ref().unwrap().transport_layer);
    assert!(d.stream.sockopt.dialer_proxy.is_none() && e.proxy.is_none());
}

#[test]
fn unknown_tags_are_told_with_the_nearest() {
    let told = bad(&outbounds(
        &[dialer("proxy", "fragmemt"), dialer("fragment", "")].join(","),
    ));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("outbounds[0].streamSettings.sockopt.dialerProxy"),
        "{told:?}"
    );
    assert!(told[0].contains("no outbound has the tag \"fragmemt\""), "{told:?}");
    assert!(told[0].contains("did you mean \"fragment\"?"), "{told:?}");
    let told = bad(&outbounds(&proxied("proxy", r#"{"tag":"other"}"#)));
    assert!(told[0].contains("outbounds[0].proxySettings.tag"), "{told:?}");
    assert!(told[0].contains("the tags are \"proxy\""), "{told:?}");
}

#[test]
fn circles_are_told_with_their_tags() {
    let told = bad(&outbounds(&dialer("a", "a")));
    assert!(told[0].contains("in a circle: \"a\" → \"a\""), "{told:?}");
    let circle = [
        dialer("a", "b"),
        proxied("b", r#"{"tag":"c"}"#),
        dialer("c", "a"),
        dialer("d", "a"),
    ];
    let told = bad(&outbounds(&circle.join(",")));
    // Whoever leads into a circle is in none.
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("\"a\" → \"b\" → \"c\" → \"a\""), "{told:?}");
    assert!(told[1].contains("outbounds[1].proxySettings.tag"), "{told:?}");
}

#[test]
fn a_chain_may_be_so_long_and_no_longer() {
    let chain = |outbounds: usize| -> Vec<String> {
        let last = outbounds - 1;
        let one = |at: usize| {
            dialer(
                &format!("o{at}"),
                &if at < last {
                    format!("o{}", at + 1)
                } else {
                    String::new()
                },
            )
        };
        (0..outbounds).map(one).collect()
    };
    good(&outbounds(&chain(9).join(",")));
    let told = bad(&outbounds(&chain(10).join(",")));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("more than 8 outbounds are dialled through"),
        "{told:?}"
    );
}

/// Of two ways the longer one counts.
#[test]
fn a_download_may_make_a_chain_too_long() {
    let by = |hops: usize| {
        let download = json_download("o1");
        let first = format!(
            r#"{{"tag":"a","protocol":"vless","settings":{{"vnext":[{{"address":"192.0.2.1","port":443,"users":[{{"id":"{ID}","encryption":"none"}}]}}]}},
            "streamSettings":{{"network":"xhttp","sockopt":{{"dialerProxy":"o{hops}"}},"xhttpSettings":{{"mode":"packet-up","downloadSettings":{download}}}}}}}"#
        );
        let mut all = vec![first];
        all.extend((1..hops).map(|at| dialer(&format!("o{at}"), &format!("o{}", at + 1))));
        all.push(dialer(&format!("o{hops}"), ""));
        outbounds(&all.join(","))
    };
    good(&by(8));
    let told = bad(&by(9));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("downloadSettings.sockopt.dialerProxy: more than 8"),
        "{told:?}"
    );
}

fn json_download(other: &str) -> String {
    format!(r#"{{"address":"192.0.2.2","port":443,"network":"xhttp","sockopt":{{"dialerProxy":"{other}"}}}}"#)
}

/// An address of the client's is nothing to a connection that several clients share.
#[test]
fn hops_know_the_client_of_a_connection_of_its_own() {
    let text = |stream: &str, more: &str| {
        let first = format!(
            r#"{{"tag":"a","protocol":"trojan","settings":{{"servers":[{{"address":"192.0.2.1","port":443,"password":"p"}}]}},
            "streamSettings":{{{stream}"sockopt":{{"dialerProxy":"b"}}}}{more}}}"#
        );
        let hop = r#"{"tag":"b","protocol":"freedom","sendThrough":"srcip"}"#;
        outbounds(&[&first, hop].join(","))
    };
    good(&text("", ""));
    for (stream, more) in [
        (r#""network":"grpc","#, ""),
        (r#""network":"xhttp","#, ""),
        ("", r#","mux":{"enabled":true}"#),
    ] {
        let told = bad(&text(stream, more));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("sockopt.dialerProxy: not supported yet: a chain in which many clients"),
            "{told:?}"
        );
    }
}

#[test]
fn what_is_left_out_is_told() {
    let ws = r#"{"tag":"a","protocol":"trojan","settings":{"servers":[{"address":"192.0.2.1","port":443,"password":"p"}]},
        "streamSettings":{"network":"ws","security":"tls","sockopt":{"dialerProxy":"b"}},"proxySettings":{"tag":"b"}}"#;
    let told = warned(&outbounds(&[ws, &dialer("b", "")].join(",")));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].contains("`proxySettings` counts instead of `dialerProxy`"),
        "{told:?}"
    );
    assert!(told[1].contains("only its TLS is spoken"), "{told:?}");
    let told = warned(&with(
        r#"{"port":1,"protocol":"socks","streamSettings":{"sockopt":{"dialerProxy":"x"}}}"#,
        FREEDOM,
    ));
    assert!(
        told[0].contains("`dialerProxy` has no effect on an inbound"),
        "{told:?}"
    );
}

#[test]
fn a_download_has_a_chain_of_its_own() {
    let xhttp = |other: &str| {
        let download = json_download(other);
        format!(
            r#"{{"tag":"a","protocol":"vless","settings":{{"vnext":[{{"address":"192.0.2.1","port":443,"users":[{{"id":"{ID}","encryption":"none"}}]}}]}},
            "streamSettings":{{"network":"xhttp","xhttpSettings":{{"mode":"packet-up","downloadSettings":{download}}}}}}}"#
        )
    };
    let told = bad(&outbounds(&xhttp("a")));
    assert!(
        told.iter()
            .any(|line| line.contains("downloadSettings.sockopt.dialerProxy: outbounds dial")),
        "{told:?}"
    );
}

/// Every option of a socket is told of by its name where another outbound has the socket, and only there.
#[test]
fn options_without_a_socket_are_told() {
    let sockopts = [
        ("mark", "7"),
        ("tproxy", "\"tproxy\""),
        ("tcpKeepAliveInterval", "7"),
        ("tcpKeepAliveIdle", "7"),
        ("tcpUserTimeout", "700"),
        ("tcpCongestion", "\"cubic\""),
        ("tcpMaxSeg", "1200"),
        ("tcpMptcp", "true"),
        ("interface", "\"lo\""),
        ("rxBufSize", "65536"),
        ("txBufSize", "65536"),
    ];
    let text = |chain: &str, sockopt: &str, more: &str| {
        let sockopt = format!(r#"{{"sockopt":{{{chain}{sockopt}}}}}"#);
        let first = format!(r#"{{"tag":"a","protocol":"freedom","streamSettings":{sockopt}{more}}}"#);
        outbounds(&[first, dialer("b", "")].join(","))
    };
    let none = |told: Vec<String>| {
        assert!(
            told.iter().all(|line| !line.contains("no socket of its own")),
            "{told:?}"
        )
    };
    let one = |told: Vec<String>, key: &str| {
        let named: Vec<&String> = told
            .iter()
            .filter(|line| line.contains("no socket of its own"))
            .collect();
        assert_eq!(named.len(), 1, "{key}: {told:?}");
        assert!(named[0].contains(&format!("`{key}` has no effect")), "{key}: {told:?}");
    };
    let proxy = r#","proxySettings":{"tag":"b"}"#;
    for (key, value) in sockopts {
        let set = format!("\"{key}\":{value}");
        none(warned(&text("", &set, "")));
        one(warned(&text("\"dialerProxy\":\"b\",", &set, "")), key);
        one(warned(&text("", &set, proxy)), key);
    }
    let source = r#","sendThrough":"127.0.0.1""#;
    none(warned(&text("", "", source)));
    one(warned(&text("\"dialerProxy\":\"b\"", "", source)), "sendThrough");
    one(warned(&text("", "", &format!("{source}{proxy}"))), "sendThrough");
    let told = warned(&text("", "\"domainStrategy\":\"UseIPv4\"", proxy));
    assert!(
        told[0].contains("`domainStrategy` has no effect with `proxySettings`"),
        "{told:?}"
    );
}

#[test]
fn a_download_that_leaves_the_chain_is_told() {
    let text = |sockopt: &str, own: &str| {
        let download = format!(r#"{{"address":"192.0.2.2","port":443,"network":"xhttp","sockopt":{{{own}}}}}"#);
        let first = format!(
            r#"{{"tag":"a","protocol":"vless","settings":{{"vnext":[{{"address":"192.0.2.1","port":443,"users":[{{"id":"{ID}","encryption":"none"}}]}}]}},
            "streamSettings":{{"network":"xhttp","sockopt":{{{sockopt}}},"xhttpSettings":{{"mode":"packet-up","downloadSettings":{download}}}}}}}"#
        );
        outbounds(&[first, dialer("b", "")].join(","))
    };
    let leaves = |text: &str| {
        warned(text)
            .iter()
            .any(|line| line.contains("what comes down does not go through"))
    };
    let chain = r#""dialerProxy":"b""#;
    assert!(leaves(&text(chain, "")));
    assert!(!leaves(&text(chain, chain)) && !leaves(&text("", "")));
    assert!(!leaves(&text(&format!("{chain},\"penetrate\":true"), "")));
}
