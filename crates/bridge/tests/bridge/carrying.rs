//! Conversations through bridges.

use std::time::Duration;

use bip324::Role;
use sealway_bip324::message::{Message, MessageTypes};
use sealway_bridge::{Incoming, Outgoing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peer::Peer;
use crate::{
    NETWORK, bridge, conversation, counted, exchange, framed, is_closed, listener, on_the_wire, settings, within,
};

/// The messages as v2 contents, each by its short id if it has one.
fn as_contents(messages: &[(&str, Vec<u8>)]) -> Vec<Vec<u8>> {
    let types = MessageTypes::standard();
    let encoded = messages.iter().map(|(name, payload)| {
        let mut contents = Vec::new();
        let command = name.parse().unwrap();
        Message { command, payload }.encode(&types, &mut contents).unwrap();
        contents
    });
    encoded.collect()
}

#[tokio::test]
async fn a_v1_conversation_through_two_bridges() {
    let (node, node_at) = listener().await;
    let inner = bridge(settings(node_at));
    let mut outer = settings(inner.address());
    outer.outgoing = Outgoing::V2;
    let outer = bridge(outer);
    let (mine, theirs) = (on_the_wire(&conversation(1)), on_the_wire(&conversation(100)));
    // The node answers nothing to v2, so the inner bridge comes again in v1.
    let node_side = async {
        let (mut first, _) = node.accept().await.unwrap();
        let mut header = [0; 24];
        first.read_exact(&mut header).await.unwrap();
        drop(first);
        let (second, _) = node.accept().await.unwrap();
        exchange(second, theirs.clone()).await
    };
    let client_side = async {
        let tcp = TcpStream::connect(outer.address()).await.unwrap();
        exchange(tcp, mine.clone()).await
    };
    let (at_node, at_client) = within("the conversation", async { tokio::join!(node_side, client_side) }).await;
    assert!(at_node == mine, "the node got other bytes than the client sent");
    assert!(at_client == theirs, "the client got other bytes than the node sent");
    let (outer, inner) = (outer.stats().totals(), inner.stats().totals());
    assert_eq!((outer.incoming_v1, outer.outgoing_v2, outer.fallbacks), (1, 1, 0));
    assert_eq!((inner.incoming_v2, inner.outgoing_v1, inner.fallbacks), (1, 1, 1));
    for totals in [outer, inner] {
        assert_eq!((totals.messages_out, totals.messages_in, totals.dropped), (12, 12, 0));
    }
}

#[tokio::test]
async fn a_v2_peer_of_another_implementation_reaches_a_v1_node() {
    let (node, node_at) = listener().await;
    let mut settings = settings(node_at);
    settings.outgoing = Outgoing::V1;
    settings.incoming = Incoming::V2;
    let bridge = bridge(settings);
    let (mine, theirs) = (conversation(1), conversation(100));
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        exchange(tcp, on_the_wire(&theirs)).await
    };
    let peer_side = async {
        let tcp = TcpStream::connect(bridge.address()).await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Initiator).await;
        for contents in as_contents(&mine) {
            peer.send_decoy().await;
            peer.send(&contents).await;
        }
        // What says no type is dropped, and the connection goes on.
        for nonsense in [
            &b""[..],
            b"\x80nobody has this id",
            b"\0short",
            b"\0a\x7fb\0\0\0\0\0\0\0\0\0",
        ] {
            peer.send(nonsense).await;
        }
        // A type that has a short id may come in its long form.
        peer.send(b"\0ping\0\0\0\0\0\0\0\0last ping").await;
        for contents in as_contents(&theirs) {
            assert!(peer.recv().await == contents);
        }
        peer.tcp.shutdown().await.unwrap();
        assert!(is_closed(&mut peer.tcp).await);
    };
    let (at_node, ()) = within("the conversation", async { tokio::join!(node_side, peer_side) }).await;
    let mut want = on_the_wire(&mine);
    want.extend(framed("ping", b"last ping"));
    assert!(at_node == want);
    assert_eq!(bridge.stats().totals().dropped, 4);
}

#[tokio::test]
async fn a_v1_program_reaches_a_v2_peer_of_another_implementation() {
    let (node, node_at) = listener().await;
    let bridge = bridge(settings(node_at));
    let (mine, theirs) = (conversation(1), conversation(100));
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Responder).await;
        for contents in as_contents(&mine) {
            assert!(peer.recv().await == contents);
        }
        for contents in as_contents(&theirs) {
            peer.send(&contents).await;
        }
        peer.tcp.shutdown().await.unwrap();
        assert!(is_closed(&mut peer.tcp).await);
    };
    let client_side = async {
        let tcp = TcpStream::connect(bridge.address()).await.unwrap();
        exchange(tcp, on_the_wire(&mine)).await
    };
    let ((), at_client) = within("the conversation", async { tokio::join!(node_side, client_side) }).await;
    assert!(at_client == on_the_wire(&theirs));
}

#[tokio::test]
async fn from_v2_to_v2_contents_stay_as_they_are() {
    let (node, node_at) = listener().await;
    let mut settings = settings(node_at);
    settings.outgoing = Outgoing::V2;
    let bridge = bridge(settings);
    let said = [
        &b""[..],
        b"\x80nobody has this id",
        b"\0short",
        b"\0ping\0\0\0\0\0\0\0\0a long one",
        b"\x12short one",
    ];
    let node_side = async {
        let (tcp, _) = node.accept().await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Responder).await;
        for contents in said {
            assert_eq!(peer.recv().await, contents);
        }
        peer
    };
    let client_side = async {
        let tcp = TcpStream::connect(bridge.address()).await.unwrap();
        let mut peer = Peer::new(tcp, NETWORK, Role::Initiator).await;
        for contents in said {
            peer.send(contents).await;
        }
        peer
    };
    within("the conversation", async { tokio::join!(node_side, client_side) }).await;
    assert_eq!(bridge.stats().totals().dropped, 0);
}

#[tokio::test]
async fn one_direction_may_end_before_the_other() {
    let (node, node_at) = listener().await;
    let mut settings = settings(node_at);
    settings.outgoing = Outgoing::V1;
    let bridge = bridge(settings);
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"only this")).await.unwrap();
    client.shutdown().await.unwrap();
    let (mut at_node, _) = node.accept().await.unwrap();
    let mut got = Vec::new();
    within("the client's end", at_node.read_to_end(&mut got)).await.unwrap();
    assert_eq!(got, framed("version", b"only this"));
    // The other direction is still there.
    let answer = framed("version", b"an answer");
    at_node.write_all(&answer).await.unwrap();
    let mut got = vec![0; answer.len()];
    within("the answer", client.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, answer);
    drop(at_node);
    assert!(is_closed(&mut client).await);
    assert!(within("shutdown", bridge.shutdown(Duration::from_secs(60))).await);
}

#[tokio::test]
async fn the_end_waits_for_connections_and_then_cuts_them_off() {
    let (node, node_at) = listener().await;
    let mut settings = settings(node_at);
    settings.outgoing = Outgoing::V1;
    let bridge = bridge(settings);
    let address = bridge.address();
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(&framed("version", b"")).await.unwrap();
    let (mut at_node, _) = node.accept().await.unwrap();
    let ending = tokio::spawn(bridge.shutdown(Duration::from_millis(500)));
    // Nothing new is let in, what is there goes on.
    within("the end of listening", async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let mut got = vec![0; 24];
    at_node.read_exact(&mut got).await.unwrap();
    assert!(!within("the end", ending).await.unwrap());
    assert!(is_closed(&mut client).await && is_closed(&mut at_node).await);
}

#[tokio::test]
async fn a_connection_in_which_nothing_moves_ends() {
    let (node, node_at) = listener().await;
    let mut settings = settings(node_at);
    settings.outgoing = Outgoing::V1;
    settings.idle = Duration::from_millis(200);
    let bridge = bridge(settings);
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"")).await.unwrap();
    let (mut at_node, _) = node.accept().await.unwrap();
    assert!(is_closed(&mut client).await && is_closed(&mut at_node).await);
    counted(bridge.stats(), "an idle end", |totals| totals.broken == 1).await;
}
