//! Trojan: what its header and its datagrams do, seen from both ends.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::trojan::{Key, packet};
use sealway_v2ray::{Address, Destination, Step, trojan};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::common::*;

fn header(password: &str, to: Destination) -> Vec<u8> {
    let key = Key::of_password(password);
    let mut out = Vec::new();
    trojan::Request { key, to }.encode(&mut out);
    out
}

fn tcp(to: SocketAddr) -> Destination {
    Destination::tcp(Address::from(to.ip()), to.port())
}

fn udp(to: SocketAddr) -> Destination {
    Destination::udp(Address::from(to.ip()), to.port())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_may_come_byte_by_byte() {
    let server = serve(trojan()).await;
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in header(PASSWORD, tcp(target().await)) {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    within("exchange", exchange(stream, 1000, 1000)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_other_command_opens_a_stream() {
    let server = serve(trojan()).await;
    for command in [0, 2, 4, 0x7f, 0xff] {
        let mut first = header(PASSWORD, tcp(target().await));
        first[58] = command;
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&first).await.unwrap();
        within("exchange", exchange(stream, 10, 10)).await;
    }
}

/// A header that leaves alone, before what follows it, is what tells Trojan from other traffic.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_header_and_the_first_payload_leave_together() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let client = door_by(to, trojan_out(listener.local_addr().unwrap())).await;
    let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
    program.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let mut got = vec![0; 4096];
    let len = within("first read", far.read(&mut got)).await.unwrap();
    let want = [header(PASSWORD, tcp(to)), b"GET / HTTP/1.1\r\n\r\n".to_vec()].concat();
    assert_eq!(got[..len], want);
    // A program that lets the other side speak first is not waited for.
    let mut silent = TcpStream::connect(at(&client, "door")).await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let len = within("header", far.read(&mut got)).await.unwrap();
    assert_eq!(got[..len], header(PASSWORD, tcp(to)));
    far.write_all(b"220 ready").await.unwrap();
    within("greeting", silent.read_exact(&mut got[..9])).await.unwrap();
    // Datagrams likewise.
    let socket = udp_to(udp_at(&client, "door")).await;
    socket.send(b"hello").await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let len = within("datagram", far.read(&mut got)).await.unwrap();
    let mut want = header(PASSWORD, udp(to));
    packet::write_head(&udp(to), 5, &mut want).unwrap();
    want.extend_from_slice(b"hello");
    assert_eq!(got[..len], want);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_direction_ends_by_itself() {
    let server = serve(trojan()).await;
    let client = door_by(counting_target().await, trojan_out(at(&server, "in"))).await;
    let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    stream.write_all(&pattern(1, 300_000)).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(to_the_end(&mut stream).await, (b"300000 bytes".to_vec(), true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_at_once() {
    let server = serve(trojan()).await;
    let client = door_by(target().await, trojan_out(at(&server, "in"))).await;
    let door = at(&client, "door");
    let one =
        |n: usize| async move { exchange(TcpStream::connect(door).await.unwrap(), n * 31, 60_000 - n * 31).await };
    let all: JoinSet<()> = (0..200).map(one).collect();
    within("200 streams", all.join_all()).await;
}

/// One end of an association, spoken by hand.
struct Association {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Association {
    async fn new(server: &Server) -> Self {
        let mut stream = TcpStream::connect(at(server, "in")).await.unwrap();
        let unused = Destination::udp(Address::parse("unused.example").unwrap(), 9);
        stream.write_all(&header(PASSWORD, unused)).await.unwrap();
        Association {
            stream,
            held: Vec::new(),
        }
    }

    /// What is longer than other programs write is written all the same.
    async fn send(&mut self, to: Destination, bytes: &[u8]) {
        let mut out = Vec::new();
        packet::write_head(&to, 0, &mut out).unwrap();
        let len = out.len();
        out[len - 4..len - 2].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
        out.extend_from_slice(bytes);
        self.stream.write_all(&out).await.unwrap();
    }

    async fn recv(&mut self) -> (Destination, Vec<u8>) {
        loop {
            if let Step::Done {
                value: (from, payload),
                used,
            } = packet::decode(&self.held).unwrap()
            {
                let bytes = self.held[payload].to_vec();
                self.held.drain(..used);
                return (from, bytes);
            }
            let got = within("datagram", self.stream.read_buf(&mut self.held)).await.unwrap();
            assert!(got > 0, "the association ended");
        }
    }

    async fn round(&mut self, to: SocketAddr, len: usize) {
        let sent = pattern(len as u64, len);
        self.send(udp(to), &sent).await;
        let (from, mut got) = self.recv().await;
        got.reverse();
        assert!(from == udp(to) && got == sent, "{len} from {from}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_association_reaches_every_target_and_hears_from_every_source() {
    let server = serve(trojan()).await;
    let (one, two) = (udp_target().await, udp_target().await);
    let mut association = Association::new(&server).await;
    for to in [one, two, one] {
        for len in [0, 1, 1200, 1472, 8192] {
            association.round(to, len).await;
        }
    }
    // What the client never sent to may answer too: the mapping is open to all.
    let asked = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    association.send(udp(asked.local_addr().unwrap()), b"who?").await;
    let mut got = [0; 10];
    let (_, mapped) = within("question", asked.recv_from(&mut got)).await.unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other.send_to(b"me", mapped).await.unwrap();
    let from = other.local_addr().unwrap();
    assert_eq!(association.recv().await, (udp(from), b"me".to_vec()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_long_is_lost_alone() {
    let server = serve(trojan()).await;
    let echo = udp_target().await;
    let mut association = Association::new(&server).await;
    association.round(echo, 100).await;
    // It gets to the target, but the answer does not fit.
    association.send(udp(echo), &pattern(1, 8193)).await;
    association.send(udp(echo), &pattern(1, 60_000)).await;
    // Longer than any datagram.
    association.send(udp(echo), &pattern(1, 65_535)).await;
    // Names that nobody has, and ports where nobody listens.
    let nowhere = Destination::udp(Address::parse("nobody.invalid").unwrap(), 9);
    association.send(nowhere, b"?").await;
    association.send(udp("127.0.0.1:9".parse().unwrap()), b"?").await;
    association.round(echo, 8192).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_ours_has_full_cone() {
    let server = serve(trojan()).await;
    let settings = Settings {
        outbounds: vec![outbound(trojan_out(at(&server, "in")), ClientTransport::default())],
        ..server_settings(socks(), ServerTransport::default())
    };
    let client = start(settings).await;
    let (_control, relay) = associate(at(&client, "in")).await;
    let own = udp_to(relay).await;
    let (one, two) = (udp_target().await, udp_target().await);
    let mut got = [0; 100];
    for to in [one, two, one, two] {
        own.send(&socks_packet(to, b"abc")).await.unwrap();
        let len = within("answer", own.recv(&mut got)).await.unwrap();
        assert_eq!(got[..len], socks_packet(to, b"cba"));
    }
    // Both targets see one socket, and a third may answer to it.
    let targets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut seen = Vec::new();
    for target in targets {
        target.set_nonblocking(true).unwrap();
        let target = UdpSocket::from_std(target).unwrap();
        let to = target.local_addr().unwrap();
        own.send(&socks_packet(to, b"?")).await.unwrap();
        seen.push(within("question", target.recv_from(&mut got)).await.unwrap().1);
    }
    assert_eq!(seen[0], seen[1]);
    let third = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    third.send_to(b"me", seen[0]).await.unwrap();
    let len = within("third", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], socks_packet(third.local_addr().unwrap(), b"me"));
}

/// That one target may be reached opens nothing for another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_are_asked_for_every_target() {
    let (open, blocked) = (udp_target().await, UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let forbidden = blocked.local_addr().unwrap();
    let through = serve(vless()).await;
    let mut settings = server_settings(trojan(), ServerTransport::default());
    let (by_vless, by_vless_too) = (udp_target().await, udp_target().await);
    settings.outbounds.push(Outbound {
        tag: "nowhere".into(),
        ..outbound(OutboundProtocol::Blackhole { http: false }, ClientTransport::default())
    });
    settings.outbounds.push(Outbound {
        tag: "vless".into(),
        ..outbound(vless_out(at(&through, "in")), ClientTransport::default())
    });
    let rule = |to: SocketAddr, tag: &str| Rule {
        ports: vec![(to.port(), to.port())],
        outbound_tag: tag.into(),
        ..Rule::default()
    };
    settings.rules = vec![
        rule(forbidden, "nowhere"),
        rule(by_vless, "vless"),
        rule(by_vless_too, "vless"),
    ];
    let server = start(settings).await;
    let mut association = Association::new(&server).await;
    for _ in 0..2 {
        association.round(open, 10).await;
        association.send(udp(forbidden), b"b").await;
        // An outbound whose associations have one target each has one for each.
        association.round(by_vless, 10).await;
        association.round(by_vless_too, 10).await;
    }
    assert!(blocked.try_recv(&mut [0; 10]).is_err(), "a rule was passed by");
}

/// Outbounds that need an association for each target have so many of one client and no more, and the rest goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_associations_of_one_client_are_bounded() {
    let next = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let echo = udp_target().await;
    let mut settings = server_settings(trojan(), ServerTransport::default());
    let vless = vless_out(next.local_addr().unwrap());
    settings
        .outbounds
        .insert(0, outbound(vless, ClientTransport::default()));
    settings.rules = vec![Rule {
        ports: vec![(echo.port(), echo.port())],
        outbound_tag: "direct".into(),
        ..Rule::default()
    }];
    let server = start(settings).await;
    let mut association = Association::new(&server).await;
    association.round(echo, 10).await;
    for port in 10_000..10_300 {
        association.send(udp(([127, 0, 0, 1], port).into()), b"x").await;
    }
    let mut open = Vec::new();
    // One of them is the one that goes straight out.
    while open.len() < 255 {
        open.push(within("next server", next.accept()).await.unwrap());
    }
    association.round(echo, 10).await;
    let more = tokio::time::timeout(Duration::from_millis(300), next.accept()).await;
    assert!(more.is_err(), "more than 256 associations");
}

/// What comes while an outbound is reached waits, and no more of it than 256 KiB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_an_outbound_is_bounded() {
    let next = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socks = socks_out(next.local_addr().unwrap(), None);
    let mut settings = server_settings(trojan(), ServerTransport::default());
    settings
        .outbounds
        .insert(0, outbound(socks, ClientTransport::default()));
    let echo = udp_target().await;
    settings.rules = vec![Rule {
        ports: vec![(echo.port(), echo.port())],
        outbound_tag: "direct".into(),
        ..Rule::default()
    }];
    let server = start(settings).await;
    let mut association = Association::new(&server).await;
    for n in 0..60 {
        association.send(udp(([127, 0, 0, 1], 9).into()), &[n; 8192]).await;
    }
    // All of them have come, for what was sent behind them has, and did not wait with them.
    association.round(echo, 10).await;
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket2::SockRef::from(&relay).set_recv_buffer_size(1 << 20).unwrap();
    let (mut control, _) = within("next server", next.accept()).await.unwrap();
    let mut said = [0; 3];
    within("greeting", control.read_exact(&mut said)).await.unwrap();
    control.write_all(&[5, 0]).await.unwrap();
    within("request", control.read_exact(&mut [0; 10])).await.unwrap();
    let port = relay.local_addr().unwrap().port().to_be_bytes();
    control
        .write_all(&[5, 0, 0, 1, 127, 0, 0, 1, port[0], port[1]])
        .await
        .unwrap();
    let (mut got, mut bytes) = (0, [0; 9000]);
    while let Ok(Ok(len)) = tokio::time::timeout(Duration::from_secs(1), relay.recv(&mut bytes)).await {
        assert_eq!((len, bytes[10]), (10 + 8192, got), "not those that came first");
        got += 1;
    }
    // 32 would fill it without what each takes besides.
    assert!((1..32).contains(&got), "{got} datagrams waited");
}

/// What is private stays closed to datagrams too, and what else the association carries goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_do_not_reach_private_targets() {
    let (closed, named) = (UdpSocket::bind("127.0.0.1:0").await.unwrap(), udp_target().await);
    let mut settings = server_settings(trojan(), ServerTransport::default());
    settings.outbounds[0].protocol = OutboundProtocol::Freedom(Freedom::default());
    settings.rules = vec![Rule {
        ips: vec![IpMatch::Net("127.0.0.0/8".parse().unwrap())],
        ports: vec![(named.port(), named.port())],
        outbound_tag: "direct".into(),
        ..Rule::default()
    }];
    let server = start(settings).await;
    let mut association = Association::new(&server).await;
    let port = closed.local_addr().unwrap().port();
    for _ in 0..3 {
        association.send(udp(closed.local_addr().unwrap()), b"closed").await;
        let by_name = Destination::udp(Address::parse("localhost").unwrap(), port);
        association.send(by_name, b"closed").await;
        // A rule names this one.
        association.round(named, 10).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(closed.try_recv(&mut [0; 10]).is_err(), "a private target was reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_counted_for_their_user() {
    let mut settings = server_settings(trojan(), ServerTransport::default());
    settings.levels = counting();
    let server = start(settings).await;
    let (one, two) = (udp_target().await, udp_target().await);
    let mut association = Association::new(&server).await;
    for (to, len) in [(one, 700), (two, 70), (one, 7)] {
        association.round(to, len).await;
    }
    for way in ["uplink", "downlink"] {
        let name = format!("user>>>user@example>>>traffic>>>{way}");
        let counter = server.stats().get(&name).unwrap();
        within(way, async {
            while counter.get() != 777 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}
