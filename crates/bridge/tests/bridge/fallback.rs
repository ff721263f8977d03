//! When v1 is tried after v2, and when not.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_bridge::{Incoming, Outgoing, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{bridge, counted, framed, is_closed, listener, settings, within};

async fn client(settings: Settings) -> (TcpStream, sealway_bridge::Bridge) {
    let bridge = bridge(settings);
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"mine")).await.unwrap();
    (client, bridge)
}

fn only(outgoing: Outgoing, to: SocketAddr) -> Settings {
    let mut settings = settings(to);
    settings.outgoing = outgoing;
    settings
}

/// Takes the v2 attempt, reads `read` bytes of it, answers with some, and closes.
async fn answer(node: &tokio::net::TcpListener, read: usize, answer: &[u8]) {
    let (mut tcp, _) = node.accept().await.unwrap();
    let mut buffer = vec![0; read];
    tcp.read_exact(&mut buffer).await.unwrap();
    tcp.write_all(answer).await.unwrap();
    tcp.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_node_that_answers_nothing_is_tried_in_v1() {
    // After a v1 header, and after all of the key.
    for read in [24, 64] {
        let (node, at) = listener().await;
        let (mut client, bridge) = client(only(Outgoing::Auto, at)).await;
        within("the v2 attempt", answer(&node, read, b"")).await;
        let (mut tcp, _) = within("the v1 attempt", node.accept()).await.unwrap();
        let mut got = vec![0; 28];
        within("the first message", tcp.read_exact(&mut got)).await.unwrap();
        assert_eq!(got, framed("version", b"mine"));
        let reply = framed("version", b"yours");
        tcp.write_all(&reply).await.unwrap();
        let mut got = vec![0; reply.len()];
        within("the answer", client.read_exact(&mut got)).await.unwrap();
        assert_eq!(got, reply);
        let totals = bridge.stats().totals();
        assert_eq!((totals.fallbacks, totals.outgoing_v2, totals.outgoing_v1), (1, 0, 1));
    }
}

#[tokio::test]
async fn a_node_that_is_silent_is_tried_in_v1_when_time_is_up() {
    let (node, at) = listener().await;
    let mut settings = only(Outgoing::Auto, at);
    settings.incoming = Incoming::V1;
    settings.handshake_limit = Duration::from_millis(300);
    let (_client, _bridge) = client(settings).await;
    let (_silent, _) = within("the v2 attempt", node.accept()).await.unwrap();
    let (mut tcp, _) = within("the v1 attempt", node.accept()).await.unwrap();
    let mut got = vec![0; 28];
    within("the first message", tcp.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, framed("version", b"mine"));
}

#[tokio::test]
async fn a_node_that_answered_anything_is_not() {
    for said in [&b"x"[..], &[7; 64], &[7; 6000]] {
        let (node, at) = listener().await;
        let (mut client, bridge) = client(only(Outgoing::Auto, at)).await;
        within("the v2 attempt", answer(&node, 64, said)).await;
        assert!(is_closed(&mut client).await);
        let totals = counted(bridge.stats(), "a failed attempt", |totals| totals.outgoing_failed == 1).await;
        assert_eq!((totals.fallbacks, totals.outgoing_v1), (0, 0), "{} bytes", said.len());
    }
}

#[tokio::test]
async fn who_wants_v2_only_gets_nothing_else() {
    let (node, at) = listener().await;
    let (mut client, bridge) = client(only(Outgoing::V2, at)).await;
    within("the v2 attempt", answer(&node, 64, b"")).await;
    assert!(is_closed(&mut client).await);
    let totals = counted(bridge.stats(), "a failed attempt", |totals| totals.outgoing_failed == 1).await;
    assert_eq!((totals.fallbacks, totals.outgoing_v1), (0, 0));
}

#[tokio::test]
async fn a_node_that_is_not_there_closes_the_client() {
    let (node, at) = listener().await;
    drop(node);
    let (mut client, bridge) = client(only(Outgoing::Auto, at)).await;
    assert!(is_closed(&mut client).await);
    let totals = counted(bridge.stats(), "a failed attempt", |totals| totals.outgoing_failed == 1).await;
    assert_eq!((totals.incoming_v1, totals.fallbacks), (1, 0));
}

#[tokio::test]
async fn what_may_not_come_in_is_closed_before_anything_is_dialled() {
    for (incoming, first) in [(Incoming::V2, framed("version", b"mine")), (Incoming::V1, vec![9; 200])] {
        let (_node, at) = listener().await;
        let mut settings = settings(at);
        settings.incoming = incoming;
        let bridge = bridge(settings);
        let mut client = TcpStream::connect(bridge.address()).await.unwrap();
        client.write_all(&first).await.unwrap();
        assert!(is_closed(&mut client).await);
        let totals = counted(bridge.stats(), "a refusal", |totals| totals.incoming_failed == 1).await;
        assert_eq!(totals.outgoing_v1 + totals.outgoing_v2 + totals.outgoing_failed, 0);
    }
}
