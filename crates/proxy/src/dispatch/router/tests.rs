use super::*;
use crate::settings::RoutingStrategy::{AsIs, IpIfNonMatch, IpOnDemand};
use crate::settings::{DomainMatch, IpMatch, Settings, UserMatch, UserMatches};
use sealway_v2ray::config::{At, Position};
use sealway_v2ray::{Address, Network};

/// What would be found out, and how often somebody asked.
#[derive(Default)]
struct Answers {
    ips: Vec<IpAddr>,
    program: Option<Arc<Program>>,
    asked: (u32, u32),
}

impl Answers {
    fn ips(ips: &[&str]) -> Self {
        let ips = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        Answers {
            ips,
            ..Answers::default()
        }
    }
}

impl Help for Answers {
    async fn addresses(&mut self) -> Vec<IpAddr> {
        self.asked.0 += 1;
        self.ips.clone()
    }

    async fn program(&mut self) -> Option<Arc<Program>> {
        self.asked.1 += 1;
        self.program.clone()
    }
}

fn made(rules: &[Rule], by_name: RoutingStrategy, tags: &[&str]) -> Result<Router, Error> {
    let rules: Vec<_> = rules.iter().cloned().map(Arc::new).collect();
    Router::new(&rules, by_name, tags, &["balancer"], &Lists::default(), None)
}

async fn choose(router: &Router, host: &str, port: u16, answer: &[&str]) -> Option<usize> {
    let target = Destination::tcp(Address::parse(host).unwrap(), port);
    let question = Question {
        target: &target,
        name: None,
        source: Some("192.0.2.9:1000".parse().unwrap()),
        local: None,
        email: "a@b",
        vless_route: None,
        inbound: "in",
        protocol: None,
        attributes: &Attributes::new(),
    };
    let chosen = router.choose(&question, &mut Answers::ips(answer)).await;
    chosen.map(|decision| match decision.lead {
        Lead::Outbound(at) => at,
        Lead::Balancer(at) => 100 + at,
    })
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
    let error = made(&[to("gone")], AsIs, &["", "out"]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "routing.rules[0].outboundTag: there is no outbound with the tag \"gone\""
    );
    assert!(made(&[to("")], AsIs, &["", "out"]).is_err());
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
    let router = made(&rules, AsIs, &["0", "1", "2", "3"]).unwrap();
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
    let by = |by_name| made(&rules, by_name, &["0", "1"]).unwrap();
    let private = ["10.0.0.1"];
    assert_eq!(choose(&by(AsIs), "x", 1, &private).await, Some(1));
    assert_eq!(choose(&by(IpOnDemand), "x", 1, &private).await, Some(0));
    assert_eq!(choose(&by(IpIfNonMatch), "x", 1, &private).await, Some(1));
    assert_eq!(choose(&by(IpIfNonMatch), "y", 1, &private).await, Some(0));
    assert_eq!(choose(&by(AsIs), "10.0.0.1", 1, &[]).await, Some(0));
}

/// An address that is dialled by itself, with a name that only the rules know, is not looked up by that name.
#[tokio::test]
async fn a_name_beside_an_address_is_not_resolved() {
    let rules = [Rule {
        ips: vec![IpMatch::Private(true)],
        ..to("0")
    }];
    let target = Destination::tcp(Address::parse("198.51.99.1").unwrap(), 443);
    for by_name in [IpOnDemand, IpIfNonMatch] {
        let rules: Vec<_> = rules.iter().cloned().map(Arc::new).collect();
        let router = Router::new(&rules, by_name, &["0"], &[], &Lists::default(), None).unwrap();
        let question = Question {
            target: &target,
            name: Some("x"),
            source: None,
            local: None,
            email: "",
            inbound: "",
            protocol: None,
            attributes: &Attributes::new(),
            vless_route: None,
        };
        let mut answers = Answers::ips(&["10.0.0.1"]);
        assert!(router.choose(&question, &mut answers).await.is_none());
        assert_eq!(answers.asked.0, 0);
    }
}

/// The rule that this text stands for.
fn rule(conditions: &str) -> Rule {
    let text = format!(
        r#"{{"outbounds": [{{"tag": "0", "protocol": "freedom"}}], "inbounds": [],
            "routing": {{"rules": [{{{conditions}, "outboundTag": "0"}}]}}}}"#
    );
    Settings::of_text(&text).rules.remove(0)
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
        vless_route: Some(0x1234),
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
        vless_route: None,
        inbound: "",
        protocol: None,
        attributes: &Attributes::new(),
    };
    let fits = async |conditions: &str, question: &Question<'_>| {
        let router = made(&[rule(conditions)], AsIs, &["0"]).unwrap();
        router.choose(question, &mut Answers::default()).await.is_some()
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
        (r#""vlessRoute": "4000-5000""#, r#""vlessRoute": "4661""#),
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
        r#""vlessRoute": "0-65535""#,
        r#""process": ["self/"]"#,
        r#""attrs": {":path": ""}"#,
    ] {
        assert!(!fits(conditions, &by_address).await, "{conditions}");
    }
}

#[tokio::test]
async fn a_rule_may_lead_to_a_balancer() {
    let by = |tag: &str| Rule {
        balancer_tag: tag.into(),
        ports: vec![(1, 1)],
        ..Rule::default()
    };
    let router = made(&[by("balancer")], AsIs, &["0"]).unwrap();
    assert_eq!(choose(&router, "x", 1, &[]).await, Some(100));
    let error = made(&[by("other")], AsIs, &["0"]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "routing.rules[0].balancerTag: there is no balancer with the tag \"other\""
    );
}

/// Names are resolved and programs looked for when nothing else can decide, and once.
#[tokio::test]
async fn what_costs_most_is_asked_last_and_once() {
    let rules = [
        rule(r#""port": 1, "ip": "192.0.2.1""#),
        rule(r#""network": "udp", "process": "curl""#),
        rule(r#""domain": "example", "ip": "192.0.2.2""#),
        rule(r#""process": "wget", "ip": "192.0.2.3""#),
        rule(r#""process": "curl", "ip": "192.0.2.3""#),
        rule(r#""domain": "last""#),
    ];
    for (by_name, name, answer, program, decided, asked) in [
        // No rule about addresses and programs can fit.
        (IpOnDemand, "last.example.org", "192.0.2.9", "x", Some(5), (1, 0)),
        (IpOnDemand, "a.example", "192.0.2.2", "curl", Some(2), (1, 0)),
        (IpOnDemand, "a.test", "192.0.2.3", "curl", Some(4), (1, 1)),
        (IpOnDemand, "a.test", "192.0.2.3", "wget", Some(3), (1, 1)),
        (IpOnDemand, "a.test", "192.0.2.4", "wget", None, (1, 0)),
        (AsIs, "a.example", "192.0.2.2", "curl", None, (0, 0)),
        (IpIfNonMatch, "last.test", "192.0.2.3", "curl", Some(5), (0, 0)),
        (IpIfNonMatch, "a.test", "192.0.2.3", "curl", Some(4), (1, 1)),
        (IpIfNonMatch, "a.test", "192.0.2.4", "curl", None, (1, 0)),
        // An address is not asked for what it is.
        (IpOnDemand, "192.0.2.3", "192.0.2.9", "wget", Some(3), (0, 1)),
        (IpIfNonMatch, "192.0.2.9", "192.0.2.3", "wget", None, (0, 0)),
    ] {
        let router = made(&rules, by_name, &["0"]).unwrap();
        let target = Destination::tcp(Address::parse(name).unwrap(), 2);
        let question = Question {
            target: &target,
            name: None,
            source: None,
            local: None,
            email: "",
            vless_route: None,
            inbound: "",
            protocol: None,
            attributes: &Attributes::new(),
        };
        let mut answers = Answers::ips(&[answer]);
        let path = format!("/usr/bin/{program}");
        answers.program = Some(Arc::new(Program { pid: 1, path }));
        let chosen = router
            .choose(&question, &mut answers)
            .await
            .map(|decision| decision.rule);
        assert_eq!(
            (chosen, answers.asked),
            (decided, asked),
            "{by_name:?} {name} {program}"
        );
    }
}

#[test]
fn names_are_compared_in_one_form() {
    for (text, wanted) in [("a.example", Some("a.example")), ("A.eXample..", Some("a.example"))] {
        with_name(Some(text), |name| assert_eq!(name, wanted));
    }
    let long = "A".repeat(USUAL_NAME + 1);
    with_name(Some(&long), |name| {
        assert_eq!(name, Some(long.to_ascii_lowercase().as_str()))
    });
    with_name(None, |name| assert_eq!(name, None));
}
