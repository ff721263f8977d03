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
        let download =
            format!(r#"{{"address":"192.0.2.2","port":443,"network":"xhttp","sockopt":{{"dialerProxy":"{other}"}}}}"#);
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
