//! Peers that are slow, wrong or many.

use std::time::Duration;

use bip324::Role;
use sealway_bip324::Magic;
use sealway_bip324::message::{Message, v1};
use sealway_bridge::{Bridge, Outgoing, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::peer::Peer;
use crate::{NETWORK, bridge, counted, framed, is_closed, listener, settings, within};

/// A bridge from v2 or v1 to a v1 node.
async fn to_v1(change: impl FnOnce(&mut Settings)) -> (Bridge, TcpListener) {
    let (node, at) = listener().await;
    let mut settings = settings(at);
    settings.outgoing = Outgoing::V1;
    change(&mut settings);
    (bridge(settings), node)
}

/// A v2 peer and the node that it was connected to.
async fn established(bridge: &Bridge, node: &TcpListener) -> (Peer, TcpStream) {
    let tcp = TcpStream::connect(bridge.address()).await.unwrap();
    let (peer, accepted) = within("the handshake", async {
        tokio::join!(Peer::new(tcp, NETWORK, Role::Initiator), node.accept())
    })
    .await;
    (peer, accepted.unwrap().0)
}

#[tokio::test]
async fn another_network_is_closed_and_nothing_is_dialled() {
    let (bridge, _node) = to_v1(|_| {}).await;
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    let message = Message {
        command: "version".parse().unwrap(),
        payload: b"",
    };
    let mut bytes = Vec::new();
    v1::encode(Magic::MAINNET, &message, &mut bytes).unwrap();
    client.write_all(&bytes).await.unwrap();
    assert!(is_closed(&mut client).await);
    let totals = counted(bridge.stats(), "a refusal", |totals| totals.incoming_failed == 1).await;
    assert_eq!((totals.incoming_v1, totals.incoming_v2, totals.outgoing_v1), (0, 0, 0));
}

#[tokio::test]
async fn slow_handshakes_end_in_time_and_others_get_through_meanwhile() {
    let (bridge, node) = to_v1(|settings| settings.handshake_limit = Duration::from_millis(700)).await;
    // Silent from the start, silent after the start of a key, silent after the start of a v1 message, and a trickle.
    let mut slow = Vec::new();
    for start in [&b""[..], b"k", &NETWORK.v1_prefix()[..15]] {
        let mut tcp = TcpStream::connect(bridge.address()).await.unwrap();
        tcp.write_all(start).await.unwrap();
        slow.push(tcp);
    }
    let (mut read, mut write) = TcpStream::connect(bridge.address()).await.unwrap().into_split();
    let trickle = tokio::spawn(async move {
        while write.write_all(b"z").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut quick = TcpStream::connect(bridge.address()).await.unwrap();
    quick.write_all(&framed("version", b"")).await.unwrap();
    within("a quick one", node.accept()).await.unwrap();
    for mut tcp in slow {
        assert!(is_closed(&mut tcp).await);
    }
    within("the trickle", trickle).await.unwrap();
    let _ = read.read_to_end(&mut Vec::new()).await;
    counted(bridge.stats(), "four slow ones", |totals| totals.incoming_failed == 4).await;
}

#[tokio::test]
async fn a_peer_that_announces_much_and_stalls_is_closed() {
    let patience = Duration::from_millis(300);
    let (bridge, node) = to_v1(|settings| settings.patience.silence = patience).await;
    // As much as may be, and 16 MiB, which is refused at its length.
    for len in [4_000_013, (1 << 24) - 1] {
        let (mut peer, mut at_node) = established(&bridge, &node).await;
        let wire = peer.sealed(&vec![0; len]);
        peer.tcp.write_all(&wire[..1000]).await.unwrap();
        assert!(is_closed(&mut peer.tcp).await && is_closed(&mut at_node).await);
    }
    // The same in v1.
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    let whole = framed("block", &vec![0; 4_000_000]);
    client.write_all(&framed("version", b"")).await.unwrap();
    client.write_all(&whole[..1000]).await.unwrap();
    let (mut at_node, _) = node.accept().await.unwrap();
    assert!(is_closed(&mut client).await && is_closed(&mut at_node).await);
    counted(bridge.stats(), "three stalls", |totals| totals.broken == 3).await;
}

#[tokio::test]
async fn a_wrong_tag_closes_both_sides() {
    let (bridge, node) = to_v1(|_| {}).await;
    let (mut peer, mut at_node) = established(&bridge, &node).await;
    peer.send(b"\x12good one").await;
    let mut got = vec![0; 32];
    within("the good one", at_node.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, framed("ping", b"good one"));
    let mut wire = peer.sealed(b"\x12bad one!");
    wire[10] ^= 4;
    wire.extend(peer.sealed(b"\x12too late"));
    peer.tcp.write_all(&wire).await.unwrap();
    let mut rest = Vec::new();
    let _ = within("the node's end", at_node.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{rest:?}");
    assert!(is_closed(&mut peer.tcp).await);
    counted(bridge.stats(), "a broken one", |totals| totals.broken == 1).await;
}

#[tokio::test]
async fn another_network_in_v1_closes_both_sides() {
    let (bridge, node) = to_v1(|_| {}).await;
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"")).await.unwrap();
    let (mut at_node, _) = within("the node", node.accept()).await.unwrap();
    let mut got = vec![0; 24];
    within("the first message", at_node.read_exact(&mut got)).await.unwrap();
    let mut other = framed("ping", b"12345678");
    other[0] ^= 1;
    client.write_all(&other).await.unwrap();
    let mut rest = Vec::new();
    let _ = within("the node's end", at_node.read_to_end(&mut rest)).await;
    assert!(rest.is_empty(), "{rest:?}");
    assert!(is_closed(&mut client).await);
}

#[tokio::test]
async fn a_wrong_checksum_or_type_in_v1_is_dropped_and_the_connection_goes_on() {
    let (bridge, node) = to_v1(|_| {}).await;
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    let mut garbled = framed("ping", b"garbled!");
    *garbled.last_mut().unwrap() ^= 1;
    let mut unnamed = framed("ping", b"no name!");
    unnamed[5] = 7;
    let (first, second) = (framed("version", b""), framed("ping", b"good one"));
    client.write_all(&first).await.unwrap();
    let (mut at_node, _) = within("the node", node.accept()).await.unwrap();
    // In one write, and a byte at a time.
    client
        .write_all(&[&garbled[..], &second, &unnamed].concat())
        .await
        .unwrap();
    for byte in [&garbled[..], &second].concat() {
        client.write_all(&[byte]).await.unwrap();
    }
    let mut got = vec![0; first.len() + 2 * second.len()];
    within("the good ones", at_node.read_exact(&mut got)).await.unwrap();
    assert!(got == [&first[..], &second, &second].concat(), "{got:?}");
    // One after which nothing comes is counted too.
    client.write_all(&garbled).await.unwrap();
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    within("the client's end", at_node.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(rest.is_empty(), "{rest:?}");
    let totals = counted(bridge.stats(), "four dropped", |totals| totals.dropped == 4).await;
    assert_eq!((totals.messages_out, totals.broken), (3, 0));
}

#[tokio::test]
async fn messages_that_are_dropped_do_not_keep_a_connection_open() {
    let (bridge, _node) = to_v1(|settings| settings.idle = Duration::from_millis(300)).await;
    let (mut read, mut write) = TcpStream::connect(bridge.address()).await.unwrap().into_split();
    write.write_all(&framed("version", b"")).await.unwrap();
    let mut garbled = framed("ping", b"garbled!");
    *garbled.last_mut().unwrap() ^= 1;
    let flood = tokio::spawn(async move {
        while write.write_all(&garbled).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    within("the flood", flood).await.unwrap();
    let _ = read.read_to_end(&mut Vec::new()).await;
    let totals = counted(bridge.stats(), "an idle end", |totals| totals.broken == 1).await;
    assert!(totals.dropped > 0);
}

#[tokio::test]
async fn good_messages_that_come_together_with_a_bad_one_reach_the_node() {
    let pings = framed("ping", b"good one").repeat(3);
    // v1 of another network.
    let good = [framed("version", b""), pings.clone()].concat();
    let (bridge, node) = to_v1(|_| {}).await;
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    let mut wire = [&good[..], &framed("ping", b"bad one!")].concat();
    wire[good.len()] ^= 1;
    client.write_all(&wire).await.unwrap();
    let (mut at_node, _) = within("the node", node.accept()).await.unwrap();
    let mut got = Vec::new();
    let _ = within("the node's end", at_node.read_to_end(&mut got)).await;
    assert!(got == good, "{} of {} bytes", got.len(), good.len());
    assert!(is_closed(&mut client).await);
    let totals = counted(bridge.stats(), "a broken one", |totals| totals.broken == 1).await;
    assert_eq!(totals.messages_out, 4);
    // v2 with a wrong tag.
    let (bridge, node) = to_v1(|_| {}).await;
    let (mut peer, mut at_node) = established(&bridge, &node).await;
    let mut wire = Vec::new();
    for contents in [b"\x12good one"; 3] {
        wire.extend(peer.sealed(contents));
    }
    wire.extend(peer.sealed(b"\x12bad one!"));
    *wire.last_mut().unwrap() ^= 1;
    peer.tcp.write_all(&wire).await.unwrap();
    let mut got = Vec::new();
    let _ = within("the node's end", at_node.read_to_end(&mut got)).await;
    assert!(got == pings, "{} of {} bytes", got.len(), pings.len());
    assert!(is_closed(&mut peer.tcp).await);
}

#[tokio::test]
async fn half_a_connection_ends_in_time_whatever_it_carries() {
    let (bridge, node) = to_v1(|settings| settings.half_closed = Duration::from_millis(300)).await;
    let mut client = TcpStream::connect(bridge.address()).await.unwrap();
    client.write_all(&framed("version", b"")).await.unwrap();
    client.shutdown().await.unwrap();
    let (at_node, _) = within("the node", node.accept()).await.unwrap();
    let (_read, mut write) = at_node.into_split();
    let talking = async {
        while write.write_all(&framed("ping", b"12345678")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (closed, ()) = within("the end", async { tokio::join!(is_closed(&mut client), talking) }).await;
    assert!(closed);
    counted(bridge.stats(), "a broken one", |totals| totals.broken == 1).await;
}

#[tokio::test]
async fn more_connections_than_allowed_are_turned_away() {
    let (bridge, node) = to_v1(|settings| settings.connections = 2).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut client = TcpStream::connect(bridge.address()).await.unwrap();
        client.write_all(&framed("version", b"")).await.unwrap();
        kept.push((client, within("the node", node.accept()).await.unwrap()));
    }
    let mut third = TcpStream::connect(bridge.address()).await.unwrap();
    assert!(is_closed(&mut third).await);
    assert_eq!(bridge.stats().totals().turned_away, 1);
    // A place that is free again is given again.
    kept.pop();
    within("a free place", async {
        loop {
            let mut client = TcpStream::connect(bridge.address()).await.unwrap();
            let _ = client.write_all(&framed("version", b"")).await;
            if let Ok(accepted) = tokio::time::timeout(Duration::from_millis(100), node.accept()).await {
                accepted.unwrap();
                break;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn v2_handshakes_wait_for_their_turn_and_v1_does_not() {
    let (bridge, node) = to_v1(|settings| {
        settings.handshakes_per_second = 1;
        settings.handshake_limit = Duration::from_secs(2);
    })
    .await;
    // Two at once, the third a second later; the others give up before it is their turn.
    let mut peers = Vec::new();
    for _ in 0..8 {
        let mut tcp = TcpStream::connect(bridge.address()).await.unwrap();
        tcp.write_all(&[7; 64]).await.unwrap();
        peers.push(tcp);
    }
    let mut v1 = TcpStream::connect(bridge.address()).await.unwrap();
    v1.write_all(&framed("version", b"")).await.unwrap();
    within("v1", node.accept()).await.unwrap();
    let mut answered = 0;
    for mut tcp in peers {
        let mut key = Vec::new();
        let _ = within("an end", tcp.read_to_end(&mut key)).await;
        answered += usize::from(!key.is_empty());
    }
    assert!((2..8).contains(&answered), "{answered}");
    let totals = counted(bridge.stats(), "all of them", |totals| totals.incoming_failed == 8).await;
    assert_eq!((totals.incoming_v1, totals.turned_away), (1, 0), "{totals:?}");
}
