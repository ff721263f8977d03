//! What programs speak within Vision, over TLS and over REALITY, with Xray in both roles: much goes both ways at once, and arrives
//! as it was sent. `scripts/measure-vision-bulk` does the same with a GiB each way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::cipher_suite::{TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::{exchange, target};
use crate::inner::{Inner, Tap};
use crate::programs::Program;
use crate::reality_client::{HYBRID, Way, site};
use crate::{reality_client, vision};

/// Bytes each way.
const LONG: usize = 3 << 20;
const GREETING: &[u8] = b"220 ready\r\n";

/// Says something first, and is then what stands behind it.
async fn greets(behind: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(behind).await.unwrap();
                near.write_all(GREETING).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    at
}

/// HTTPS with TLS 1.3 and with TLS 1.2, bytes that are no TLS, and a server that speaks first.
async fn speak(kind: usize, door: SocketAddr, inner: &[Inner; 2]) {
    if let Some(inner) = inner.get(kind) {
        return exchange(inner.connect(door).await.unwrap(), LONG, LONG).await;
    }
    let mut tcp = TcpStream::connect(door).await.unwrap();
    if kind == 3 {
        let mut greeting = [0; GREETING.len()];
        tcp.read_exact(&mut greeting).await.unwrap();
        assert_eq!(greeting, GREETING);
    }
    exchange(tcp, LONG, LONG).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_both_ways_at_once() {
    let plain = target().await;
    let suites = [TLS13_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256];
    let inner = Arc::new(suites.map(Inner::new));
    let targets = [
        inner[0].in_front_of(plain).await,
        inner[1].in_front_of(plain).await,
        plain,
        greets(plain).await,
    ];
    let borrowed = site(HYBRID).await;
    let (mut running, mut all) = (Vec::new(), JoinSet::new());
    for pair in vision::PAIRS
        .into_iter()
        .filter(|pair| pair.iter().all(|one| one.there()))
    {
        let over_tls = vision::start(pair, &targets).await;
        let way = |to| Way::new("flow", "raw", borrowed).with_flow(&Tap::default()).to(to);
        let over_reality = reality_client::start(&targets.map(way), pair, plain).await;
        for (over, doors) in [("TLS", &over_tls.doors), ("REALITY", &over_reality.doors)] {
            for (kind, &door) in doors.iter().enumerate() {
                let inner = Arc::clone(&inner);
                all.spawn(async move {
                    let done = timeout(Duration::from_secs(60), speak(kind, door, &inner)).await;
                    assert!(done.is_ok(), "{pair:?} over {over}, kind {kind}: no end");
                });
            }
        }
        running.push((over_tls, over_reality));
    }
    let cases = if Program::Xray.there() { 24 } else { 8 };
    assert_eq!(all.join_all().await.len(), cases);
}
