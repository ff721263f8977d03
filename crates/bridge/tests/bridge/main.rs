//! Bridges and probes over loopback, against plain v1 programs and against crate `bip324`.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod carrying;
mod crowds;
mod decoys;
mod fallback;
mod hostile;
mod peer;
mod probing;

use std::net::SocketAddr;
use std::time::Duration;

use sealway_bip324::Magic;
use sealway_bip324::message::{Message, v1};
use sealway_bridge::{Bridge, Settings, Stats, Target, Totals};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const NETWORK: Magic = Magic::REGTEST;

/// Runs to its end, or fails after a time that only something stuck needs.
async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(60), future).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: no end after 60 s"),
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// The defaults, from any port to an address.
fn settings(to: SocketAddr) -> Settings {
    Settings::new("127.0.0.1:0".parse().unwrap(), Target::from(to), NETWORK)
}

fn bridge(settings: Settings) -> Bridge {
    Bridge::start(settings).unwrap()
}

/// A v1 message as it is on the wire.
fn framed(name: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let message = Message {
        command: name.parse().unwrap(),
        payload,
    };
    v1::encode(NETWORK, &message, &mut out).unwrap();
    out
}

/// Bytes that nothing else is.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Messages of one end of a conversation: with and without a short id, empty and long payloads, types nobody knows.
fn conversation(seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("version", pattern(seed, 102)),
        ("verack", vec![]),
        ("sendaddrv2", vec![]),
        ("ping", pattern(seed + 1, 8)),
        ("pong", pattern(seed + 2, 8)),
        ("addr", pattern(seed + 3, 30_003)),
        ("twelve chars", pattern(seed + 4, 70)),
        ("zz", vec![]),
        ("block", pattern(seed + 5, 1_000_000)),
        ("mempool", vec![]),
        ("tx", pattern(seed + 6, 250)),
        ("inv", pattern(seed + 7, 37)),
    ]
}

fn on_the_wire(messages: &[(&str, Vec<u8>)]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|(name, payload)| framed(name, payload))
        .collect()
}

/// Sends all of `ours`, ends the direction, and gives everything that comes.
async fn exchange(tcp: TcpStream, ours: Vec<u8>) -> Vec<u8> {
    let (mut read, mut write) = tcp.into_split();
    let sending = tokio::spawn(async move {
        write.write_all(&ours).await.unwrap();
        write.shutdown().await.unwrap();
        write
    });
    let mut got = Vec::new();
    read.read_to_end(&mut got).await.unwrap();
    sending.await.unwrap();
    got
}

/// Waits until the counters say what is wanted.
async fn counted(stats: &Stats, what: &str, wanted: impl Fn(&Totals) -> bool) -> Totals {
    let waiting = async {
        loop {
            let totals = stats.totals();
            if wanted(&totals) {
                return totals;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(60), waiting).await {
        Ok(totals) => totals,
        Err(_) => panic!("{what}: {:?}", stats.totals()),
    }
}

/// True once the other end has closed, in whichever way.
async fn is_closed(tcp: &mut TcpStream) -> bool {
    let mut byte = [0; 4096];
    loop {
        match within("closing", tcp.read(&mut byte)).await {
            Ok(0) | Err(_) => return true,
            Ok(_) => {}
        }
    }
}
