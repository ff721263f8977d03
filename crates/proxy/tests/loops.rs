//! Ways that lead a server to itself. Alone in its process, whose descriptors are counted.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::vless::fallback::Fallback;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Everything in one configuration, so that one test has the process for itself.
async fn start(inbounds: Vec<Inbound>) -> Server {
    let settings = Settings {
        inbounds,
        outbounds: vec![freedom()],
        ..Settings::default()
    };
    Server::start(settings).await.unwrap()
}

/// Sends this to an inbound and looks at what comes of it.
async fn comes_to_rest(what: &str, to: SocketAddr, words: &[u8]) {
    let before = descriptors();
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(words).await.unwrap();
    let mut most = 0;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        most = most.max(descriptors().saturating_sub(before));
    }
    assert!(most < 16, "{what}: {most} descriptors more than before");
}

fn door_on(tag: &str, port: u16, to: u16) -> Inbound {
    Inbound {
        tag: tag.into(),
        listen: vec![Listen::Port(SocketAddr::from(([127, 0, 0, 1], port)))],
        ..door(SocketAddr::from(([127, 0, 0, 1], to)))
    }
}

fn vless(port: u16, fallback: u16) -> Inbound {
    let fallback = Fallback {
        name: String::new(),
        alpn: String::new(),
        path: String::new(),
        target: FallbackTarget {
            to: FallbackDial::Local(fallback),
            xver: 0,
        },
    };
    let vless = VlessIn {
        users: [user().into()].into_iter().collect(),
        fallbacks: vec![fallback],
    };
    Inbound {
        listen: vec![Listen::EveryAddress(port)],
        ..inbound("vless", InboundProtocol::Vless(vless), ServerTransport::default())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_dial_itself_until_its_descriptors_are_gone() {
    // An HTTP inbound that believes the Host header, on one address and on all.
    let http = || {
        InboundProtocol::Http(HttpProxy {
            allow_transparent: true,
            ..HttpProxy::default()
        })
    };
    let [everywhere, first, second, web, itself, last] = free_ports();
    let server = start(vec![
        Inbound {
            listen: vec![Listen::EveryAddress(everywhere)],
            ..inbound("everywhere", http(), ServerTransport::default())
        },
        // Two doors, each to the other, for streams and for datagrams.
        door_on("first", first, second),
        door_on("second", second, first),
        vless(itself, itself),
        inbound("http", http(), ServerTransport::default()),
        inbound(
            "socks",
            InboundProtocol::Socks(Socks::default()),
            ServerTransport::default(),
        ),
    ])
    .await;
    let request = |to: &str| format!("GET / HTTP/1.1\r\nHost: {to}\r\n\r\n").into_bytes();
    let own = at(&server, "http");
    comes_to_rest("http", own, &request(&own.to_string())).await;
    let all = SocketAddr::from(([127, 0, 0, 1], everywhere));
    for name in ["127.0.0.1", "127.0.0.9", "0.0.0.0", "localhost"] {
        comes_to_rest(name, all, &request(&format!("{name}:{everywhere}"))).await;
    }
    // From one inbound to another that would lead back.
    comes_to_rest("http by another", own, &request(&all.to_string())).await;
    comes_to_rest("two doors", SocketAddr::from(([127, 0, 0, 1], first)), b"x").await;
    comes_to_rest(
        "a fallback to itself",
        SocketAddr::from(([127, 0, 0, 1], itself)),
        b"GET / HTTP/1.1\r\n\r\n",
    )
    .await;
    let before = descriptors();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(b"x", ("127.0.0.1", first)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let more = descriptors().saturating_sub(before);
    assert!(
        more < 16,
        "two doors for datagrams: {more} descriptors more than before"
    );
    server.shutdown(Duration::ZERO).await;
    // A web page that strangers of a VLESS inbound are shown is shown to its users too.
    let listener = TcpListener::bind(("127.0.0.1", web)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let _ = tcp.write_all(b"a page").await;
        }
    });
    let _server = start(vec![vless(last, web)]).await;
    let vless = SocketAddr::from(([127, 0, 0, 1], last));
    let mut stream = TcpStream::connect(vless).await.unwrap();
    stream.write_all(&vless_request(vless)).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n")
        .await
        .unwrap();
    let mut got = [0; 8];
    within("the page", stream.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, *b"\0\0a page");
}
