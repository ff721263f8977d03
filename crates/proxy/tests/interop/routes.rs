//! Our rules and Xray's: the same file, the same questions, the same answers.
//!
//! Xray is asked by its management API. Every rule leads to an outbound of its own, so an answer names the rule.
//! SEALWAY_ROUTE_QUESTIONS says how many questions are asked.

mod asking;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sealway_proxy::routes::{Leads, Routes, Traits};
use sealway_route::testing::{names, networks};
use sealway_v2ray::{Address, Destination, Network};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::common::settings_of;
use crate::programs::{Place, Program};
use asking::{ask, connect};

/// Questions, in all files together.
const QUESTIONS: usize = 5_000;
/// Rules of a file.
const RULES: usize = 24;
/// Questions on their way at a time, on one connection.
const AT_ONCE: usize = 64;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn some(&mut self, all: &[&str]) -> Vec<String> {
        (0..1 + self.below(3)).map(|_| self.of(all).to_owned()).collect()
    }
}

const DOMAINS: [&str; 18] = [
    "full:exact.example",
    "full:www.exact.example",
    "domain:sub.example",
    "domain:example.cn",
    "domain:xn--p1ai",
    "keyword:mail",
    "shop",
    "ad",
    "regexp:^ad[0-9]+\\.",
    "regexp:\\.(test|org)$",
    "regexp:^[^.]+$",
    "dotless:print",
    "dotless:",
    "geosite:cn",
    "geosite:cn@ads",
    "geosite:ads",
    "ext:own.dat:mine",
    "ext:own.dat:mine@x",
];

const ADDRESSES: [&str; 16] = [
    "192.0.2.0/24",
    "192.0.2.128/25",
    "198.51.100.7",
    "10.0.0.0/8",
    "0.0.0.0/1",
    "2001:db8::/32",
    "2001:db8:1::/48",
    "::1",
    "fe80::/10",
    "::/0",
    "geoip:cn",
    "geoip:us",
    "geoip:private",
    "geoip:!cn",
    "geoip:!private",
    "ext:nets.dat:mine",
];

const PORTS: [&str; 7] = ["53", "80,443", "1-1023", "1000-2000,7000", "443", "30000-65535", "80"];
const EMAILS: [&str; 6] = [
    "a@x.example",
    "b@x.example",
    "c@y.example",
    "vip1@z",
    "vip2@z",
    "nobody",
];
const LABELS: [&str; 16] = [
    "a", "www", "ad", "ad1", "ads", "mail", "mailing", "shop", "exact", "sub", "printer", "print", "one", "two",
    "xn--p1ai", "9",
];
const SUFFIXES: [&str; 14] = [
    "example",
    "exact.example",
    "sub.example",
    "notsub.example",
    "example.cn",
    "taobao.cn",
    "cn",
    "test",
    "org",
    "one.example",
    "tracker.test",
    "deep.mine.test",
    "xn--p1ai",
    "",
];

/// What we take for private without a file: Xray gets it as a list, with the addresses of IPv4 that stand in those of IPv6.
const PRIVATE: [&str; 24] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/104",
    "::1/128",
    "64:ff9b:1::/48",
    "100::/64",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];

fn geo_files(place: &Place) {
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path(name), bytes).unwrap();
    let cn = [
        "cn",
        "full:one.example @ads",
        "keyword:taobao",
        "regexp:^\\d+\\.test$",
        "shop.example @ads @x",
    ];
    let sites = [names("CN", &cn), names("ADS", &["tracker.test", "keyword:ads"])];
    let us: Vec<String> = (0..64).map(|i| format!("{}.{}.0.0/16", 11 + i, i * 3 % 256)).collect();
    let us: Vec<&str> = us.iter().map(String::as_str).collect();
    let ips = [
        networks("CN", &["192.0.2.0/25", "203.0.113.0/24", "2001:db8::/33"]),
        networks("US", &us),
        networks("PRIVATE", &PRIVATE),
    ];
    let own = names("MINE", &["deep.mine.test @x", "full:print", "exact.example"]);
    write("geosite.dat", &sites.concat());
    write("geoip.dat", &ips.concat());
    write("own.dat", &own);
    write(
        "nets.dat",
        &networks("MINE", &["198.51.100.0/24", "2001:db8:ffff::/48"]),
    );
}

/// A rule with one to three conditions.
fn rule(dice: &mut Dice, number: usize) -> Value {
    let mut rule = Map::from_iter([
        ("type".to_owned(), json!("field")),
        ("outboundTag".to_owned(), json!(format!("r{number}"))),
    ]);
    for _ in 0..1 + dice.below(3) {
        let (key, value) = match dice.below(16) {
            0..5 => ("domain", json!(dice.some(&DOMAINS))),
            5..8 => ("ip", json!(dice.some(&ADDRESSES))),
            8 => ("port", json!(dice.of(&PORTS))),
            9 => ("network", json!(dice.of(&["tcp", "udp", "tcp,udp"]))),
            10 => ("source", json!(dice.some(&ADDRESSES))),
            11 => ("sourcePort", json!(dice.of(&PORTS))),
            12 => (
                "user",
                json!(dice.some(&["a@x.example", "b@x.example", "regexp:^vip", "regexp:y\\.example$"])),
            ),
            13 => ("inboundTag", json!(dice.some(&["in", "other"]))),
            14 => ("protocol", json!(dice.some(&["http", "tls", "bittorrent", "quic"]))),
            _ => match dice.below(4) {
                0 => (
                    "attrs",
                    json!({":method": dice.of(&["GET", "^P", "."]), "Host": "example"}),
                ),
                1 => ("vlessRoute", json!(dice.of(&PORTS))),
                2 => ("localPort", json!(dice.of(&PORTS))),
                _ => ("localIP", json!(dice.some(&ADDRESSES))),
            },
        };
        rule.insert(key.to_owned(), value);
    }
    Value::Object(rule)
}

fn name(dice: &mut Dice) -> String {
    let mut labels: Vec<&str> = (0..dice.below(3)).map(|_| dice.of(&LABELS)).collect();
    labels.push(dice.of(&SUFFIXES));
    labels.retain(|label| !label.is_empty());
    match labels.as_slice() {
        [] => "print".to_owned(),
        labels => labels.join("."),
    }
}

fn ip(dice: &mut Dice) -> IpAddr {
    let byte = u8::try_from(dice.below(256)).unwrap();
    let v4 = [
        [192, 0, 2, byte],
        [198, 51, 100, byte % 16],
        [203, 0, 113, byte],
        [10, 1, 2, byte],
        [11 + byte % 70, byte, 1, 1],
        [byte, 7, 7, 7],
    ];
    let v6 = [
        "2001:db8::",
        "2001:db8:8000::",
        "2001:db8:1::",
        "2001:db8:ffff::",
        "::",
        "fe80::",
        "fc00::",
        "2a00::",
    ];
    if dice.once_in(3) {
        let start: Ipv6Addr = dice.of(&v6).parse().unwrap();
        return Ipv6Addr::from_bits(start.to_bits() | u128::from(byte % 4)).into();
    }
    Ipv4Addr::from(dice.of(&v4)).into()
}

fn port(dice: &mut Dice) -> u16 {
    let any = u16::try_from(1 + dice.below(65_535)).unwrap();
    dice.of(&[53, 80, 443, 1023, 1024, 1000, 2000, 2001, 7000, 29_999, 30_000, any])
}

/// Something to ask: a target by name, by address, or by both, and a client.
fn question(dice: &mut Dice, hosts: &[String], by_host: bool) -> Traits {
    let host = if by_host { dice.of(hosts) } else { name(dice) };
    let network = dice.of(&[Network::Tcp, Network::Udp]);
    let (address, name) = match dice.below(8) {
        0..5 => (Address::parse(&host).unwrap(), None),
        // Where names are looked up, Xray looks this one up too: ours is dialled by its address, and is asked by that.
        5 if !by_host => (Address::from(ip(dice)), Some(host)),
        _ => (Address::from(ip(dice)), None),
    };
    let end = |dice: &mut Dice| dice.once_in(2).then(|| SocketAddr::new(ip(dice), port(dice)));
    let target = Destination {
        network,
        address,
        port: port(dice),
    };
    let attributes = match dice.once_in(4) {
        true => BTreeMap::from([
            (":method".to_owned(), dice.of(&["GET", "POST", "PUT"]).to_owned()),
            ("host".to_owned(), dice.of(&["www.example", "test"]).to_owned()),
        ]),
        false => BTreeMap::new(),
    };
    let mut traits = Traits::of(target);
    traits.name = name;
    traits.source = end(dice);
    traits.local = end(dice);
    traits.email = if dice.once_in(2) {
        dice.of(&EMAILS).to_owned()
    } else {
        String::new()
    };
    traits.vless_route = dice.once_in(3).then(|| port(dice));
    traits.inbound = dice.of(&["in", "other", "none", ""]).to_owned();
    traits.protocol = dice.once_in(2).then(|| {
        dice.of(&["http1", "http2", "tls", "quic", "bittorrent", "dns"])
            .to_owned()
    });
    traits.attributes = attributes;
    traits
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_decide_as_those_of_xray() {
    if !Program::Xray.there() {
        return;
    }
    let wanted = std::env::var("SEALWAY_ROUTE_QUESTIONS").map_or(QUESTIONS, |text| text.parse().unwrap());
    let files = ["AsIs", "AsIs", "AsIs", "IPIfNonMatch", "IPOnDemand"];
    let mut dice = Dice(0x5ea1_3a7e_0b5e_55ed);
    let (mut differ, mut fits, mut asked, mut took) = (Vec::new(), 0, 0, Duration::ZERO);
    for strategy in files {
        let place = Place::new();
        geo_files(&place);
        let port = place.port();
        let (own, api) = (place.port(), SocketAddr::new(place.host, port));
        let hosts: Vec<String> = (0..200).map(|at| format!("h{at}.{}", name(&mut dice))).collect();
        let fixed = hosts
            .iter()
            .map(|host| (format!("full:{host}"), json!(ip(&mut dice).to_string())));
        let fixed: Map<String, Value> = fixed.collect();
        let rules: Vec<Value> = (0..RULES).map(|number| rule(&mut dice, number)).collect();
        let tags = (0..RULES).map(|number| json!({"tag": format!("r{number}"), "protocol": "blackhole"}));
        let mut outbounds = vec![json!({"tag": "first", "protocol": "freedom"})];
        outbounds.extend(tags);
        let mut config = json!({
            "log": {"loglevel": "warning", "access": "none"},
            "dns": {"hosts": fixed, "servers": ["127.0.0.1"]},
            "inbounds": [
                {"tag": "in", "listen": place.host, "port": own, "protocol": "socks"},
            ],
            "outbounds": outbounds,
            "routing": {"domainStrategy": strategy, "rules": &rules},
        });
        let mut ours = settings_of(&config);
        ours.geo_folders = vec![place.path("")];
        let ours = Routes::new(&ours).unwrap();
        config["api"] = json!({"tag": "api", "listen": api.to_string(), "services": ["RoutingService"]});
        place.let_go();
        let assets = place.name("");
        let running = Program::Xray
            .run_in(&place, &config, &[("XRAY_LOCATION_ASSET", &assets)])
            .await;
        let xray = connect(api).await;
        let by_host = strategy != "AsIs";
        let questions: Vec<Traits> = (0..wanted / files.len())
            .map(|_| question(&mut dice, &hosts, by_host))
            .collect();
        let mut theirs = vec![None; questions.len()];
        let mut flying = JoinSet::new();
        for (at, traits) in questions.iter().enumerate() {
            if flying.len() == AT_ONCE {
                let (at, answer) = flying.join_next().await.unwrap().unwrap();
                theirs[at] = answer;
            }
            let (xray, traits) = (xray.clone(), traits.clone());
            flying.spawn(async move { (at, ask(xray, &traits).await) });
        }
        while let Some(done) = flying.join_next().await {
            let (at, answer) = done.unwrap();
            theirs[at] = answer;
        }
        for (traits, theirs) in questions.iter().zip(theirs) {
            let begun = Instant::now();
            let verdict = ours.ask(traits).await;
            took += begun.elapsed();
            let rule = verdict.rule.map(|rule| format!("r{rule}"));
            // The first outbound is none of the rules'.
            assert_eq!(verdict.leads, Leads::Outbound(verdict.rule.map_or(0, |rule| rule + 1)));
            asked += 1;
            fits += usize::from(rule.is_some());
            if rule != theirs {
                let written = |tag: &Option<String>| {
                    let number = tag.as_deref().and_then(|tag| tag[1..].parse::<usize>().ok());
                    number.map(|number| rules[number].to_string()).unwrap_or_default()
                };
                let (mine, other) = (written(&rule), written(&theirs));
                differ.push(format!("{strategy}: {traits:?}:\n  ours {mine}\n  Xray's {other}"));
            }
        }
        drop(running);
    }
    println!(
        "{asked} questions, {fits} of which a rule fits, {} differ; ours took {took:?}",
        differ.len()
    );
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ[..differ.len().min(60)].join("\n")
    );
    // Neither all nor none.
    assert!(fits > asked / 3 && fits < asked, "{fits} of {asked}");
}
