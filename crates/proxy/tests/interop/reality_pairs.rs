//! REALITY between ourselves and Xray in both roles, with every transport, and with Vision within it.

use std::time::Duration;

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::cipher_suite::{TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS13_AES_128_GCM_SHA256};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

use crate::common::{exchange, target, within};
use crate::inner::{Inner, Tap, holds};
use crate::programs::Program;
use crate::reality_client::{HYBRID, Way, site, start};
use crate::vision::PAIRS;

/// Payload of both ends is compared byte by byte with what was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_within_every_transport_and_the_flow() {
    // All at once: each program waits seconds for what it learns of its target.
    let (here, mut all) = (LocalSet::new(), JoinSet::new());
    for pair in PAIRS.into_iter().filter(|pair| pair.iter().all(|one| one.there())) {
        for suite in [TLS13_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256] {
            all.spawn_local_on(tls_within(pair, suite), &here);
        }
    }
    here.run_until(all.join_all()).await;
}

async fn tls_within(pair: [Program; 2], suite: SupportedCipherSuite) {
    let leaves = suite.tls13().is_some();
    let (inner, inside, outside) = (Inner::new(suite), Tap::default(), Tap::default());
    let behind = inside.in_front_of(inner.in_front_of(target().await).await).await;
    let borrowed = site(HYBRID).await;
    let ways = [
        Way::new("flow", "raw", borrowed).with_flow(&outside),
        Way::new("raw", "raw", borrowed),
        Way::new("grpc", "grpc", borrowed),
        Way::new("xhttp", "xhttp", borrowed),
    ];
    let both = start(&ways, pair, behind).await;
    for (way, door) in ways.iter().zip(&both.doors) {
        let what = format!("{pair:?}, {}, {:?}", way.name, suite.suite());
        for (up, down) in [(1, 1), (300_000, 500_000), (5 << 20, 5 << 20)] {
            let stream = within(&what, inner.connect(*door)).await.unwrap();
            let done = tokio::time::timeout(Duration::from_secs(60), exchange(stream, up, down)).await;
            assert!(done.is_ok(), "{what}: no end of {up} and {down}");
        }
        if way.name != "flow" {
            continue;
        }
        // What the target got last, and said last, is on the way between the two as it is, or not at all.
        for (sender, inside, outside) in [
            (pair[0], &inside.up, &outside.up),
            (pair[1], &inside.down, &outside.down),
        ] {
            let (inside, outside) = (inside.lock().unwrap(), outside.lock().unwrap());
            let late = inside.len() - 50_000;
            let found = holds(&outside, &inside[late..late + 64]);
            // Xray leaves TLS where a read happens to end with a record, which it need not.
            assert!(found == leaves || (leaves && sender == Program::Xray), "{what}");
            assert!(!holds(&outside, &inside[..64]), "{what}: the inner hello");
        }
    }
    // Nothing of the outer TLS has come between.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let faults = inner.faults.lock().unwrap().clone();
    assert!(faults.is_empty() || pair[0] == Program::Xray, "{pair:?}: {faults:?}");
}

/// What is no TLS stays within the outer one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_bytes_within_the_flow() {
    let (here, mut all) = (LocalSet::new(), JoinSet::new());
    for pair in PAIRS.into_iter().filter(|pair| pair.iter().all(|one| one.there())) {
        all.spawn_local_on(plain_bytes(pair), &here);
    }
    here.run_until(all.join_all()).await;
}

async fn plain_bytes(pair: [Program; 2]) {
    let ways = [Way::new("flow", "raw", site(HYBRID).await).with_flow(&Tap::default())];
    let both = start(&ways, pair, target().await).await;
    for (up, down) in [(1, 1), (65_536, 65_536), (8 << 20, 8 << 20)] {
        let tcp = TcpStream::connect(both.doors[0]).await.unwrap();
        within(&format!("{pair:?}"), exchange(tcp, up, down)).await;
    }
}
