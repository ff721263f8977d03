//! Freedom: pieces, noise, source addresses.

use std::net::IpAddr;

use sealway_v2ray::config::{FreedomSettings, NoisePacket, NoiseTo, OutboundProtocol, Packets, SendThrough};
use sealway_v2ray::xhttp::settings::Span;

use super::*;

fn with_settings(settings: &str) -> String {
    outbound(&format!(r#"{{"protocol":"freedom","settings":{settings}}}"#))
}

#[track_caller]
fn settings(text: &str) -> FreedomSettings {
    match good(&with_settings(text)).outbounds.remove(0).protocol {
        OutboundProtocol::Freedom(freedom) => freedom,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pieces() {
    for (written, packets, length, interval, max_split) in [
        (
            r#"{"packets":"tlshello","length":"100-200","interval":"10-20","maxSplit":"3-6"}"#,
            Packets::TlsHello,
            (100, 200),
            (10, 20),
            (3, 6),
        ),
        (
            r#"{"packets":"TLSHello","length":5,"interval":0}"#,
            Packets::TlsHello,
            (5, 5),
            (0, 0),
            (0, 0),
        ),
        (
            r#"{"packets":"1-3","length":"5","interval":""}"#,
            Packets::Writes(Span::new(1, 3)),
            (5, 5),
            (0, 0),
            (0, 0),
        ),
        (
            r#"{"packets":"3-1","length":"5","interval":1}"#,
            Packets::Writes(Span::new(1, 3)),
            (5, 5),
            (1, 1),
            (0, 0),
        ),
        (
            r#"{"packets":"2","length":"9-5","interval":-1}"#,
            Packets::Writes(Span::just(2)),
            (5, 9),
            (0, 0),
            (0, 0),
        ),
        (
            r#"{"packets":"","length":"5","interval":1}"#,
            Packets::All,
            (5, 5),
            (1, 1),
            (0, 0),
        ),
    ] {
        let read = settings(&format!(r#"{{"fragment":{written}}}"#)).fragment.unwrap();
        let span = |(from, to)| Span::new(from, to);
        assert_eq!(read.packets, packets, "{written}");
        assert_eq!(
            (read.length, read.interval),
            (span(length), span(interval)),
            "{written}"
        );
        assert_eq!(read.max_split, span(max_split), "{written}");
    }
    for (wrong, said) in [
        (r#"{"packets":"tlshello","interval":1}"#, "`length` is missing"),
        (r#"{"packets":"tlshello","length":5}"#, "`interval` is missing"),
        (r#"{"length":"0-5","interval":1}"#, "a piece has one byte at least"),
        (r#"{"packets":"0-3","length":5,"interval":1}"#, "names no packets"),
        (r#"{"packets":"x","length":5,"interval":1}"#, "names no packets"),
        (r#"{"packets":"1-1","length":"x","interval":1}"#, "fragment.length"),
    ] {
        let told = bad(&with_settings(&format!(r#"{{"fragment":{wrong}}}"#)));
        assert!(told.len() == 1 && told[0].contains(said), "{wrong}: {told:?}");
    }
}

#[test]
fn noises() {
    let random = NoisePacket::Random(Span::new(50, 150));
    for (written, packet, to) in [
        (
            r#"{"type":"rand","packet":"50-150","delay":"10-16"}"#,
            random.clone(),
            NoiseTo::Ip,
        ),
        (
            r#"{"type":"rand","packet":"150-50","applyTo":"ipv4"}"#,
            random,
            NoiseTo::Ipv4,
        ),
        (
            r#"{"type":"str","packet":"hi","applyTo":"ipv6"}"#,
            NoisePacket::Fixed(b"hi".to_vec()),
            NoiseTo::Ipv6,
        ),
        (r#"{"type":"str"}"#, NoisePacket::Fixed(Vec::new()), NoiseTo::Ip),
        (
            r#"{"type":"hex","packet":"AA0b"}"#,
            NoisePacket::Fixed(vec![0xaa, 0x0b]),
            NoiseTo::Ip,
        ),
        (
            r#"{"type":"base64","packet":"+/8="}"#,
            NoisePacket::Fixed(vec![0xfb, 0xff]),
            NoiseTo::Ip,
        ),
        (
            r#"{"type":"base64","packet":"-_8"}"#,
            NoisePacket::Fixed(vec![0xfb, 0xff]),
            NoiseTo::Ip,
        ),
    ] {
        let read = settings(&format!(r#"{{"noises":[{written}]}}"#)).noises.remove(0);
        assert_eq!((read.packet, read.to), (packet, to), "{written}");
    }
    for (wrong, said) in [
        (r#"{"packet":"1"}"#, "`type` is missing"),
        (r#"{"type":"foo","packet":"1"}"#, "\"foo\" is not known here"),
        (r#"{"type":"rand","packet":"0"}"#, "is no number of bytes"),
        (r#"{"type":"rand","packet":"99999"}"#, "65507 bytes at most"),
        (r#"{"type":"hex","packet":"zz"}"#, "hexadecimal"),
        (r#"{"type":"hex","packet":"abc"}"#, "hexadecimal"),
        (r#"{"type":"base64","packet":"!!"}"#, "is no base64"),
        (
            r#"{"type":"str","packet":"a","applyTo":"ipv7"}"#,
            "\"ipv7\" is not known here",
        ),
    ] {
        let told = bad(&with_settings(&format!(r#"{{"noises":[{wrong}]}}"#)));
        assert!(told.len() == 1 && told[0].contains(said), "{wrong}: {told:?}");
    }
    let told = bad(&with_settings(r#"{"noise":{"type":"rand","packet":"50"}}"#));
    assert!(told[0].contains("write `noises`, a list of objects"), "{told:?}");
}

#[test]
fn source_addresses() {
    let of = |source: &str| outbound(&format!(r#"{{"protocol":"freedom","sendThrough":"{source}"}}"#));
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    for (written, meant) in [
        ("192.0.2.7", SendThrough::Address(ip("192.0.2.7"))),
        ("origin", SendThrough::Origin),
        ("srcip", SendThrough::Client),
    ] {
        assert_eq!(good(&of(written)).outbounds[0].send_through, Some(meant), "{written}");
    }
    for (net, low, high) in [
        ("10.0.7.9/24", "10.0.7.0", "10.0.7.255"),
        ("2001:db8:1::/64", "2001:db8:1::", "2001:db8:1::ffff:ffff:ffff:ffff"),
        ("192.0.2.1/32", "192.0.2.1", "192.0.2.1"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
    ] {
        let Some(SendThrough::Pool(pool)) = good(&of(net)).outbounds[0].send_through else {
            panic!("{net}");
        };
        assert_eq!(SendThrough::drawn(pool, 0), ip(low), "{net}");
        assert_eq!(SendThrough::drawn(pool, u128::MAX), ip(high), "{net}");
    }
    for (wrong, said) in [
        ("Origin", "is no IP address"),
        ("example.com", "is no IP address"),
        ("10.0.0.1/33", "is no network"),
    ] {
        let told = bad(&of(wrong));
        assert!(told[0].contains(said), "{told:?}");
    }
    // A connection that several clients share is nobody's.
    let proxy = |more: &str| {
        outbound(&format!(
            r#"{{"protocol":"trojan","sendThrough":"origin","settings":{{"servers":[
                {{"address":"192.0.2.1","port":1,"password":"p"}}]}}{more}}}"#
        ))
    };
    assert_eq!(good(&proxy("")).outbounds[0].send_through, Some(SendThrough::Origin));
    good(&proxy(r#","streamSettings":{"network":"ws"}"#));
    for shared in [
        r#","streamSettings":{"network":"grpc"}"#,
        r#","streamSettings":{"network":"xhttp"}"#,
        r#","mux":{"enabled":true}"#,
    ] {
        let told = bad(&proxy(shared));
        assert!(
            told[0].contains("outbounds[0].sendThrough: not supported yet: an address of the client"),
            "{told:?}"
        );
    }
}

#[test]
fn a_transport_leads_to_one_place() {
    let freedom = |settings: &str, stream: &str| {
        outbound(&format!(
            r#"{{"protocol":"freedom","settings":{{{settings}}},"streamSettings":{{{stream}}}}}"#
        ))
    };
    let (whole, host, port) = (
        r#""redirect":"server.example:443""#,
        r#""redirect":"server.example:""#,
        r#""redirect":":443""#,
    );
    let tls = r#""security":"tls","tlsSettings":{"serverName":"server.example"}"#;
    for stream in [r#""network":"ws""#, r#""network":"httpupgrade""#, tls] {
        for settings in [whole, host] {
            good(&freedom(settings, stream));
        }
        for settings in ["", port] {
            let told = warned(&freedom(settings, stream));
            assert!(told[0].contains("every target is spoken to by this"), "{told:?}");
            assert!(told[0].contains("write host:port as `redirect`"), "{told:?}");
        }
    }
    // They keep connections, of which there is to be no number that clients choose.
    for stream in [
        r#""network":"grpc""#,
        r#""network":"http","security":"tls""#,
        r#""network":"xhttp""#,
    ] {
        good(&freedom(whole, stream));
        for settings in ["", host, port] {
            let told = bad(&freedom(settings, stream));
            assert!(
                told[0].contains("outbounds[0].streamSettings: grpc, http and xhttp keep"),
                "{told:?}"
            );
        }
    }
}
