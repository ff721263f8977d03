//! What a relay holds while nobody reads, and how many of them end together.

use std::collections::BTreeMap;

use sealway_net::sock::Sock;
use sealway_v2ray::ws::frame::Role;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::{advance, timeout};

use super::*;
use crate::stats::Traffic;
use crate::tls;
use crate::transport::ws::Frames;

fn bare(sock: UnixStream) -> Stream {
    Stream::new(Sock::Unix(sock), Traffic::default())
}

/// What a direction of a connection may hold; the message about `bufferSize` says it.
const PROMISED: usize = 256 << 10;

#[tokio::test(start_paused = true)]
async fn a_stalled_direction_holds_what_is_promised() {
    for (name, with_tls, with_ws) in [("tls", true, false), ("ws", false, true), ("ws tls", true, true)] {
        for sealed_on_both_sides in [false, true] {
            let (mut near, _client) = match with_tls {
                true => tls::tests::ends(tls::tests::suites()[0]).await,
                false => {
                    let (a, b) = UnixStream::pair().unwrap();
                    (bare(a), bare(b))
                }
            };
            if with_ws {
                near.set_framing(Box::new(Frames::new(Role::Server)));
            }
            let (far, flooding) = if sealed_on_both_sides {
                let (far, mut peer) = tls::tests::ends(tls::tests::suites()[0]).await;
                let flooding = tokio::spawn(async move { while peer.send(&[7; 200_000]).await.is_ok() {} });
                (far, flooding)
            } else {
                let (a, mut peer) = UnixStream::pair().unwrap();
                let flooding = tokio::spawn(async move { while peer.write_all(&[7; 200_000]).await.is_ok() {} });
                (bare(a), flooding)
            };
            for stream in [&near, &far] {
                let Some(Sock::Unix(sock)) = stream.carrier.sock() else {
                    panic!("unix")
                };
                // Reads that are as large as they may be.
                socket2::SockRef::from(sock).set_send_buffer_size(4 << 20).unwrap();
            }
            let mut relay = Relay::new(near, far, Timeouts::default(), Presence::nobody());
            let stalled = timeout(Duration::from_secs(1), std::future::poll_fn(|cx| relay.poll(cx)));
            assert!(stalled.await.is_err(), "{name}: somebody reads");
            assert!(relay.near.wants_flush(), "{name}: nothing waits");
            let held = relay.near.held() + relay.far.held();
            assert!(held > 32 << 10, "{name}: {held} bytes is not what a download needs");
            assert!(held <= PROMISED, "{name}: {held} bytes are held");
            flooding.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connections_that_end_at_once_do_not_end_together() {
    const COUNT: usize = 300;
    let pacer: &Pacer = Box::leak(Box::new(Pacer::new(1)));
    let (mut clients, mut targets, mut relays) = (Vec::new(), Vec::new(), JoinSet::new());
    let began = Instant::now();
    for number in 0..COUNT {
        let ((near, client), (far, target)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let mut relay = Relay::new(bare(near), bare(far), Timeouts::default(), Presence::nobody());
        relay.pacer = pacer;
        relays.spawn(async move { (number, relay.run().await.is_ok(), began.elapsed()) });
        clients.push(client);
        targets.push(target);
    }
    // The last one is in use.
    advance(Duration::from_secs(2)).await;
    let mut used = clients.pop().unwrap();
    used.write_all(b"x").await.unwrap();
    targets[COUNT - 1].readable().await.unwrap();
    let closed = began.elapsed();
    drop((used, clients));
    targets.clear();
    let mut at = BTreeMap::new();
    while let Some(ended) = relays.join_next().await {
        let (number, well, when) = ended.unwrap();
        let after = when - closed;
        if number == COUNT - 1 {
            assert!(after < Duration::from_millis(2), "who is in use waits {after:?}");
            continue;
        }
        assert!(well);
        *at.entry(after.as_millis()).or_insert(0) += 1;
    }
    assert!(at.values().all(|&together| together <= 16), "{at:?}");
    assert!(at.len() > 30, "{at:?}");
}
