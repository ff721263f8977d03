//! Mux.Cool and XUDP with both programs, in both roles.
//!
//! V2Ray sends all datagrams of an association to its first target and takes at most 2048 bytes at once: so there is no full
//! cone through it. Xray ends a stream both ways as soon as its program has said its end; ours, as the client, waits for the
//! rest.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::common::{pattern, socks_packet, target, to_the_end, udp_target, within};
use crate::matrix::stream;
use crate::programs::{Place, Program, Running};
use crate::ways::{Files, PROTOCOLS, VLESS, Way, config, door, freedom, placed};

/// Who is the client, and who the server.
const PAIRS: [[Program; 2]; 5] = [
    [Program::Xray, Program::Ours],
    [Program::Ours, Program::Xray],
    [Program::V2ray, Program::Ours],
    [Program::Ours, Program::V2ray],
    [Program::Ours, Program::Ours],
];

/// Two programs with a mux between them, and doors at the client.
struct Both {
    tcp: SocketAddr,
    udp: SocketAddr,
    socks: SocketAddr,
    _running: [Running; 2],
    _places: [Place; 2],
}

/// A client's place and its way to a server.
fn client(outbound: Value, targets: (SocketAddr, SocketAddr)) -> (Place, [SocketAddr; 3], Value) {
    let near = Place::new();
    let at = [(); 3].map(|()| near.at(near.port()));
    let socks = json!({"protocol": "socks", "settings": {"udp": true, "ip": at[2].ip()}});
    let inbounds = vec![
        placed(door("tcp", targets.0), "tcp", at[0]),
        placed(door("udp", targets.1), "udp", at[1]),
        placed(socks, "socks", at[2]),
    ];
    let config = config(inbounds, vec![outbound], vec![]);
    (near, at, config)
}

async fn start(
    [near, far]: [Program; 2],
    protocol: (&'static str, &'static str),
    mux: Value,
    targets: (SocketAddr, SocketAddr),
) -> Both {
    let (files, place) = (Files::new(), Place::new());
    let way = Way::new(protocol, "tcp", false);
    let at = place.at(place.port());
    let mut outbound = way.outbound(at, &files);
    outbound["mux"] = mux;
    let (own, [tcp, udp, socks], config_near) = client(outbound, targets);
    let config_far = config(vec![placed(way.inbound(&files), "in", at)], vec![freedom()], vec![]);
    place.let_go();
    let server = far.run_in(&place, &config_far, &[]).await;
    own.let_go();
    let client = near.run_in(&own, &config_near, &[]).await;
    Both {
        tcp,
        udp,
        socks,
        _running: [client, server],
        _places: [own, place],
    }
}

/// Sends a datagram until its echo comes back.
async fn echoes(socket: &UdpSocket, len: usize) -> bool {
    let sent = pattern(len as u64, len);
    let mut got = vec![0; 65_536];
    for _ in 0..20 {
        socket.send(&sent).await.unwrap();
        while let Ok(Ok(n)) = tokio::time::timeout(Duration::from_secs(1), socket.recv(&mut got)).await {
            if got[..n].iter().rev().eq(&sent) {
                return true;
            }
        }
    }
    false
}

/// What goes through every mux.
async fn all(pair: [Program; 2], protocol: (&'static str, &'static str), mux: Value) {
    if !(pair[0].there() && pair[1].there()) {
        return;
    }
    let name = format!("{} -> {}, {}, {mux}", pair[0].name(), pair[1].name(), protocol.0);
    let mux_is_off = mux["enabled"] != true;
    let both = start(pair, protocol, mux, (target().await, udp_target().await)).await;
    for sizes in [(1, 1), (65_536, 65_536), (4 << 20, 6 << 20)] {
        stream(both.tcp, sizes, 3)
            .await
            .unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    }
    let socket = UdpSocket::bind((both.udp.ip(), 0)).await.unwrap();
    socket.connect(both.udp).await.unwrap();
    let v2ray = pair.contains(&Program::V2ray);
    for len in [1, 1200, 1472, if v2ray { 1900 } else { 7500 }] {
        assert!(echoes(&socket, len).await, "{name}: datagram of {len}");
    }
    let native = pair[0] == Program::Ours && protocol.0 == "vmess" && mux_is_off;
    if !v2ray && !native {
        // Longer than a frame may hold: lost, and nothing else is.
        socket.send(&pattern(1, 9000)).await.unwrap();
    }
    assert!(echoes(&socket, 500).await, "{name}: after one that was too long");
    for number in 0..130 {
        stream(both.tcp, (100, 100), 3)
            .await
            .unwrap_or_else(|wrong| panic!("{name}: request {number}: {wrong}"));
    }
    let mut running = JoinSet::new();
    for _ in 0..200 {
        running.spawn(stream(both.tcp, (20_000, 30_000), 3));
    }
    for done in running.join_all().await {
        done.unwrap_or_else(|wrong| panic!("{name}: one of 200: {wrong}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_streams_in_one() {
    for pair in PAIRS {
        for protocol in [VLESS, PROTOCOLS[1]] {
            all(pair, protocol, json!({"enabled": true, "concurrency": 8})).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_only() {
    for pair in PAIRS {
        // V2Ray takes a negative concurrency for none at all.
        all(
            pair,
            VLESS,
            json!({"enabled": true, "concurrency": -1, "xudpConcurrency": 16}),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_as_they_come_by_default() {
    for pair in PAIRS {
        for protocol in [VLESS, PROTOCOLS[1]] {
            all(pair, protocol, json!({})).await;
        }
    }
}

/// Asks for an association. Returns the connection it lives with, and a socket that is connected to it.
async fn associate(at: SocketAddr) -> (TcpStream, UdpSocket) {
    let (control, relay) = crate::common::associate(at).await;
    let own = UdpSocket::bind((control.local_addr().unwrap().ip(), 0)).await.unwrap();
    own.connect(relay).await.unwrap();
    (control, own)
}

/// What comes for one who sends until it does.
async fn asked(own: &UdpSocket, target: &UdpSocket, payload: &[u8]) -> SocketAddr {
    let (to, mut got) = (target.local_addr().unwrap(), [0; 100]);
    for _ in 0..50 {
        own.send(&socks_packet(to, payload)).await.unwrap();
        let received = tokio::time::timeout(Duration::from_millis(500), target.recv_from(&mut got)).await;
        if let Ok(Ok((len, from))) = received {
            assert_eq!(&got[..len], payload);
            return from;
        }
    }
    panic!("no datagram comes through");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_source_port_for_all_targets() {
    for pair in PAIRS {
        if pair.contains(&Program::V2ray) || !(pair[0].there() && pair[1].there()) {
            continue;
        }
        for mux in [
            json!({}),
            json!({"enabled": true}),
            json!({"enabled": true, "xudpConcurrency": 4}),
        ] {
            let nobody = "127.0.0.1:1".parse().unwrap();
            let both = start(pair, VLESS, mux.clone(), (nobody, nobody)).await;
            let name = format!("{} -> {}, {mux}", pair[0].name(), pair[1].name());
            let (_control, own) = associate(both.socks).await;
            let targets = [
                UdpSocket::bind("127.0.0.1:0").await.unwrap(),
                UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            ];
            let from = asked(&own, &targets[0], b"first").await;
            assert_eq!(asked(&own, &targets[1], b"second").await, from, "{name}");
            let mut got = [0; 100];
            for target in &targets {
                target.send_to(b"answer", from).await.unwrap();
                let len = within(&name, own.recv(&mut got)).await.unwrap();
                assert_eq!(
                    got[..len],
                    socks_packet(target.local_addr().unwrap(), b"answer"),
                    "{name}"
                );
            }
        }
    }
}

/// A program whose client was exchanged under it keeps its port at the server, if both clients have the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_moves_from_one_client_to_another() {
    if !Program::Xray.there() {
        return;
    }
    let (files, place) = (Files::new(), Place::new());
    let way = Way::new(VLESS, "tcp", false);
    let at = place.at(place.port());
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let targets = (target.local_addr().unwrap(), target.local_addr().unwrap());
    place.let_go();
    let server = config(vec![placed(way.inbound(&files), "in", at)], vec![freedom()], vec![]);
    let _server = Program::Ours.run(&place, &server).await;
    let key = [("XRAY_XUDP_BASEKEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")];
    let other = [("XRAY_XUDP_BASEKEY", "BBECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")];
    let mut program = None;
    let mut ports = Vec::new();
    for environment in [key, key, other] {
        let (near, [.., socks], config) = client(way.outbound(at, &files), targets);
        near.let_go();
        let running = Program::Xray.run_in(&near, &config, &environment).await;
        // Xray reads the key 100 ms after it has begun to listen.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (control, own) = associate(socks).await;
        // The same program all along: the same address.
        let own = match &program {
            None => program.insert(own),
            Some(first) => {
                first.connect(own.peer_addr().unwrap()).await.unwrap();
                first
            }
        };
        ports.push(asked(own, &target, b"x").await);
        drop((control, running));
        // None of the old client's is taken for one of the next.
        while target.try_recv_from(&mut [0; 100]).is_ok() {}
    }
    assert_eq!(ports[0], ports[1]);
    assert_ne!(ports[1], ports[2]);
}

/// There is no half-close in the protocol; our client says the end only when nothing more is to come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_comes_after_our_programs_end() {
    for server in [Program::Xray, Program::V2ray, Program::Ours] {
        if !server.there() {
            continue;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let both = start([Program::Ours, server], VLESS, json!({"enabled": true}), (at, at)).await;
        let mut program = TcpStream::connect(both.tcp).await.unwrap();
        program.write_all(b"question").await.unwrap();
        let (mut far, _) = within("target", listener.accept()).await.unwrap();
        let mut got = [0; 8];
        within("question", far.read_exact(&mut got)).await.unwrap();
        program.shutdown().await.unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let answer = pattern(1, 10 << 20);
        let sending = async {
            far.write_all(&answer).await.unwrap();
            far.shutdown().await.unwrap();
        };
        let (_, (said, ended)) = tokio::join!(sending, to_the_end(&mut program));
        assert!(ended && said == answer, "{server:?}: {} bytes, {ended}", said.len());
    }
}
