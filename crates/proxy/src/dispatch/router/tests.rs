use super::*;
use crate::settings::{DomainMatch, IpMatch, Settings, UserMatch, UserMatches};
use sealway_v2ray::config::{At, File, Options, Position, load};
use sealway_v2ray::{Address, Network};

async fn choose(router: &Router, host: &str, port: u16, answer: &[&str]) -> Option<usize> {
    let target = Destination::tcp(Address::parse(host).unwrap(), port);
    let question = Question {
        target: &target,
        name: None,
        source: Some("192.0.2.9:1000".parse().unwrap()),
        local: None,
        email: "a@b",
        inbound: "in",
        protocol: None,
        attributes: &Attributes::new(),
    };
    let answer = answer.iter().map(|ip| ip.parse().unwrap()).collect();
    let chosen = router.choose(&question, async || answer).await;
    chosen.map(|decision| decision.outbound)
}

fn email(text: &str) -> UserMatches {
    let value = UserMatch::Email(text.into());
    UserMatches(vec![At {
        value,
        at: Position::default(),
    }])
}

fn to(tag: &str) -> Rule {
    Rule {
        outbound_tag: tag.into(),
        ..Rule::default()
    }
}

#[test]
fn a_rule_that_leads_nowhere_is_refused() {
    let error = Router::new(&[to("gone")], RouteByName::AsIs, &["", "out"], &Lists::default())
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "routing.rules[0].outboundTag: there is no outbound with the tag \"gone\""
    );
    assert!(Router::new(&[to("")], RouteByName::AsIs, &["", "out"], &Lists::default()).is_err());
}

#[tokio::test]
async fn the_first_rule_that_fits_decides() {
    let domain = |set, tag| Rule {
        domains: vec![set],
        ..to(tag)
    };
    let rules = [
        domain(DomainMatch::Full("a.example".into()), "0"),
        domain(DomainMatch::Domain("example".into()), "1"),
        domain(DomainMatch::Dotless("host".into()), "2"),
        Rule {
            ports: vec![(80, 90)],
            networks: vec![Network::Tcp],
            users: email("a@b"),
            ..to("3")
        },
        Rule {
            ports: vec![(100, 100)],
            users: email("x@y"),
            ..to("0")
        },
    ];
    let router = Router::new(&rules, RouteByName::AsIs, &["0", "1", "2", "3"], &Lists::default()).unwrap();
    assert_eq!(choose(&router, "A.example", 1, &[]).await, Some(0));
    assert_eq!(choose(&router, "b.a.example", 1, &[]).await, Some(1));
    assert_eq!(choose(&router, "example", 1, &[]).await, Some(1));
    assert_eq!(choose(&router, "notexample", 1, &[]).await, None);
    assert_eq!(choose(&router, "myhost", 1, &[]).await, Some(2));
    assert_eq!(choose(&router, "my.host", 1, &[]).await, None);
    assert_eq!(choose(&router, "192.0.2.1", 85, &[]).await, Some(3));
    assert_eq!(choose(&router, "192.0.2.1", 100, &[]).await, None);
}

#[tokio::test]
async fn rules_by_address_resolve_when_told_to() {
    let rules = [
        Rule {
            ips: vec![IpMatch::Private(true)],
            ..to("0")
        },
        Rule {
            domains: vec![DomainMatch::Keyword("x".into())],
            ..to("1")
        },
    ];
    let by = |by_name| Router::new(&rules, by_name, &["0", "1"], &Lists::default()).unwrap();
    let private = ["10.0.0.1"];
    assert_eq!(choose(&by(RouteByName::AsIs), "x", 1, &private).await, Some(1));
    assert_eq!(choose(&by(RouteByName::OnDemand), "x", 1, &private).await, Some(0));
    assert_eq!(choose(&by(RouteByName::IfNonMatch), "x", 1, &private).await, Some(1));
    assert_eq!(choose(&by(RouteByName::IfNonMatch), "y", 1, &private).await, Some(0));
    assert_eq!(choose(&by(RouteByName::AsIs), "10.0.0.1", 1, &[]).await, Some(0));
}

/// The rule that this text stands for.
fn rule(conditions: &str) -> Rule {
    let text = format!(
        r#"{{"outbounds": [{{"tag": "0", "protocol": "freedom"}}], "inbounds": [],
            "routing": {{"rules": [{{{conditions}, "outboundTag": "0"}}]}}}}"#
    );
    let file = File {
        name: "config.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    Settings::from_config(&config).unwrap().rules.remove(0)
}

/// Each condition in each form, alone: once so that it holds, once so that it does not.
#[tokio::test]
async fn every_condition_counts() {
    let target = Destination {
        network: Network::Udp,
        address: Address::parse("Www.Blocked.Example.").unwrap(),
        port: 443,
    };
    let by_name = Question {
        target: &target,
        name: None,
        source: Some("192.0.2.9:1000".parse().unwrap()),
        local: Some("[2001:db8::7]:8443".parse().unwrap()),
        email: "Someone@Example",
        inbound: "in",
        protocol: Some("http1"),
        attributes: &[(":method", "GET"), (":path", "/a/b"), ("accept", "text/html")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
    };
    let address = Destination::tcp(Address::parse("::ffff:10.1.2.3").unwrap(), 80);
    let by_address = Question {
        name: None,
        target: &address,
        source: None,
        local: None,
        email: "",
        inbound: "",
        protocol: None,
        attributes: &Attributes::new(),
    };
    let fits = async |conditions: &str, question: &Question<'_>| {
        let router = Router::new(&[rule(conditions)], RouteByName::AsIs, &["0"], &Lists::default()).unwrap();
        router.choose(question, async || vec![]).await.is_some()
    };
    for (holds, fails) in [
        (
            r#""domain": ["full:www.blocked.example"]"#,
            r#""domain": ["full:blocked.example"]"#,
        ),
        (
            r#""domain": "domain:blocked.example""#,
            r#""domain": "domain:locked.example""#,
        ),
        (
            r#""domains": ["no", "keyword:lock"]"#,
            r#""domains": ["no", "keyword:luck"]"#,
        ),
        (r#""domain": ["blocked"]"#, r#""domain": ["blocket"]"#),
        (r#""domain": ["regexp:^w{3}\\."]"#, r#""domain": ["regexp:^w{4}\\."]"#),
        (r#""port": "53,400-443""#, r#""port": "53,444-500""#),
        (r#""port": 443"#, r#""port": 44"#),
        (r#""network": "tcp,udp""#, r#""network": "tcp""#),
        (r#""network": ["udp"]"#, r#""network": ["tcp"]"#),
        (r#""source": ["192.0.2.0/24"]"#, r#""source": ["192.0.3.0/24"]"#),
        (r#""sourceIP": "192.0.2.9""#, r#""sourceIP": "10.0.0.0/8""#),
        (r#""sourcePort": "1000""#, r#""sourcePort": "1001-2000""#),
        (r#""localIP": ["2001:db8::/32"]"#, r#""localIP": ["2001:db9::/32"]"#),
        (r#""localPort": 8443"#, r#""localPort": 443"#),
        (r#""user": ["someone@example"]"#, r#""user": ["one@example"]"#),
        (r#""user": ["regexp:^some.*E$"]"#, r#""user": ["regexp:^one"]"#),
        (r#""inboundTag": ["other", "in"]"#, r#""inboundTag": ["In"]"#),
        (
            r#""protocol": ["tls", "HTTP"]"#,
            r#""protocol": ["http2", "bittorrent"]"#,
        ),
        (
            r#""attrs": {":Method": "^G", "Accept": "html"}"#,
            r#""attrs": {":method": "^G", "accept": "json"}"#,
        ),
        (r#""attrs": {":path": "/b$"}"#, r#""attrs": {"cookie": ""}"#),
        (r#""localOS": ["windows", "Linux"]"#, r#""localOS": "android""#),
        // All conditions of a rule must hold.
        (r#""port": 443, "network": "udp""#, r#""port": 443, "network": "tcp""#),
    ] {
        assert!(fits(holds, &by_name).await, "{holds}");
        assert!(!fits(fails, &by_name).await, "{fails}");
    }
    for (holds, fails) in [
        (r#""ip": ["10.0.0.0/8"]"#, r#""ip": ["11.0.0.0/8"]"#),
        (r#""ip": ["geoip:private"]"#, r#""ip": ["!geoip:private"]"#),
        (r#""ip": "10.1.2.3""#, r#""ip": "::ffff:10.1.2.4""#),
    ] {
        assert!(fits(holds, &by_address).await, "{holds}");
        assert!(!fits(fails, &by_address).await, "{fails}");
    }
    // What is not known fits no condition about it.
    for conditions in [
        r#""domain": ["regexp:.*"]"#,
        r#""source": ["0.0.0.0/0", "::/0"]"#,
        r#""sourcePort": "0-65535""#,
        r#""localIP": ["0.0.0.0/0", "::/0"]"#,
        r#""localPort": "0-65535""#,
        r#""user": ["regexp:.*"]"#,
        r#""inboundTag": ["x"]"#,
        r#""protocol": ["http"]"#,
        r#""attrs": {":path": ""}"#,
    ] {
        assert!(!fits(conditions, &by_address).await, "{conditions}");
    }
}
