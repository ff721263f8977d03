//! Many connections at once, from addresses 127.0.0.x.

use std::net::SocketAddr;
use std::time::Duration;

use bip324::Role;
use sealway_bridge::{Bridge, Outgoing, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::peer::Peer;
use crate::{NETWORK, bridge, counted, framed, is_closed, listener, settings, within};

/// A v1 node that answers every message with itself, and a bridge before it.
async fn before_a_node(change: impl FnOnce(&mut Settings)) -> (Bridge, JoinHandle<()>) {
    let (node, at): (TcpListener, SocketAddr) = listener().await;
    let mut settings = settings(at);
    settings.outgoing = Outgoing::V1;
    change(&mut settings);
    let answering = tokio::spawn(async move {
        loop {
            let (tcp, _) = node.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.into_split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    (bridge(settings), answering)
}

/// A connection of 127.0.0.`last`.
async fn from(last: u8, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
    socket.connect(to).await
}

/// True if a message comes back through the bridge. The connection stays open until the end of the test.
async fn v1_gets_through(last: u8, to: SocketAddr) -> Option<TcpStream> {
    let mut tcp = from(last, to).await.ok()?;
    let message = framed("version", b"an honest client");
    tcp.write_all(&message).await.ok()?;
    let mut got = vec![0; message.len()];
    within("an answer", tcp.read_exact(&mut got)).await.ok()?;
    (got == message).then_some(tcp)
}

#[tokio::test]
async fn silent_connections_of_one_address_let_everybody_else_in() {
    // However slowly they came: it is not for their pace that they are kept out.
    let (bridge, node) = before_a_node(|settings| settings.connections_per_address_per_second = 1000).await;
    let mut silent = Vec::new();
    for _ in 0..256 {
        silent.push(from(2, bridge.address()).await.unwrap());
    }
    counted(bridge.stats(), "all of them", |totals| totals.accepted == 256).await;
    let mut honest = Vec::new();
    for last in 10..20 {
        honest.push(
            v1_gets_through(last, bridge.address())
                .await
                .expect("an honest client is let in"),
        );
    }
    let totals = bridge.stats().totals();
    assert!(totals.turned_away >= 256 - 32, "{totals:?}");
    assert_eq!((totals.incoming_v1, totals.outgoing_v1), (10, 10), "{totals:?}");
    node.abort();
}

#[tokio::test]
async fn silent_connections_of_many_addresses_give_way() {
    let (bridge, node) = before_a_node(|settings| settings.connections = 64).await;
    let mut silent = Vec::new();
    for last in 2..10 {
        for _ in 0..8 {
            silent.push(from(last, bridge.address()).await.unwrap());
        }
    }
    counted(bridge.stats(), "all places", |totals| totals.accepted == 64).await;
    let mut honest = Vec::new();
    for last in 20..30 {
        honest.push(
            v1_gets_through(last, bridge.address())
                .await
                .expect("an honest client is let in"),
        );
    }
    // v2 as well.
    let tcp = from(30, bridge.address()).await.unwrap();
    let mut peer = within("a handshake", Peer::new(tcp, NETWORK, Role::Initiator)).await;
    peer.send(b"\x12a ping..").await;
    assert_eq!(within("a pong", peer.recv()).await, b"\x12a ping..");
    let totals = bridge.stats().totals();
    assert_eq!((totals.evicted, totals.turned_away), (11, 0), "{totals:?}");
    // The youngest of each were the ones to go, and those who came first are still there.
    assert!(is_closed(&mut silent[7]).await);
    let mut byte = [0];
    let waiting = tokio::time::timeout(Duration::from_millis(50), silent[0].read(&mut byte)).await;
    assert!(waiting.is_err(), "the first one was closed");
    node.abort();
}

#[tokio::test]
async fn a_flood_of_connections_from_one_address_lets_everybody_else_in() {
    let (bridge, node) = before_a_node(|_| {}).await;
    let to = bridge.address();
    let flood = tokio::spawn(async move {
        // Some say nothing, some begin v2.
        for n in 0..3000u32 {
            if let Ok(mut tcp) = from(2, to).await
                && n % 2 == 0
            {
                let _ = tcp.write_all(&[7; 64]).await;
            }
        }
    });
    counted(bridge.stats(), "the flood", |totals| totals.accepted > 100).await;
    let mut honest = Vec::new();
    for last in 10..30 {
        honest.push(v1_gets_through(last, to).await.expect("an honest client is let in"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let tcp = from(30, to).await.unwrap();
    let mut peer = within("a handshake", Peer::new(tcp, NETWORK, Role::Initiator)).await;
    peer.send(b"\x12a ping..").await;
    assert_eq!(within("a pong", peer.recv()).await, b"\x12a ping..");
    within("the flood", flood).await.unwrap();
    let totals = bridge.stats().totals();
    assert_eq!(totals.incoming_v1, 20, "{totals:?}");
    assert!(totals.turned_away > 1000, "{totals:?}");
    node.abort();
}
