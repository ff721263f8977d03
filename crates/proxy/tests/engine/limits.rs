//! Time limits, ends and resets.

use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_proxy::{Server, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dribbling_does_not_win_time() {
    let (tls, _) = server_tls(&["server.example"]);
    let ws = || TransportKind::WebSocket(Upgrade::default());
    let plain = ServerTransport::default;
    // Each waits for more than it gets: a header, a ClientHello, a head, an announcement.
    let hello = [&[0x16, 3, 1, 0x10, 0, 1, 0, 0x0f, 0xfc, 3, 3][..], &[7; 4000]].concat();
    let head = [&b"GET / HTTP/1.1\r\nA: "[..], &[b'a'; 6000]].concat();
    let cases = [
        (
            "vless",
            vless(),
            plain(),
            [&[0][..], id().as_bytes(), &[0, 1, 0, 80, 2, 255], &[b'a'; 200]].concat(),
        ),
        ("vmess", vmess(), plain(), vec![1; 15]),
        (
            "tls",
            vless(),
            ServerTransport {
                tls: Some(tls),
                ..plain()
            },
            hello,
        ),
        (
            "websocket",
            vless(),
            ServerTransport { kind: ws(), ..plain() },
            head.clone(),
        ),
        // No request is among its frames.
        (
            "grpc",
            vless(),
            ServerTransport {
                kind: TransportKind::Grpc(Grpc::default()),
                ..plain()
            },
            [
                &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..],
                &b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01".repeat(100),
            ]
            .concat(),
        ),
        (
            "proxy protocol",
            vless(),
            ServerTransport {
                accept_proxy_protocol: true,
                ..plain()
            },
            b"PROXY TCP6 ".to_vec(),
        ),
        ("http", InboundProtocol::Http(HttpProxy::default()), plain(), head),
        (
            "socks",
            InboundProtocol::Socks(Socks::default()),
            plain(),
            [&[5, 1, 0, 5, 1, 0, 3, 255][..], &[b'a'; 200]].concat(),
        ),
    ];
    for (name, protocol, transport, bytes) in cases {
        let mut settings = server_settings(protocol, transport);
        settings.levels = handshake_within(Duration::from_millis(300));
        let server = start(settings).await;
        let stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut read, mut write) = stream.into_split();
        let dribbling = async {
            // The last byte, with which it might be whole, never comes.
            let pieces = bytes.chunks(bytes.len().div_ceil(600)).take(600);
            for piece in pieces {
                if write.write_all(piece).await.is_err() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            std::future::pending::<()>().await;
        };
        let closed = async {
            let mut buffer = [0; 64];
            while read.read(&mut buffer).await.unwrap_or(0) > 0 {}
        };
        let ended = async {
            tokio::select! {
                () = dribbling => {}
                () = closed => {}
            }
        };
        within(name, ended).await;
    }
}

/// A door, with these limits, to a target that the test plays.
async fn between(timeouts: Timeouts) -> (Server, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = door_settings(listener.local_addr().unwrap(), freedom());
    settings.levels = with_timeouts(timeouts);
    let server = start(settings).await;
    let near = TcpStream::connect(at(&server, "door")).await.unwrap();
    let (far, _) = within("accept", listener.accept()).await.unwrap();
    (server, near, far)
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_direction_has_its_own_limit_and_zero_ends_at_once() {
    // The client ends; the target, which goes on, has no time.
    let limits = |uplink_only, downlink_only| Timeouts {
        idle: LONG,
        uplink_only,
        downlink_only,
    };
    let (_server, mut near, mut far) = between(limits(LONG, Duration::ZERO)).await;
    near.write_all(b"last words").await.unwrap();
    near.shutdown().await.unwrap();
    let mut got = String::new();
    within("upload", far.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "last words", "what was sent before the end arrives");
    assert_eq!(to_the_end(&mut near).await.0, b"");
    // The target ends; the client has time.
    let (_server, mut near, mut far) = between(limits(LONG, Duration::ZERO)).await;
    far.shutdown().await.unwrap();
    assert_eq!(to_the_end(&mut near).await, (vec![], true));
    near.write_all(b"later").await.unwrap();
    near.shutdown().await.unwrap();
    let mut got = String::new();
    within("upload", far.read_to_string(&mut got)).await.unwrap();
    assert_eq!(got, "later");
    // The other way round.
    let (_server, mut near, mut far) = between(limits(Duration::ZERO, LONG)).await;
    far.write_all(b"last words").await.unwrap();
    far.shutdown().await.unwrap();
    assert_eq!(to_the_end(&mut near).await.0, b"last words");
    assert_eq!(to_the_end(&mut far).await.0, b"");
    let (_server, mut near, mut far) = between(limits(Duration::ZERO, LONG)).await;
    near.shutdown().await.unwrap();
    assert_eq!(to_the_end(&mut far).await, (vec![], true));
    far.write_all(b"later").await.unwrap();
    drop(far);
    assert_eq!(to_the_end(&mut near).await, (b"later".to_vec(), true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn activity_keeps_a_connection_and_the_lack_of_it_ends_it() {
    let limits = Timeouts {
        idle: Duration::from_secs(2),
        ..Timeouts::default()
    };
    let (_server, mut near, mut far) = between(limits).await;
    // Longer than the limit in all, never longer than it at once; either direction counts.
    for round in 0..12 {
        let (from, to) = if round % 2 == 0 {
            (&mut near, &mut far)
        } else {
            (&mut far, &mut near)
        };
        from.write_all(b"x").await.unwrap();
        assert_eq!(within("byte", to.read_u8()).await.unwrap(), b'x', "closed while in use");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(to_the_end(&mut near).await.0, b"");
    assert_eq!(to_the_end(&mut far).await.0, b"");
}

/// A client before each kind of server, with both ends of it played by the test.
async fn pairs() -> Vec<(&'static str, Server, Server, TcpListener)> {
    let (tls, certificate) = server_tls(&["server.example"]);
    let upgrade = TransportKind::HttpUpgrade(Upgrade::default());
    let mut pairs = Vec::new();
    let over = |network: &TransportKind, with_tls: bool| {
        (
            server_over(network.clone(), with_tls.then(|| tls.clone())),
            client_over(network.clone(), with_tls.then_some(&*certificate)),
        )
    };
    let raw = TransportKind::Raw;
    for (name, protocol, (server_side, client_side)) in [
        ("vless", vless(), over(&raw, false)),
        ("vless tls", vless(), over(&raw, true)),
        ("vless httpupgrade", vless(), over(&upgrade, false)),
        ("vmess", vmess(), over(&raw, false)),
        ("vmess httpupgrade tls", vmess(), over(&upgrade, true)),
        ("socks", InboundProtocol::Socks(Socks::default()), over(&raw, false)),
        ("http", InboundProtocol::Http(HttpProxy::default()), over(&raw, false)),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = server_settings(protocol, server_side);
        let timeouts = Timeouts {
            uplink_only: LONG,
            downlink_only: LONG,
            idle: LONG,
        };
        let level = Level {
            timeouts,
            ..Level::default()
        };
        settings.levels = vec![(0, level)];
        let server = start(settings).await;
        let to = at(&server, "in");
        let out = match name.split(' ').next() {
            Some("vless") => vless_out(to),
            Some("vmess") => vmess_out(to),
            Some("socks") => socks_out(to, None),
            _ => OutboundProtocol::Http(proxy_out(to, None)),
        };
        let client = start(Settings {
            inbounds: vec![door(listener.local_addr().unwrap())],
            outbounds: vec![outbound(out, client_side)],
            levels: vec![(0, level)],
            ..Settings::default()
        })
        .await;
        pairs.push((name, server, client, listener));
    }
    pairs
}

async fn ends(client: &Server, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let mut near = TcpStream::connect(at(client, "door")).await.unwrap();
    near.write_all(b"hello").await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let mut got = [0; 5];
    within("hello", far.read_exact(&mut got)).await.unwrap();
    far.write_all(b"hello").await.unwrap();
    within("hello", near.read_exact(&mut got)).await.unwrap();
    (near, far)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_direction_may_end_first() {
    let late = pattern(9, 200_000);
    for (name, _server, client, listener) in pairs().await {
        let (mut near, mut far) = ends(&client, &listener).await;
        near.shutdown().await.unwrap();
        assert_eq!(to_the_end(&mut far).await, (vec![], true), "{name}");
        far.write_all(&late).await.unwrap();
        drop(far);
        assert!(
            to_the_end(&mut near).await == (late.clone(), true),
            "{name}: download after the upload's end"
        );
        let (mut near, mut far) = ends(&client, &listener).await;
        far.shutdown().await.unwrap();
        assert_eq!(to_the_end(&mut near).await, (vec![], true), "{name}");
        near.write_all(&late).await.unwrap();
        drop(near);
        assert!(
            to_the_end(&mut far).await == (late.clone(), true),
            "{name}: upload after the download's end"
        );
    }
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_is_passed_on_as_one() {
    for (name, _server, client, listener) in pairs().await {
        let (near, mut far) = ends(&client, &listener).await;
        reset(near);
        assert_eq!(to_the_end(&mut far).await, (vec![], false), "{name}: the client's");
        let (mut near, far) = ends(&client, &listener).await;
        reset(far);
        assert_eq!(to_the_end(&mut near).await, (vec![], false), "{name}: the target's");
    }
}
