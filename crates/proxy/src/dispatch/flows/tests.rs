use std::future::poll_fn;
use std::net::SocketAddr;

use sealway_v2ray::Address;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::*;
use crate::dispatch::Access;
use crate::dispatch::table::{self, Table};
use crate::lists::Lists;
use crate::outbound::{Outbound, Surroundings};
use crate::resolver::Resolver;
use crate::roads::Roads;
use crate::settings::{self, IpMatch, RoutingStrategy, Rule, Settings};
use crate::stats::Traffic;

/// Flows of a client on this machine, with an outbound that goes straight out.
fn flows(rules: Vec<Rule>) -> Box<Flows> {
    let settings = Settings {
        outbounds: vec![settings::Outbound {
            tag: "direct".into(),
            protocol: settings::OutboundProtocol::Freedom(settings::Freedom::default()),
            transport: settings::ClientTransport::default(),
            send_through: None,
            mux: settings::MuxOut::default(),
        }],
        rules,
        domain_strategy: RoutingStrategy::IpOnDemand,
        ..Settings::default()
    };
    let lists = Arc::new(Lists::default());
    let around = Surroundings {
        resolver: Arc::new(Resolver::new(&settings, &lists).unwrap()),
        lists,
        loops: Arc::default(),
        roads: Roads::new(vec!["direct".into()]),
        clock: crate::clock::unix_time,
    };
    let outbound = Outbound::new("outbounds[0]", &settings.outbounds[0], &around, Traffic::default());
    let rules: Vec<_> = settings.rules.iter().cloned().map(Arc::new).collect();
    let parts = table::Parts {
        outbounds: vec![Arc::new(outbound.unwrap())],
        services: Vec::new(),
        missing: Vec::new(),
        rules: &rules,
        by_name: settings.domain_strategy,
        balancers: &[],
        counted: false,
    };
    let table = Table::new(parts, &around.lists, None).unwrap();
    let access = Access::open(&settings).unwrap();
    let dispatcher = Arc::new(Dispatcher::new(table, access, around.resolver));
    let origin = Origin {
        inbound: "in".into(),
        ..Origin::default()
    };
    Flows::new(dispatcher, origin, Arc::new(User::default()))
}

fn to(address: SocketAddr) -> Destination {
    Destination::udp(Address::from(address.ip()), address.port())
}

fn named(name: &str) -> Destination {
    Destination::udp(Address::parse(name).unwrap(), 53)
}

async fn send(flows: &mut Flows, bytes: &[u8], to: &Destination) {
    let sent = poll_fn(|cx| flows.poll_send(cx, bytes, to));
    timeout(Duration::from_secs(5), sent)
        .await
        .unwrap_or_else(|_| panic!("{to} holds up others"))
        .unwrap();
}

async fn arrives(flows: &mut Flows, target: &UdpSocket) {
    send(flows, b"hello", &to(target.local_addr().unwrap())).await;
    let mut got = [0; 9];
    let receiving = timeout(Duration::from_secs(5), target.recv(&mut got));
    // Nothing comes back, but what waits is looked after meanwhile.
    let mut slot = Slot::default();
    tokio::select! {
        _ = poll_fn(|cx| flows.poll_recv(cx, &mut slot)) => panic!("nobody answered"),
        got = receiving => assert_eq!(got.unwrap().unwrap(), 5),
    }
}

/// Neither the rules, where they ask for addresses, nor an outbound that looks for them keep other datagrams waiting.
#[tokio::test]
async fn a_name_that_takes_long_holds_up_nobody() {
    let by_address = Rule {
        ips: vec![IpMatch::Net("192.0.2.0/24".parse().unwrap())],
        outbound_tag: "direct".into(),
        ..Rule::default()
    };
    for rules in [vec![], vec![by_address]] {
        let mut flows = flows(rules);
        let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        arrives(&mut flows, &target).await;
        for n in 0..50 {
            for _ in 0..2 {
                send(&mut flows, b"?", &named(&format!("{n}.never.test"))).await;
            }
        }
        arrives(&mut flows, &target).await;
        // One that is found at once.
        send(&mut flows, b"?", &named("localhost")).await;
        arrives(&mut flows, &target).await;
    }
}

/// What waits for names is bounded, whoever looks for them.
#[tokio::test]
async fn what_waits_for_the_rules_is_bounded() {
    let by_address = Rule {
        ips: vec![IpMatch::Net("192.0.2.0/24".parse().unwrap())],
        outbound_tag: "direct".into(),
        ..Rule::default()
    };
    let mut flows = flows(vec![by_address]);
    for n in 0..100 {
        send(&mut flows, &[0; 8000], &named(&format!("{}.never.test", n % 4))).await;
    }
    let waits = flows.routing.waits();
    assert!((MAX_WAITING - 8200..=MAX_WAITING).contains(&waits), "{waits}");
    assert!(flows.routes.is_empty() && flows.flows.is_empty());
}

#[tokio::test]
async fn what_the_rules_said_is_remembered_of_so_many_targets() {
    let mut flows = flows(vec![]);
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut most = 0;
    for port in 1..=2 * MAX_ROUTES as u16 {
        send(&mut flows, b"?", &to(([127, 77, 0, 1], port).into())).await;
        most = most.max(flows.routes.len());
    }
    assert_eq!(most, MAX_ROUTES);
    arrives(&mut flows, &target).await;
}

/// Who is a neighbour is said by the network, and by no header that a client may have written.
#[tokio::test]
async fn nobody_becomes_a_neighbour_by_a_header() {
    let flows = flows(Vec::new());
    for (captured, forwarded, source, wanted) in [
        (true, false, "192.168.1.2:1", true),
        (true, true, "192.168.1.2:1", false),
        (true, false, "8.8.8.8:1", false),
        (false, false, "192.168.1.2:1", false),
    ] {
        let origin = Origin {
            source: Some(source.parse().unwrap()),
            captured,
            forwarded,
            ..flows.origin.clone()
        };
        let aim = Aim::from(named("example.com"));
        let route = flows.dispatcher.route(&origin, &aim, &User::default()).await;
        assert_eq!(
            route.caller(&origin).neighbour,
            wanted,
            "{captured} {forwarded} {source}"
        );
    }
}
