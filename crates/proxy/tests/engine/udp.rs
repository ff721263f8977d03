//! Datagrams: through every outbound that carries them, from owners only, and not for ever.

use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_proxy::{Server, Timeouts};
use tokio::io::AsyncReadExt;
use tokio::net::UdpSocket;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outbound_carries_datagrams_and_a_lost_one_ends_nothing() {
    let target = udp_target().await;
    let (trojan, vless, vmess) = (serve(trojan()).await, serve(vless()).await, serve(vmess()).await);
    let account = Account {
        user: "someone".into(),
        pass: "secret".into(),
    };
    let closed = serve(InboundProtocol::Socks(Socks {
        accounts: vec![account.clone()],
        udp: true,
        ..Socks::default()
    }))
    .await;
    // The longest that UDP has over IPv4; less where something is written around it.
    let cases = [
        ("freedom", freedom().protocol, 65_507),
        ("trojan", trojan_out(at(&trojan, "in")), 8192),
        ("vless", vless_out(at(&vless, "in")), 65_507),
        ("vmess", vmess_out(at(&vmess, "in")), 65_456),
        ("socks", socks_out(at(&closed, "in"), Some(account)), 65_507 - 10),
    ];
    for (name, protocol, longest) in cases {
        let client = door_by(target, protocol).await;
        let socket = udp_to(udp_at(&client, "door")).await;
        for len in [1, 1400, longest] {
            udp_round(name, &socket, len).await;
        }
        if longest < 65_507 {
            // Too long for the protocol: lost, as on any network. What follows it is not.
            socket.send(&pattern(1, 65_507)).await.unwrap();
        }
        udp_round(name, &socket, 100).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_serves_its_owner_only_and_only_whole_datagrams() {
    let target = udp_target().await;
    let server = serve(socks()).await;
    let (control, relay) = associate(at(&server, "in")).await;
    let own = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    // Another host is not the owner, not even before the owner has sent anything.
    elsewhere.send_to(&socks_packet(target, b"evil"), relay).await.unwrap();
    // Neither what is no datagram nor a fragment pins a port or passes.
    for len in 0..10 {
        own.send_to(&socks_packet(target, b"")[..len], relay).await.unwrap();
    }
    let mut piece = socks_packet(target, b"piece");
    piece[2] = 1;
    own.send_to(&piece, relay).await.unwrap();
    own.send_to(&socks_packet(target, b"abc"), relay).await.unwrap();
    let mut got = [0; 100];
    let len = within("answer", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], socks_packet(target, b"cba"), "with the true source");
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other.send_to(&socks_packet(target, b"evil"), relay).await.unwrap();
    own.send_to(&socks_packet(target, b"next"), relay).await.unwrap();
    let len = within("answer", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], socks_packet(target, b"txen"));
    assert!(other.try_recv(&mut got).is_err() && elsewhere.try_recv(&mut got).is_err());
    drop(control);
    let free = async {
        while UdpSocket::bind(relay).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("end of the association", free).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_are_asked_for_every_target_of_an_association() {
    let (open, blocked) = (udp_target().await, UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let forbidden = blocked.local_addr().unwrap();
    let mut settings = server_settings(socks(), ServerTransport::default());
    settings.outbounds.push(Outbound {
        tag: "nowhere".into(),
        ..outbound(OutboundProtocol::Blackhole { http: false }, ClientTransport::default())
    });
    settings.rules = vec![Rule {
        ports: vec![(forbidden.port(), forbidden.port())],
        outbound_tag: "nowhere".into(),
        ..Rule::default()
    }];
    let server = start(settings).await;
    let (_control, relay) = associate(at(&server, "in")).await;
    let own = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut got = [0; 100];
    for _ in 0..2 {
        // That the first target may be reached opens nothing for the second.
        own.send_to(&socks_packet(open, b"a"), relay).await.unwrap();
        within("answer", own.recv(&mut got)).await.unwrap();
        own.send_to(&socks_packet(forbidden, b"b"), relay).await.unwrap();
    }
    own.send_to(&socks_packet(open, b"c"), relay).await.unwrap();
    within("answer", own.recv(&mut got)).await.unwrap();
    assert!(blocked.try_recv(&mut got).is_err(), "a rule was passed by");
}

/// Flows to refused targets are kept so that each is one line in the logs; they once kept the places of all others, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_that_are_refused_keep_no_place_from_others() {
    let open = udp_target().await;
    let mut settings = server_settings(socks(), ServerTransport::default());
    settings.outbounds.push(Outbound {
        tag: "nowhere".into(),
        ..outbound(OutboundProtocol::Blackhole { http: false }, ClientTransport::default())
    });
    settings.rules = vec![Rule {
        ports: vec![(1, 1000)],
        outbound_tag: "nowhere".into(),
        ..Rule::default()
    }];
    let server = start(settings).await;
    let (_control, relay) = associate(at(&server, "in")).await;
    let own = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for port in 1..=600 {
        own.send_to(&socks_packet(([127, 0, 0, 1], port).into(), b"a"), relay)
            .await
            .unwrap();
        if port % 50 == 0 {
            // Time for the flows to be refused; what a full socket drops takes no place.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let answered = async {
        let mut got = [0; 100];
        loop {
            own.send_to(&socks_packet(open, b"b"), relay).await.unwrap();
            if let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(100), own.recv(&mut got)).await {
                return;
            }
        }
    };
    within("answer", answered).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_servers_connection_ends_an_association_through_it() {
    let target = udp_target().await;
    let far = serve(socks()).await;
    let client = door_by(target, socks_out(at(&far, "in"), None)).await;
    let socket = udp_to(udp_at(&client, "door")).await;
    udp_round("first", &socket, 10).await;
    // The same address serves again after the server was started anew; the old association cannot be used any more.
    let listen = at(&far, "in");
    far.shutdown(Duration::ZERO).await;
    let mut again = server_settings(socks(), ServerTransport::default());
    again.inbounds[0].listen = vec![Listen::Port(listen)];
    let start = async {
        loop {
            match Server::start(again.clone()).await {
                Ok(server) => return server,
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let _far = within("start", start).await;
    let answered = async {
        let mut got = [0; 100];
        loop {
            socket.send(b"abc").await.unwrap();
            if let Ok(Ok(len)) = tokio::time::timeout(Duration::from_millis(100), socket.recv(&mut got)).await {
                return got[..len].to_vec();
            }
        }
    };
    assert_eq!(within("second association", answered).await, b"cba");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_a_door_ends_when_nothing_moves() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut settings = door_settings(target.local_addr().unwrap(), freedom());
    let timeouts = Timeouts {
        idle: Duration::from_millis(200),
        ..Timeouts::default()
    };
    settings.levels = with_timeouts(timeouts);
    let server = start(settings).await;
    let client = udp_to(udp_at(&server, "door")).await;
    // A new session has a new socket, and so another port.
    let seen = async || {
        client.send(b"x").await.unwrap();
        within("datagram", target.recv_from(&mut [0; 8])).await.unwrap().1
    };
    let first = seen().await;
    let renewed = async {
        loop {
            tokio::time::sleep(Duration::from_millis(400)).await;
            if seen().await != first {
                return;
            }
        }
    };
    within("end of the session", renewed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_local_clients_are_counted() {
    let mut settings = door_settings(udp_target().await, freedom());
    settings.counters.inbound_uplink = true;
    settings.counters.inbound_downlink = true;
    let server = start(settings).await;
    let socket = udp_to(udp_at(&server, "door")).await;
    udp_round("door", &socket, 700).await;
    udp_round("door", &socket, 70).await;
    for way in ["uplink", "downlink"] {
        let counter = server
            .stats()
            .get(&format!("inbound>>>door>>>traffic>>>{way}"))
            .unwrap();
        let counted = async {
            while counter.get() != 770 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        within(way, counted).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_whose_client_has_vanished_ends() {
    let mut settings = server_settings(socks(), ServerTransport::default());
    let timeouts = Timeouts {
        idle: Duration::from_millis(1500),
        ..Timeouts::default()
    };
    settings.levels = with_timeouts(timeouts);
    let server = start(settings).await;
    // A target that goes on talking.
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (mut control, relay) = associate(at(&server, "in")).await;
    let own = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let began = std::time::Instant::now();
    own.send_to(&socks_packet(target.local_addr().unwrap(), b"talk"), relay)
        .await
        .unwrap();
    let mut got = [0; 100];
    let (_, from) = within("question", target.recv_from(&mut got)).await.unwrap();
    // Longer than the limit, with nothing from the client: what it is sent keeps the association.
    for _ in 0..10 {
        target.send_to(b"on and on", from).await.unwrap();
        within("answer", own.recv(&mut got))
            .await
            .expect("the association is in use");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    // Then nothing more, while the connection that asked for it stays as it is.
    assert_eq!(
        within("end of the association", control.read(&mut got)).await.unwrap(),
        0
    );
    assert!(began.elapsed() >= Duration::from_secs(3));
    let free = async {
        while UdpSocket::bind(relay).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("its port", free).await;
    // One that is never used ends too.
    let (mut control, _) = associate(at(&server, "in")).await;
    assert_eq!(within("end of an unused one", control.read(&mut got)).await.unwrap(), 0);
}
