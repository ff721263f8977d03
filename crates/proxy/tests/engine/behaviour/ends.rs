//! How connections end: one direction before the other, and in time.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::Timeouts;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::client;
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_one_direction_leaves_the_other() {
    let target = counting_target().await;
    let (tls, certificate) = server_tls(&["server.example"]);
    let ws = TransportKind::WebSocket(Upgrade::default());
    type Out = fn(SocketAddr) -> OutboundProtocol;
    let cases: [(&str, InboundProtocol, Out, TransportKind, bool); 5] = [
        ("vless", vless(), vless_out, TransportKind::Raw, false),
        ("vless tls", vless(), vless_out, TransportKind::Raw, true),
        ("vmess", vmess(), vmess_out, TransportKind::Raw, false),
        ("vmess ws", vmess(), vmess_out, ws.clone(), false),
        ("vmess ws tls", vmess(), vmess_out, ws, true),
    ];
    for (name, protocol, far, network, with_tls) in cases {
        let transport = server_over(network.clone(), with_tls.then(|| tls.clone()));
        let server = start(server_settings(protocol, transport)).await;
        let transport = client_over(network, with_tls.then_some(&*certificate));
        let client = client(target, far(at(&server, "in")), transport).await;
        for len in [0, 1, 300_000] {
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            stream.write_all(&pattern(1, len)).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut said = String::new();
            within(name, stream.read_to_string(&mut said)).await.unwrap();
            assert_eq!(said, format!("{len} bytes"), "{name}");
        }
    }
}

/// Virtual time from the last byte until a connection through a door with these limits is closed.
async fn closed_after(timeouts: Timeouts, half_close: bool) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = door_settings(listener.local_addr().unwrap(), freedom());
    settings.levels = with_timeouts(timeouts);
    let server = start(settings).await;
    let mut near = TcpStream::connect(at(&server, "door")).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    near.write_all(b"x").await.unwrap();
    assert_eq!(far.read_u8().await.unwrap(), b'x');
    if half_close {
        near.shutdown().await.unwrap();
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        // The end is passed on before its time limit begins.
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let since = Instant::now();
    assert_eq!(near.read(&mut [0]).await.unwrap_or(0), 0);
    since.elapsed()
}

#[tokio::test]
async fn a_connection_on_which_nothing_moves_is_closed_in_time() {
    let limits = Timeouts {
        idle: Duration::from_secs(300),
        uplink_only: Duration::from_secs(20),
        downlink_only: Duration::from_secs(40),
    };
    let idle = closed_after(limits, false).await;
    assert!((285..=315).contains(&idle.as_secs()), "{idle:?}");
}

#[tokio::test]
async fn a_half_closed_connection_has_its_own_time() {
    let limits = Timeouts {
        idle: Duration::from_secs(300),
        uplink_only: Duration::from_secs(20),
        downlink_only: Duration::from_secs(40),
    };
    let half = closed_after(limits, true).await;
    assert!((38..=42).contains(&half.as_secs()), "{half:?}");
}
