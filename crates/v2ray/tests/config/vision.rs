//! The flow xtls-rprx-vision: what it goes with, and what comes of it.

use sealway_v2ray::config::*;
use sealway_v2ray::vless::Flow;
use sealway_v2ray::vless::vision::Seed;

use super::*;

const OTHER: &str = "450bae28-b9da-67d0-16bc-4918dc8d79b5";
const TLS: &str = r#""security":"tls","tlsSettings":{"certificates":[{"certificateFile":"c","keyFile":"k"}]}"#;
const OUT_TLS: &str = r#""security":"tls","tlsSettings":{"serverName":"a"}"#;

fn inbound_with(settings: &str, stream: &str) -> String {
    inbound(&format!(
        r#"{{"port":1,"protocol":"vless","settings":{{"decryption":"none",{settings}}},"streamSettings":{{{stream}}}}}"#
    ))
}

fn outbound_with(user: &str, stream: &str, beside: &str) -> String {
    outbound(&format!(
        r#"{{"protocol":"vless","settings":{{"address":"127.0.0.1","port":1,"id":"{ID}","encryption":"none"{user}}},
        "streamSettings":{{{stream}}}{beside}}}"#
    ))
}

#[test]
fn users_have_their_own_flow_or_that_of_the_inbound() {
    let text = inbound_with(
        &format!(
            r#""flow":"xtls-rprx-vision","testseed":[1,2,3,4],"clients":[{{"id":"{ID}"}},
            {{"id":"{OTHER}","flow":"none","testseed":[5,6,7,8]}},{{"id":"a","flow":""}}]"#
        ),
        TLS,
    );
    let InboundProtocol::Vless(vless) = good(&text).inbounds.remove(0).protocol else {
        panic!()
    };
    let flows: Vec<_> = vless.users.iter().map(|user| (user.flow, user.seed)).collect();
    assert_eq!(
        flows,
        [
            (Flow::Vision, Seed::new([1, 2, 3, 4])),
            (Flow::None, Seed::new([5, 6, 7, 8])),
            (Flow::Vision, Seed::new([1, 2, 3, 4])),
        ]
    );
}

#[test]
fn an_outbound() {
    let vision = |user: &str| {
        let text = outbound_with(user, OUT_TLS, "");
        let OutboundProtocol::Vless(vless) = good(&text).outbounds.remove(0).protocol else {
            panic!()
        };
        vless.vision.map(|vision| (vision.udp_443, vision.seed, vision.ready))
    };
    assert_eq!(vision(""), None);
    assert_eq!(
        vision(r#","flow":"xtls-rprx-vision""#),
        Some((false, Seed::default(), 0))
    );
    assert_eq!(
        vision(r#","flow":"xtls-rprx-vision-udp443","testseed":[0,0,0,0],"testpre":64"#),
        Some((true, Seed::new([0, 1, 0, 1]), 64))
    );
}

#[test]
fn what_it_does_not_go_with_is_told_with_its_place() {
    let user = format!(r#""clients":[{{"id":"{OTHER}"}},{{"id":"{ID}","flow":"xtls-rprx-vision"}}]"#);
    let flow = r#","flow":"xtls-rprx-vision""#;
    let mux = |mux: &str| outbound_with(flow, OUT_TLS, &format!(r#","mux":{{{mux}}}"#));
    let old = |tls: &str| tls.replace(r#""tlsSettings":{"#, r#""tlsSettings":{"maxVersion":"1.2","#);
    for (text, wanted) in [
        (
            inbound_with(&user, ""),
            "inbounds[0].settings.clients[1].flow: the flow xtls-rprx-vision needs TLS around it",
        ),
        (
            inbound_with(r#""flow":"xtls-rprx-vision","clients":[{"id":"a"}]"#, ""),
            "inbounds[0].settings.flow: the flow xtls-rprx-vision needs TLS around it",
        ),
        (
            inbound_with(&user, &format!(r#""network":"ws",{TLS}"#)),
            "inbounds[0].settings.clients[1].flow: the flow xtls-rprx-vision goes over the transport raw",
        ),
        (
            inbound_with(&user, &old(TLS)),
            "needs TLS 1.3, which `maxVersion` forbids",
        ),
        (
            inbound_with(&user.replace("vision", "vision-udp443"), TLS),
            "\"xtls-rprx-vision-udp443\" is obsolete (it is for outbounds",
        ),
        (
            inbound_with(r#""clients":[{"id":"a","testseed":[1,2,3]}]"#, TLS),
            "inbounds[0].settings.clients[0].testseed: `testseed` has four numbers, not 3",
        ),
        (
            outbound_with(flow, "", ""),
            "outbounds[0].settings.flow: the flow xtls-rprx-vision needs TLS around it",
        ),
        (
            outbound_with(flow, &format!(r#""network":"grpc",{OUT_TLS}"#), ""),
            "outbounds[0].settings.flow: the flow xtls-rprx-vision goes over the transport raw",
        ),
        (
            outbound_with(flow, &old(OUT_TLS), ""),
            "needs TLS 1.3, which `maxVersion` forbids",
        ),
        (
            mux(r#""enabled":true"#),
            "outbounds[0].mux.concurrency: with the flow xtls-rprx-vision servers take no streams in a mux",
        ),
        (
            outbound_with(r#","flow":"xtls-rprx-vision","testpre":65"#, OUT_TLS, ""),
            "65 connections at once are too many to keep ready",
        ),
    ] {
        let found = bad(&text);
        assert!(found[0].contains(wanted), "{found:?}, not {wanted}");
        assert!(found[0].starts_with("c.json:"), "{found:?}");
    }
    good(&mux(r#""enabled":true,"concurrency":-1,"xudpConcurrency":16"#));
    good(&mux(r#""enabled":false"#));
}
