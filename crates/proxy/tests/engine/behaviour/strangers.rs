//! What those get who are no users, or want what is not for them.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::client;
use crate::common::*;

#[tokio::test]
async fn a_client_that_says_nothing_is_closed_in_time() {
    for protocol in [vless(), vmess()] {
        let server = serve(protocol).await;
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&[0]).await.unwrap();
        tokio::task::yield_now().await;
        tokio::time::pause();
        let since = Instant::now();
        assert_eq!(
            stream.read(&mut [0]).await.unwrap_or(0),
            0,
            "nothing is said to a stranger"
        );
        let took = since.elapsed();
        assert!((57..=63).contains(&took.as_secs()), "{took:?}");
        tokio::time::resume();
    }
}

/// How many bytes a server takes from a stranger before it closes, written one by one behind `first`.
async fn taken_before_close(server: SocketAddr, first: &[u8]) -> usize {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(first).await.unwrap();
    let mut sent = first.len();
    let mut answer = [0];
    loop {
        match tokio::time::timeout(Duration::from_millis(2), stream.read(&mut answer)).await {
            Ok(Ok(0) | Err(_)) => return sent,
            Ok(Ok(_)) => panic!("a stranger was answered"),
            Err(_) => {}
        }
        assert!(sent < 4096, "never closed");
        if stream.write_all(&[7; 16]).await.is_err() {
            return sent;
        }
        sent += 16;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_on_vmess_is_heard_out_before_the_door_closes() {
    let server = serve(vmess()).await;
    for first in [vec![0; 16], pattern(5, 17), pattern(6, 54)] {
        let taken = within("drain", taken_before_close(at(&server, "in"), &first)).await;
        assert!(
            taken >= 16 + 38,
            "closed after {taken} bytes: the length of the first field shows"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_client_does_not_reach_this_machine() {
    let target = target().await;
    let mut settings = server_settings(vless(), ServerTransport::default());
    settings.outbounds[0].protocol = OutboundProtocol::Freedom(Freedom::default());
    let server = start(settings).await;
    let client = client(target, vless_out(at(&server, "in")), ClientTransport::default()).await;
    let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    let _ = stream.write_all(&[0; 16]).await;
    // The client is left waiting; had the target been reached, its digest would come.
    let said = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 1])).await;
    assert!(!matches!(said, Ok(Ok(1..))));
}
