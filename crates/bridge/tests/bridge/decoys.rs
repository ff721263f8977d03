//! Decoys that a bridge sends.

use std::time::Duration;

use bip324::{PacketType, Role};
use sealway_bip324::decoy::DecoyPolicy;
use sealway_bridge::{Decoys, Outgoing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peer::Peer;
use crate::{NETWORK, bridge, counted, framed, is_closed, listener, pattern, settings, within};

/// A v1 client and a v2 node, with a bridge between them that sends decoys.
async fn between(decoys: Decoys) -> (sealway_bridge::Bridge, TcpStream, Peer) {
    let (node, at) = listener().await;
    let mut settings = settings(at);
    settings.outgoing = Outgoing::V2;
    settings.decoys = Some(decoys);
    let bridge = bridge(settings);
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"the first")).await.unwrap();
    let (tcp, _) = within("the bridge", node.accept()).await.unwrap();
    let peer = within("the handshake", Peer::new(tcp, NETWORK, Role::Responder)).await;
    (bridge, client, peer)
}

#[tokio::test]
async fn a_share_of_packets_are_decoys_and_messages_keep_their_order() {
    let policy = DecoyPolicy::new(20, 3, 40).unwrap();
    let (bridge, mut client, mut peer) = between(Decoys { policy, cover: None }).await;
    assert_eq!(peer.recv().await, b"\0version\0\0\0\0\0the first");
    let pings: Vec<[u8; 8]> = (0..2000u64).map(u64::to_le_bytes).collect();
    let wire: Vec<u8> = pings.iter().flat_map(|nonce| framed("ping", nonce)).collect();
    client.write_all(&wire).await.unwrap();
    let (mut came, mut decoys) = (0, 0);
    while came < pings.len() {
        let (kind, contents) = within("a packet", peer.recv_packet()).await;
        if matches!(kind, PacketType::Decoy) {
            decoys += 1;
            assert!((3..=40).contains(&contents.len()));
        } else {
            assert_eq!(contents, [&[0x12][..], &pings[came]].concat());
            came += 1;
        }
    }
    // 400, and six deviations of 18 to either side.
    assert!((290..510).contains(&decoys), "{decoys}");
    drop(client);
    assert!(is_closed(&mut peer.tcp).await);
    drop(peer);
    counted(bridge.stats(), "decoys", |totals| totals.decoys >= decoys).await;
}

#[tokio::test]
async fn cover_comes_while_nothing_is_said_and_ends_with_the_direction() {
    let policy = DecoyPolicy::new(0, 5, 5).unwrap();
    let cover = Some(Duration::from_millis(5));
    let (bridge, mut client, mut peer) = between(Decoys { policy, cover }).await;
    let (mut came, mut decoys) = (0, 0);
    while came < 2 {
        let (kind, contents) = within("a packet", peer.recv_packet()).await;
        if matches!(kind, PacketType::Genuine) {
            came += 1;
            continue;
        }
        assert_eq!(contents.len(), 5);
        decoys += 1;
        if decoys == 10 {
            client.write_all(&framed("pong", b"the last")).await.unwrap();
        }
    }
    client.shutdown().await.unwrap();
    assert!(is_closed(&mut peer.tcp).await, "cover goes on");
    // The other direction is v1, and has none.
    peer.tcp.shutdown().await.unwrap();
    assert!(is_closed(&mut client).await);
    let totals = counted(bridge.stats(), "decoys", |totals| totals.decoys >= 10).await;
    assert_eq!((totals.messages_out, totals.broken), (2, 0));
    assert!(within("the end", bridge.shutdown(Duration::from_secs(60))).await);
}

#[tokio::test]
async fn cover_to_a_node_that_is_gone_does_not_cut_off_what_it_said() {
    let policy = DecoyPolicy::new(0, 5, 5).unwrap();
    let cover = Some(Duration::from_millis(5));
    let (bridge, mut client, mut peer) = between(Decoys { policy, cover }).await;
    // More than systems hold between the bridge and a client that does not read.
    let block = pattern(1, 3_000_000);
    let wire = framed("block", &block);
    peer.send(&[&[2][..], &block].concat()).await;
    peer.tcp.shutdown().await.unwrap();
    // The bridge carries whole messages: once this comes it has taken everything from the node.
    let mut got = vec![0; 1];
    within("the message", client.read_exact(&mut got)).await.unwrap();
    drop(peer);
    // The first decoys to it draw a reset, those after it fail.
    tokio::time::sleep(Duration::from_millis(200)).await;
    within("the rest", client.read_to_end(&mut got)).await.unwrap();
    assert!(got == wire, "{} of {} bytes came", got.len(), wire.len());
    drop(client);
    let stats = bridge.stats().clone();
    assert!(within("the end", bridge.shutdown(Duration::from_secs(60))).await);
    let totals = stats.totals();
    assert_eq!((totals.messages_in, totals.broken), (1, 0));
}

#[tokio::test]
async fn cover_does_not_keep_a_connection_open() {
    let (node, at) = listener().await;
    let mut settings = settings(at);
    settings.outgoing = Outgoing::V2;
    settings.idle = Duration::from_millis(300);
    let policy = DecoyPolicy::new(0, 0, 0).unwrap();
    let cover = Some(Duration::from_millis(5));
    settings.decoys = Some(Decoys { policy, cover });
    let bridge = bridge(settings);
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"only one")).await.unwrap();
    let (tcp, _) = within("the bridge", node.accept()).await.unwrap();
    let mut peer = within("the handshake", Peer::new(tcp, NETWORK, Role::Responder)).await;
    assert!(is_closed(&mut client).await && is_closed(&mut peer.tcp).await);
    let totals = counted(bridge.stats(), "an idle end", |totals| totals.broken == 1).await;
    assert!(totals.decoys > 0);
}
