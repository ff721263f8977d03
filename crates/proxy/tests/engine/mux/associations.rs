//! Associations that outlive their carriers, and datagrams that name their targets.

use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_v2ray::mux::{self, Status};
use sealway_v2ray::{Address, Destination, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::{Carrier, direct};
use crate::common::*;

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
        users: [user().into(), other.into()].into_iter().collect(),
        fallbacks: vec![],
    });
    let server = serve(protocol).await;
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
async fn an_association_ends_with_its_server() {
    let server = direct().await;
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = target.local_addr().unwrap();
    let mut carrier = Carrier::open(at(&server, "in")).await;
    let mut got = [0; 100];
    for (session, program) in [(0, 1), (1, 2)] {
        carrier.new_packets(session, to, program, b"a").await;
        let from = within("first", target.recv_from(&mut got)).await.unwrap().1;
        if session == 0 {
            // One waits for its next carrier.
            carrier.send(|out| mux::push_end(out, 0, false)).await;
            continue;
        }
        drop(server);
        let free = async {
            while UdpSocket::bind(("0.0.0.0", from.port())).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        within("port", free).await;
        return;
    }
}
