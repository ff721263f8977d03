//! Many sessions in one connection: through the whole of two engines, and what strangers to the rules of it get.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::mux::{self, GlobalId, Status};
use sealway_v2ray::{Address, Destination, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::Instant;

/// A server, and an address by which it is reached that counts connections.
struct Far {
    _server: Server,
    at: SocketAddr,
    carriers: Arc<AtomicUsize>,
}

impl Far {
    async fn start(protocol: InboundProtocol) -> Far {
        let server = Server::start(server_settings(protocol, ServerTransport::default()))
            .await
            .unwrap();
        let behind = at(&server, "in");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, carriers) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = Arc::clone(&carriers);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Far {
            _server: server,
            at,
            carriers,
        }
    }

    fn carriers(&self) -> usize {
        self.carriers.load(Ordering::Relaxed)
    }

    fn vless(&self) -> OutboundProtocol {
        OutboundProtocol::Vless(VlessOut {
            server: (loopback(), self.at.port()),
            id: id(),
        })
    }
}

fn with(protocol: OutboundProtocol, mux: MuxOut) -> Outbound {
    Outbound {
        mux,
        ..outbound(protocol, ClientTransport::default())
    }
}

fn eight() -> MuxOut {
    MuxOut {
        streams: Some(8),
        datagrams: MuxDatagrams::Shared,
        port_443: MuxPort443::Allow,
        ..MuxOut::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_every_size_through_every_protocol() {
    let target = target().await;
    for (name, protocol) in [("vless", vless()), ("vmess", vmess()), ("socks", socks())] {
        let far = Far::start(protocol).await;
        let server = (loopback(), far.at.port());
        let protocol = match name {
            "vless" => far.vless(),
            "vmess" => OutboundProtocol::Vmess(VmessOut {
                server,
                id: id(),
                security: VmessSecurity::Auto,
                authenticated_length: false,
                no_end: false,
            }),
            // The name that stands for a mux works in any protocol.
            _ => OutboundProtocol::Socks(ProxyOut {
                server,
                account: None,
                headers: Vec::new(),
            }),
        };
        let client = Server::start(door_settings(target, with(protocol, eight())))
            .await
            .unwrap();
        exchange_all(name, at(&client, "door")).await;
        assert_eq!(far.carriers(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_at_once() {
    let target = target().await;
    let far = Far::start(vless()).await;
    let client = Server::start(door_settings(target, with(far.vless(), eight())))
        .await
        .unwrap();
    let door = at(&client, "door");
    let all: Vec<_> = (0..200)
        .map(|_| {
            tokio::spawn(async move {
                let stream = TcpStream::connect(door).await.unwrap();
                within("one of 200", exchange(stream, 40_000, 60_000)).await;
            })
        })
        .collect();
    for one in all {
        one.await.unwrap();
    }
    assert!((25..=60).contains(&far.carriers()), "{}", far.carriers());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_carrier_has_128_sessions_in_its_life() {
    let target = target().await;
    let far = Far::start(vless()).await;
    let client = Server::start(door_settings(target, with(far.vless(), eight())))
        .await
        .unwrap();
    for number in 0..130 {
        let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
        within(&format!("request {number}"), exchange(stream, 10, 10)).await;
        assert_eq!(far.carriers(), if number < 128 { 1 } else { 2 }, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_up_to_what_a_frame_may_hold() {
    let target = udp_target().await;
    let far = Far::start(vless()).await;
    let xudp = MuxOut {
        full_cone: true,
        ..MuxOut::default()
    };
    let own = MuxOut {
        streams: None,
        datagrams: MuxDatagrams::Own(16),
        ..eight()
    };
    for (name, mux) in [("shared", eight()), ("own", own), ("xudp", xudp)] {
        let client = Server::start(door_settings(target, with(far.vless(), mux)))
            .await
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.connect(client.addresses("door").last().unwrap()).await.unwrap();
        let mut got = vec![0; 65_536];
        for len in [1, 1200, 1472, 9000, 8192, 9000, 1] {
            let sent = pattern(len as u64, len);
            socket.send(&sent).await.unwrap();
            if len > 8192 {
                // Too long for some peers: lost, and nothing else is.
                continue;
            }
            let n = within(&format!("{name}, {len}"), socket.recv(&mut got)).await.unwrap();
            got[..n].reverse();
            assert!(got[..n] == sent, "{name}: datagram of {len} garbled, {n}");
        }
    }
}

/// Asks a SOCKS inbound for an association.
async fn associate(server: &Server) -> (TcpStream, UdpSocket) {
    let mut control = TcpStream::connect(at(server, "in")).await.unwrap();
    control
        .write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut answer = [0; 12];
    control.read_exact(&mut answer).await.unwrap();
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    let own = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    own.connect(("127.0.0.1", port)).await.unwrap();
    (control, own)
}

fn packet(to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 1, 127, 0, 0, 1][..], &to.port().to_be_bytes(), payload].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_source_port_for_all_targets_and_answers_from_anywhere() {
    let far = Far::start(vless()).await;
    let xudp = MuxOut {
        full_cone: true,
        ..MuxOut::default()
    };
    for (name, mux) in [("mux", eight()), ("xudp", xudp)] {
        let mut settings = server_settings(socks(), ServerTransport::default());
        settings.outbounds = vec![with(far.vless(), mux)];
        let client = Server::start(settings).await.unwrap();
        let (_control, own) = associate(&client).await;
        let targets = [
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        ];
        let mut got = [0; 100];
        let mut sources = Vec::new();
        for target in &targets[..2] {
            own.send(&packet(target.local_addr().unwrap(), b"hello")).await.unwrap();
            let (len, from) = within(name, target.recv_from(&mut got)).await.unwrap();
            assert_eq!(&got[..len], b"hello");
            sources.push(from);
        }
        assert_eq!(sources[0], sources[1], "{name}: full cone has one port");
        // Whom the client never sent to may answer too, and is named.
        for target in &targets {
            target.send_to(b"answer", sources[0]).await.unwrap();
            let len = within(name, own.recv(&mut got)).await.unwrap();
            assert_eq!(got[..len], packet(target.local_addr().unwrap(), b"answer"), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_is_refused_where_the_keys_say_so() {
    let far = Far::start(vless()).await;
    for (port_443, refused) in [
        (MuxPort443::Reject, true),
        (MuxPort443::Allow, false),
        (MuxPort443::Skip, false),
    ] {
        let mut settings = server_settings(socks(), ServerTransport::default());
        settings.outbounds = vec![with(far.vless(), MuxOut { port_443, ..eight() })];
        let client = Server::start(settings).await.unwrap();
        let (_control, own) = associate(&client).await;
        let before = far.carriers();
        own.send(&packet("127.0.0.1:443".parse().unwrap(), b"quic?"))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(far.carriers() == before, refused, "{port_443:?}");
        // Others are not concerned.
        let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        own.send(&packet(target.local_addr().unwrap(), b"other")).await.unwrap();
        within("other", target.recv_from(&mut [0; 10])).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_our_end_is_not_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = Far::start(vless()).await;
    let settings = door_settings(listener.local_addr().unwrap(), with(far.vless(), eight()));
    let client = Server::start(settings).await.unwrap();
    let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
    program.write_all(b"question").await.unwrap();
    let (mut target, _) = within("target", listener.accept()).await.unwrap();
    let mut got = [0; 8];
    target.read_exact(&mut got).await.unwrap();
    program.shutdown().await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = pattern(1, 10 << 20);
    let sending = async {
        target.write_all(&answer).await.unwrap();
        target.shutdown().await.unwrap();
    };
    let (_, (said, ended)) = tokio::join!(sending, to_the_end(&mut program));
    assert!(ended && said == answer, "{} bytes, end {ended}", said.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_and_resets_go_through() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = Far::start(vless()).await;
    let settings = door_settings(listener.local_addr().unwrap(), with(far.vless(), eight()));
    let client = Server::start(settings).await.unwrap();
    for reset in [false, true] {
        let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
        let (mut target, _) = within("target", listener.accept()).await.unwrap();
        target.write_all(b"first").await.unwrap();
        let mut got = [0; 5];
        within("first", program.read_exact(&mut got)).await.unwrap();
        if reset {
            socket2::SockRef::from(&target)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        let began = Instant::now();
        drop(target);
        let (said, ended) = to_the_end(&mut program).await;
        assert!(said.is_empty() && ended != reset, "{reset}");
        assert!(began.elapsed() < Duration::from_millis(900), "an end waits for nothing");
    }
    // The other way.
    for reset in [false, true] {
        let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
        program.write_all(b"bytes").await.unwrap();
        let (mut target, _) = within("target", listener.accept()).await.unwrap();
        let mut got = [0; 5];
        within("bytes", target.read_exact(&mut got)).await.unwrap();
        if reset {
            socket2::SockRef::from(&program)
                .set_linger(Some(Duration::ZERO))
                .unwrap();
        }
        drop(program);
        let ended = within("end", target.read(&mut got)).await;
        assert_eq!(ended.is_err(), reset, "{ended:?}");
    }
    assert_eq!(far.carriers(), 1, "one session ends no other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_cannot_be_reached_ends_its_session_only() {
    let far = Far::start(vless()).await;
    let mut settings = server_settings(socks(), ServerTransport::default());
    settings.outbounds = vec![with(far.vless(), eight())];
    let client = Server::start(settings).await.unwrap();
    let target = target().await;
    let connect = async |port: u16| {
        let mut stream = TcpStream::connect(at(&client, "in")).await.unwrap();
        let mut request = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
        request.extend_from_slice(&port.to_be_bytes());
        stream.write_all(&request).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        stream
    };
    let good = connect(target.port()).await;
    let mut bad = connect(free_port()).await;
    let (said, ended) = to_the_end(&mut bad).await;
    assert!(said.is_empty() && !ended, "a session that was never connected breaks");
    within("its sibling", exchange(good, 70_000, 70_000)).await;
    assert_eq!(far.carriers(), 1);
}

/// A carrier by hand.
struct Carrier {
    stream: TcpStream,
    read: Vec<u8>,
    answered: bool,
}

impl Carrier {
    async fn open(at: SocketAddr) -> Carrier {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let mut request = vless_request("127.0.0.1:1".parse().unwrap());
        request.truncate(19);
        request[18] = 3;
        stream.write_all(&request).await.unwrap();
        Carrier {
            stream,
            read: Vec::new(),
            answered: false,
        }
    }

    async fn send(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        let mut out = Vec::new();
        push(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    async fn new_stream(&mut self, id: u16, target: SocketAddr, data: &[u8]) {
        let to = Destination::tcp(target.ip(), target.port());
        self.send(|out| mux::push_new(out, id, &to, None, Some(data)).unwrap())
            .await;
    }

    async fn new_packets(&mut self, id: u16, target: SocketAddr, program: u8, data: &[u8]) {
        // What a client makes of a key; here only that it is the same or another one counts.
        let key = mux::BaseKey::from_bytes([program; 32]);
        let global = Some(GlobalId::new(&key, "1.2.3.4:5".parse().unwrap()));
        let to = Destination::udp(target.ip(), target.port());
        self.send(|out| mux::push_new(out, id, &to, global, Some(data)).unwrap())
            .await;
    }

    /// The next frame, with its data. `None`: the carrier has ended.
    async fn frame(&mut self) -> Option<(u16, Status, bool, Vec<u8>)> {
        loop {
            if self.answered
                && let Step::Done { value, used } = mux::decode(&self.read).unwrap()
            {
                let data = value.data.map_or(Vec::new(), |range| self.read[range].to_vec());
                self.read.drain(..used);
                return Some((value.id, value.status, value.error, data));
            }
            if within("frame", self.stream.read_buf(&mut self.read)).await.unwrap_or(0) == 0 {
                return None;
            }
            if !self.answered && self.read.len() >= 2 {
                assert_eq!(self.read[..2], [0, 0]);
                self.read.drain(..2);
                self.answered = true;
            }
        }
    }
}

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    at
}

async fn direct() -> Server {
    Server::start(server_settings(vless(), ServerTransport::default()))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_out_of_order_concern_their_session_only() {
    let (server, echo) = (direct().await, echo().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(7, echo, b"one").await;
    assert_eq!(
        carrier.frame().await.unwrap(),
        (7, Status::Keep { peer: None }, false, b"one".to_vec())
    );
    // Data of a session that is not there is answered with its end; an end is not.
    carrier.send(|out| mux::push_end(out, 9, false)).await;
    carrier.send(|out| mux::push_keep(out, 9, b"lost").unwrap()).await;
    assert_eq!(carrier.frame().await.unwrap(), (9, Status::End, false, vec![]));
    // Keep-alives are nothing, with data or without.
    carrier
        .send(|out| out.extend_from_slice(&[0, 4, 0, 7, 4, 1, 0, 2, 1, 1, 0, 4, 0, 0, 4, 0]))
        .await;
    // The id of a live session begins another one: the old one breaks first.
    carrier.new_stream(7, echo, b"two").await;
    assert_eq!(carrier.frame().await.unwrap(), (7, Status::End, true, vec![]));
    assert_eq!(
        carrier.frame().await.unwrap(),
        (7, Status::Keep { peer: None }, false, b"two".to_vec())
    );
    carrier.send(|out| mux::push_keep(out, 7, b"three").unwrap()).await;
    assert_eq!(carrier.frame().await.unwrap().3, b"three");
    // An end is answered with an end, once.
    carrier.send(|out| mux::push_end(out, 7, false)).await;
    assert_eq!(carrier.frame().await.unwrap(), (7, Status::End, false, vec![]));
    carrier.new_stream(7, echo, b"four").await;
    assert_eq!(carrier.frame().await.unwrap().3, b"four");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_frame_ends_the_carrier() {
    let (server, echo) = (direct().await, echo().await);
    for wrong in [
        &[0, 3, 0, 1, 3, 0][..],
        &[2, 1, 0, 1],
        &[0, 4, 0, 1, 9, 0],
        &[0, 6, 0, 1, 1, 0, 3, 0],
    ] {
        let mut carrier = Carrier::open(at(&server, "in")).await;
        carrier.new_stream(1, echo, b"one").await;
        assert_eq!(carrier.frame().await.unwrap().3, b"one");
        carrier.stream.write_all(wrong).await.unwrap();
        assert!(carrier.frame().await.is_none(), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_256_sessions_at_once() {
    let (server, echo) = (direct().await, echo().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    for id in 0..300 {
        carrier.new_stream(id, echo, b"x").await;
    }
    let (mut served, mut refused) = (0, 0);
    for _ in 0..300 {
        match carrier.frame().await.unwrap() {
            (_, Status::Keep { .. }, ..) => served += 1,
            (id, Status::End, true, _) => {
                assert!(id >= 256, "{id}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((served, refused), (256, 44));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_takes_nothing_stops_the_others_for_five_seconds_only() {
    let (server, echo) = (direct().await, echo().await);
    // A target that accepts and reads nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(1, silent.local_addr().unwrap(), b"").await;
    carrier.new_stream(2, echo, b"before").await;
    assert_eq!(carrier.frame().await.unwrap().3, b"before");
    let began = Instant::now();
    let chunk = vec![0; 32 << 10];
    // More than the socket of the target and what may wait for it take.
    for _ in 0..600 {
        carrier.send(|out| mux::push_keep(out, 1, &chunk).unwrap()).await;
    }
    carrier.send(|out| mux::push_keep(out, 2, b"after").unwrap()).await;
    let mut ended = false;
    loop {
        match carrier.frame().await.unwrap() {
            (1, Status::End, error, _) => {
                assert!(error || ended, "the first says that it broke");
                ended = true;
            }
            (2, Status::Keep { .. }, _, data) => {
                assert_eq!(data, b"after");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    let took = began.elapsed();
    assert!(
        ended && took > Duration::from_secs(4) && took < Duration::from_secs(9),
        "{took:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_association_moves_to_another_carrier_with_its_port() {
    let server = direct().await;
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = target.local_addr().unwrap();
    let mut got = [0; 100];
    let mut first = Carrier::open(at(&server, "in")).await;
    first.new_packets(0, to, 1, b"a").await;
    let port = within("first", target.recv_from(&mut got)).await.unwrap().1;
    // While the first carrier lives: it is told that the session is over there.
    let mut second = Carrier::open(at(&server, "in")).await;
    second.new_packets(3, to, 1, b"b").await;
    assert_eq!(within("second", target.recv_from(&mut got)).await.unwrap().1, port);
    assert_eq!(first.frame().await.unwrap(), (0, Status::End, false, vec![]));
    target.send_to(b"answer", port).await.unwrap();
    let (id, status, _, data) = second.frame().await.unwrap();
    let peer = Some(Destination::udp(Address::from(to.ip()), to.port()));
    assert_eq!((id, status, &data[..]), (3, Status::Keep { peer }, &b"answer"[..]));
    // After the carrier is gone, and after an end.
    drop(second);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut third = Carrier::open(at(&server, "in")).await;
    third.new_packets(0, to, 1, b"c").await;
    assert_eq!(within("third", target.recv_from(&mut got)).await.unwrap().1, port);
    third.send(|out| mux::push_end(out, 0, false)).await;
    third.new_packets(0, to, 1, b"d").await;
    assert_eq!(within("fourth", target.recv_from(&mut got)).await.unwrap().1, port);
    // Another program has another port.
    third.new_packets(1, to, 2, b"e").await;
    assert_ne!(within("other", target.recv_from(&mut got)).await.unwrap().1, port);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_over_what_belongs_to_another_user() {
    let other = User {
        id: sealway_v2ray::UserId::parse("example").unwrap(),
        email: "other@example".into(),
        level: 0,
    };
    let protocol = InboundProtocol::Vless(VlessIn {
        users: vec![user(), other],
        fallbacks: vec![],
    });
    let server = Server::start(server_settings(protocol, ServerTransport::default()))
        .await
        .unwrap();
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = target.local_addr().unwrap();
    let mut got = [0; 100];
    let mut first = Carrier::open(at(&server, "in")).await;
    first.new_packets(0, to, 1, b"a").await;
    let port = within("first", target.recv_from(&mut got)).await.unwrap().1;
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    let id = sealway_v2ray::UserId::parse("example").unwrap();
    let mut request = Vec::new();
    sealway_v2ray::vless::Request {
        id,
        flow: sealway_v2ray::vless::Flow::None,
        command: sealway_v2ray::vless::Command::Mux,
    }
    .encode(&mut request);
    stream.write_all(&request).await.unwrap();
    let mut second = Carrier {
        stream,
        read: Vec::new(),
        answered: false,
    };
    second.new_packets(0, to, 1, b"b").await;
    assert_ne!(within("second", target.recv_from(&mut got)).await.unwrap().1, port);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packetaddr_in_both_forms() {
    use sealway_v2ray::packet_addr;
    let server = direct().await;
    let targets = [udp_target().await, udp_target().await];
    for host in [packet_addr::STREAM_HOST, packet_addr::DATAGRAM_HOST] {
        let is_stream = host == packet_addr::STREAM_HOST;
        let address = Address::parse(host).unwrap();
        let to = if is_stream {
            Destination::tcp(address, 0)
        } else {
            Destination::udp(address, 0)
        };
        let mut request = Vec::new();
        sealway_v2ray::vless::Request {
            id: id(),
            flow: sealway_v2ray::vless::Flow::None,
            command: sealway_v2ray::vless::Command::Connect(to),
        }
        .encode(&mut request);
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&request).await.unwrap();
        let mut header = false;
        for target in targets {
            // VLESS writes a length before each datagram, as the stream form does: the bytes are the same.
            let mut out = Vec::new();
            packet_addr::push_stream(&mut out, target, b"abc").unwrap();
            stream.write_all(&out).await.unwrap();
            if !std::mem::replace(&mut header, true) {
                let mut head = [0; 2];
                within("head", stream.read_exact(&mut head)).await.unwrap();
            }
            let mut got = vec![0; out.len()];
            within(host, stream.read_exact(&mut got)).await.unwrap();
            let Step::Done { value, .. } = packet_addr::decode_stream(&got).unwrap() else {
                panic!("{got:?}");
            };
            assert_eq!((value.0, &got[value.1]), (target, &b"cba"[..]));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_session_has_a_line_in_the_access_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let mut settings = server_settings(vless(), ServerTransport::default());
    settings.access_log = AccessLog::File(log.clone());
    let server = Server::start(settings).await.unwrap();
    let (echo, datagrams) = (echo().await, udp_target().await);
    let mut carrier = Carrier::open(at(&server, "in")).await;
    carrier.new_stream(1, echo, b"a").await;
    carrier.frame().await.unwrap();
    carrier.new_packets(2, datagrams, 1, b"b").await;
    carrier.frame().await.unwrap();
    let said = async {
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if text.lines().count() >= 2 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let text = within("lines", said).await;
    for target in [format!("tcp:{echo}"), format!("udp:{datagrams}")] {
        let line = text
            .lines()
            .find(|line| line.contains(&target))
            .unwrap_or_else(|| panic!("{text}"));
        assert!(
            line.contains("accepted") && line.ends_with("email: user@example"),
            "{line}"
        );
    }
    assert!(!text.contains("mux"), "a carrier is no connection: {text}");
}
