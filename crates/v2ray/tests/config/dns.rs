//! The object `dns`, the outbound of that name and the pools of fake addresses.

use std::time::Duration;

use sealway_v2ray::config::{
    Dns, DnsAction, DnsAddress, DnsTransport, FakePool, HostAnswer, NonIpQuery, OutboundProtocol, QueryStrategy,
};

use super::{FREEDOM, SOCKS, bad, good, read, told};

fn with(rest: &str) -> String {
    format!(r#"{{{rest}, "inbounds": [{SOCKS}], "outbounds": [{FREEDOM}]}}"#)
}

fn dns(members: &str) -> Dns {
    good(&with(&format!(r#""dns": {{{members}}}"#))).dns
}

#[test]
fn servers_in_every_form() {
    use DnsTransport::*;
    for (text, transport, local, host, port, path) in [
        ("1.1.1.1", Udp, false, "1.1.1.1", 53, ""),
        (" 1.1.1.1:5353 ", Udp, false, "1.1.1.1", 5353, ""),
        ("2001:db8::1", Udp, false, "2001:db8::1", 53, ""),
        ("[2001:db8::1]", Udp, false, "2001:db8::1", 53, ""),
        ("[2001:db8::1]:54", Udp, false, "2001:db8::1", 54, ""),
        ("dns.example", Udp, false, "dns.example", 53, ""),
        ("udp+local://1.1.1.1", Udp, true, "1.1.1.1", 53, ""),
        ("tcp://1.1.1.1", Tcp, false, "1.1.1.1", 53, ""),
        ("TCP+Local://1.1.1.1:54", Tcp, true, "1.1.1.1", 54, ""),
        ("tls://dns.example", Tls, false, "dns.example", 853, ""),
        ("https://1.1.1.1/dns-query", Https, false, "1.1.1.1", 443, "/dns-query"),
        (
            "https+local://dns.example:8443/q?a=b",
            Https,
            true,
            "dns.example",
            8443,
            "/q?a=b",
        ),
        ("https://dns.example", Https, false, "dns.example", 443, "/"),
        ("https://dns.example?a", Https, false, "dns.example", 443, "/?a"),
        ("h2c://dns.example/q", H2c, false, "dns.example", 80, "/q"),
    ] {
        let wanted = DnsAddress::Server {
            transport,
            local,
            host: sealway_v2ray::Address::parse(host).unwrap(),
            port,
            path: path.into(),
        };
        assert_eq!(
            dns(&format!(r#""servers": ["{text}"]"#)).servers[0].address,
            wanted,
            "{text}"
        );
    }
    let words = dns(r#""servers": ["LocalHost", "fakeDNS", {"address": "1.1.1.1", "port": 54}]"#);
    assert_eq!(
        [&words.servers[0].address, &words.servers[1].address],
        [&DnsAddress::System, &DnsAddress::Fake]
    );
    assert!(matches!(words.servers[2].address, DnsAddress::Server { port: 54, .. }));
    for text in [
        "",
        "ftp://a",
        "1.1.1.1:0",
        "1.1.1.1:x",
        "tcp://1.1.1.1/path",
        "https://",
        "https://a b/",
        "https://a/\\u0001",
        "a:b:c",
        "://a",
    ] {
        let told = bad(&with(&format!(r#""dns": {{"servers": ["{text}"]}}"#)));
        assert!(told[0].contains("dns.servers[0]"), "{text}: {told:?}");
    }
    for text in ["quic+local://dns.example", "quic://dns.example:784"] {
        let told = bad(&with(&format!(r#""dns": {{"servers": ["{text}"]}}"#)));
        assert!(told[0].contains("not supported yet: DNS over QUIC"), "{told:?}");
    }
    for (key, what) in [
        (
            r#""fakedns": [{"ipPool": "198.18.0.0/15"}]"#,
            "pools of fake addresses of one server",
        ),
        (r#""fallbackStrategy": "disabled""#, "`fallbackStrategy` of one server"),
    ] {
        let told = bad(&with(&format!(
            r#""dns": {{"servers": [{{"address": "1.1.1.1", {key}}}]}}"#
        )));
        assert!(
            told[0].contains("not supported yet") && told[0].contains(what),
            "{told:?}"
        );
    }
}

#[test]
fn what_is_written_for_all_servers_holds_where_one_says_nothing() {
    let dns = dns(
        r#""clientIp": "192.0.2.1", "tag": "all", "queryStrategy": "UseIPv4", "cacheStrategy": "disabled", "serveStale": true,
        "serveExpiredTTL": 7, "fallbackStrategy": "disabled_if_any_match", "servers": ["1.1.1.1", {"address": "1.1.1.1",
        "clientIp": "192.0.2.2", "tag": "one", "queryStrategy": "use_sys", "disableCache": false, "serveStale": false,
        "serveExpiredTTL": 0, "timeoutMs": 9, "cacheStrategy": "disabled", "skipFallback": true, "finalQuery": true, "domains": ["domain:a", "b"],
        "expectIPs": ["*", "10.0.0.0/8"], "unexpectedIPs": "geoip:private"}]"#,
    );
    assert!(dns.disable_fallback_if_match && !dns.disable_fallback);
    let of = |at: usize| {
        let server = &dns.servers[at];
        let stale = (server.serve_stale.unwrap(), server.serve_expired_ttl.unwrap());
        let who = (
            server.client_ip.unwrap().to_string(),
            server.tag.clone(),
            server.query_strategy.unwrap(),
        );
        (who, stale, server.disable_cache.unwrap(), server.timeout.as_millis())
    };
    let who = ("192.0.2.1".into(), "all".into(), QueryStrategy::UseIpv4);
    assert_eq!(of(0), (who, (true, 7), true, 4000));
    let who = ("192.0.2.2".into(), "one".into(), QueryStrategy::UseSystem);
    assert_eq!(of(1), (who, (false, 0), false, 9));
    let two = &dns.servers[1];
    assert!(two.skip_fallback && two.final_query && two.domains.matches("x.a") && two.domains.matches("abc"));
    assert!(two.expected_ips.prefer && !two.unexpected_ips.prefer);
    assert!(two.expected_ips.ips.matches([10, 1, 2, 3].into()) && two.unexpected_ips.ips.matches([10, 1, 2, 3].into()));
    assert_eq!(two.timeout, Duration::from_millis(9));
    // Rules may be about the tags of queries.
    let rules = r#""routing": {"rules": [{"inboundTag": ["dns-in", "one"], "outboundTag": "o"}]}"#;
    let text = format!(
        r#"{{"dns": {{"tag": "dns-in", "servers": [{{"address": "1.1.1.1", "tag": "one"}}]}}, {rules}, "inbounds": [{SOCKS}],
        "outbounds": [{{"protocol": "freedom", "tag": "o"}}]}}"#
    );
    good(&text);
}

#[test]
fn hosts_in_every_form() {
    let text = r##""hosts": {"a.example": "192.0.2.1", "domain:b.example": ["::1", "192.0.2.2"], "c.example": ["d.example"],
        "keyword:bad": "#3", "regexp:^x\\d$": "y.example"}"##;
    let hosts = dns(text).hosts;
    let entries = hosts.entries();
    let of = |name: &str| {
        entries
            .iter()
            .find(|(condition, _)| condition.matches(name))
            .map(|(_, answer)| answer)
    };
    let count = |name: &str| match of(name) {
        Some(HostAnswer::Addresses(all)) => all.len(),
        Some(HostAnswer::Code(code)) => 1000 + usize::from(*code),
        None => 0,
    };
    let counts = [
        "a.example",
        "x.a.example",
        "x.b.example",
        "c.example",
        "verybad.example",
        "x1",
        "x11",
    ]
    .map(count);
    assert_eq!(counts, [1, 0, 2, 1, 1003, 1, 0]);
    for text in ["#x", "#4096", "#-1", "#"] {
        let told = bad(&with(&format!(r##""dns": {{"hosts": {{"a": "{text}"}}}}"##)));
        assert!(told[0].contains("dns.hosts.a"), "{told:?}");
    }
    // Of names and addresses in one list, the first name counts, as in Xray.
    let text = with(r#""dns": {"hosts": {"a": ["192.0.2.1", "b.example", "c.example"]}}"#);
    let loaded = read(&text);
    let said = told(&loaded);
    assert!(said.len() == 1 && said[0].contains("\"b.example\" counts"), "{said:?}");
    let wanted = HostAnswer::Addresses(vec![sealway_v2ray::Address::parse("b.example").unwrap()]);
    assert_eq!(loaded.config.unwrap().dns.hosts.entries()[0].1, wanted);
}

#[test]
fn pools_of_fake_addresses() {
    let pools = |text: &str| good(&with(&format!(r#""fakedns": {text}"#))).dns.fake;
    assert_eq!(pools("[]"), []);
    let net = |text: &str, size| FakePool {
        net: text.parse().unwrap(),
        size,
    };
    assert_eq!(
        pools(r#"{"ipPool": "198.18.0.7/15", "poolSize": 131071}"#),
        [net("198.18.0.0/15", 131_071)]
    );
    assert_eq!(
        pools(r#"[{"ipPool": "198.18.0.0/15"}, {"ipPool": "fc00::/18"}]"#),
        [net("198.18.0.0/15", 65_535), net("fc00::/18", 65_535)]
    );
    assert_eq!(pools(r#"{"ipPool": "192.0.2.0/30"}"#), [net("192.0.2.0/30", 3)]);
    for text in [
        r#"{"ipPool": "198.18.0.0/15", "poolSize": 131072}"#,
        r#"{"ipPool": "192.0.2.0/32"}"#,
        r#"{"ipPool": "192.0.2.0/30", "poolSize": 0}"#,
        r#"{"ipPool": "nonsense"}"#,
        r#"[{"ipPool": "198.18.0.0/15"}, {"ipPool": "198.20.0.0/15"}]"#,
    ] {
        let told = bad(&with(&format!(r#""fakedns": {text}"#)));
        assert!(told[0].contains("fakedns"), "{text}: {told:?}");
    }
}

#[test]
fn the_outbound() {
    let outbound = |settings: &str| {
        format!(r#"{{"inbounds": [{SOCKS}], "outbounds": [{{"protocol": "dns", "settings": {{{settings}}}}}]}}"#)
    };
    let read = |settings: &str| match good(&outbound(settings)).outbounds.remove(0).protocol {
        OutboundProtocol::Dns(dns) => dns,
        other => panic!("{other:?}"),
    };
    assert!(read("").non_ip_query.is_none());
    let old =
        read(r#""nonIPQuery": "skip", "blockTypes": [65, 28], "network": "tcp", "address": "1.1.1.1", "port": 54"#);
    assert_eq!(
        (old.non_ip_query, old.block_types.as_slice(), old.port.0),
        (Some(NonIpQuery::Skip), &[65, 28][..], 54)
    );
    let new = read(
        r#""rewriteAddress": "a.example", "rules": [{"action": "return", "qType": "1,28,64-66", "domain": ["full:a"], "rCode": 3},
        {"action": "hijack", "qType": 1}, {"action": "direct"}, {"action": "drop"}]"#,
    );
    let rule = &new.rules.value[0];
    let types = rule.types.as_ref().unwrap();
    assert!(types.contains(28) && types.contains(65) && !types.contains(2) && rule.domains.matches("a"));
    let actions: Vec<DnsAction> = new.rules.value.iter().map(|rule| rule.action).collect();
    assert_eq!(
        actions,
        [DnsAction::Return, DnsAction::Hijack, DnsAction::Direct, DnsAction::Drop]
    );
    for wrong in [
        r#""rules": [{"action": "nonsense"}]"#,
        r#""rules": [{"qType": 1}]"#,
        r#""rules": [{"action": "return", "rCode": 4096}]"#,
        r#""rules": [{"action": "drop"}], "blockTypes": [1]"#,
        r#""nonIPQuery": "nonsense""#,
    ] {
        bad(&outbound(wrong));
    }
}
