//! What is looked for in first bytes, and what becomes of it.

use sealway_v2ray::config::{Override, Sniffing};

use super::*;

fn read_sniffing(members: &str) -> Sniffing {
    let inbound = format!(r#"{{"port":1,"protocol":"socks",{members}}}"#);
    good(&with(&inbound, FREEDOM)).inbounds[0].sniffing.clone()
}

#[test]
fn every_word_is_read() {
    use Override::{FakeDns, Http, Quic, Tls};
    let read = |words: &str| {
        let sniffing = read_sniffing(&format!(r#""sniffing":{{"enabled":true,"destOverride":{words}}}"#));
        assert!(sniffing.enabled.value);
        sniffing.dest_override.0
    };
    assert_eq!(
        read(r#"["http","TLS","https","ssl","quic","fakedns","fakedns+others"]"#),
        [Http, Tls, Tls, Tls, Quic, FakeDns, FakeDns]
    );
    assert_eq!(read(r#""http, quic""#), [Http, Quic]);
    assert_eq!(read("[]"), []);
    for (words, place) in [
        (r#"["http","htpp"]"#, "destOverride[1]"),
        (r#""bittorrent""#, "destOverride"),
    ] {
        let inbound =
            format!(r#"{{"port":1,"protocol":"socks","sniffing":{{"enabled":true,"destOverride":{words}}}}}"#);
        let told = bad(&with(&inbound, FREEDOM));
        assert!(
            told.len() == 1 && told[0].contains(place) && told[0].contains("is not known"),
            "{told:?}"
        );
    }
}

#[test]
fn lists_are_those_of_rules_and_switches_are_off() {
    let plain = read_sniffing(r#""sniffing":{}"#);
    assert!(!plain.enabled.value && !plain.metadata_only && !plain.route_only);
    assert_eq!(plain.server_first.unwrap().to_string(), "21,22,25,110,143,587,3306");
    let full = read_sniffing(
        r#""sniffing":{"enabled":true,"metadataOnly":true,"routeOnly":true,"serverFirstPorts":"",
            "domainsExcluded":["Courier.push","full:a.example","domain:b.example","regexp:^c[0-9]"],
            "ipsExcluded":["192.0.2.0/24","geoip:private"]}"#,
    );
    assert!(full.metadata_only && full.route_only && full.server_first.is_none());
    let names = |name: &str| full.domains_excluded.matches(name);
    // What has no prefix is a part of a name.
    assert!(names("x.courier.push.example") && names("a.example") && names("x.b.example") && names("c7.example"));
    assert!(!names("x.a.example") && !names("courier.example"));
    let ips = |ip: &str| full.ips_excluded.matches(ip.parse().unwrap());
    assert!(ips("192.0.2.9") && ips("10.0.0.1") && !ips("198.51.99.1"));
    let wrong = r#"{"port":1,"protocol":"socks","sniffing":{"ipsExcluded":["x"],"domainsExcluded":["regexp:("]}}"#;
    assert_eq!(bad(&with(wrong, FREEDOM)).len(), 2);
}

#[test]
fn the_older_form_counts_where_the_newer_is_not() {
    let old = read_sniffing(r#""domainOverride":["http","tls"]"#);
    assert!(old.enabled.value && old.dest_override.0 == [Override::Http, Override::Tls]);
    let both = read_sniffing(r#""domainOverride":["http"],"sniffing":{"enabled":false}"#);
    assert!(!both.enabled.value && both.dest_override.0.is_empty());
    assert!(!read_sniffing(r#""domainOverride":[]"#).enabled.value);
}
