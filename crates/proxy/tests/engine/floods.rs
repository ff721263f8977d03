//! Clients that send control frames for ever and read nothing, over real sockets, in every state that an inbound has.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::vless::fallback::Fallback;
use sealway_v2ray::ws::frame::{Opcode, Role, control};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::common::*;

/// More than any socket holds.
const FLOOD: usize = 32 << 20;

/// A target that takes everything and says nothing.
async fn sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(1..) = tcp.read(&mut buffer).await {}
            });
        }
    });
    address
}

async fn start(protocol: InboundProtocol) -> Server {
    patient_server(protocol, TransportKind::WebSocket(Upgrade::default())).await
}

/// Upgrades to WebSocket, with as little room for answers as there can be.
async fn upgraded(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(at(server, "in")).await.unwrap();
    let request = "GET / HTTP/1.1\r\nHost: server.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(within("upgrade", stream.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

/// A binary frame of a client.
fn frame(payload: &[u8]) -> Vec<u8> {
    let key = [0; 4];
    [&[0x82, 0x80 | payload.len() as u8], &key[..], payload].concat()
}

/// Sends pings until the server takes no more of them. Returns how many bytes it took.
async fn flood(stream: &mut TcpStream) -> usize {
    let pings = control(Opcode::Ping, &[7; 125], Role::Client, [1, 2, 3, 4])
        .unwrap()
        .repeat(8);
    let (mut sent, mut at) = (0, 0);
    let mut last = Instant::now();
    while sent < FLOOD && last.elapsed() < Duration::from_secs(3) {
        match stream.try_write(&pings[at..]) {
            Ok(wrote) => {
                at = (at + wrote) % pings.len();
                sent += wrote;
                last = Instant::now();
                tokio::task::yield_now().await;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(_) => break,
        }
    }
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_only_pings_is_read_no_further_than_it_reads() {
    let (target, web) = (sink().await, sink().await);
    let vless = |fallbacks| {
        InboundProtocol::Vless(VlessIn {
            users: [user().into()].into_iter().collect(),
            fallbacks,
        })
    };
    let fallback = Fallback {
        name: String::new(),
        alpn: String::new(),
        path: String::new(),
        target: FallbackTarget {
            to: FallbackDial::Tcp(loopback(), web.port()),
            xver: 0,
        },
    };
    let mut datagrams = vless_request(target);
    datagrams[18] = 2;
    let connect = format!("CONNECT {target} HTTP/1.1\r\n\r\n").into_bytes();
    let request = format!("GET http://{target}/ HTTP/1.1\r\n\r\n").into_bytes();
    let socks = socks();
    let http = InboundProtocol::Http(HttpProxy::default());
    let states = [
        ("before a header", vless(vec![]), vec![]),
        ("in a header", vless(vec![]), vless_request(target)[..18].to_vec()),
        ("carried", vless(vec![]), vless_request(target)),
        ("datagrams", vless(vec![]), datagrams),
        (
            "fallback",
            vless(vec![fallback]),
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        ),
        ("tunnel", http.clone(), connect),
        ("request", http, request),
        ("association", socks, vec![5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]),
    ];
    // All at once: each floods until nothing has been taken for seconds.
    let mut floods = JoinSet::new();
    for (state, protocol, first) in states {
        floods.spawn(async move {
            let server = start(protocol).await;
            let mut stream = upgraded(&server).await;
            if !first.is_empty() {
                stream.write_all(&frame(&first)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (state, flood(&mut stream).await)
        });
    }
    for (state, sent) in floods.join_all().await {
        assert!(sent < FLOOD, "{state}: {sent} bytes of pings were taken");
    }
}
