//! Streams between two of our own, and from a client that is nothing but its wire format.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_v2ray::shadowsocks::edition2022::{Request, open_answer};
use sealway_v2ray::shadowsocks::{ChunkOpener, ChunkSealer, KeyChain, Method, Opened, classic};
use sealway_v2ray::{Address, Destination, Step};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_with_one_user_and_with_two() {
    let (target, udp_target) = (target().await, udp_target().await);
    for (method, two) in cases() {
        let name = format!("{method} {two}");
        let server = serve(shadowsocks(method, two)).await;
        let to = at(&server, "in");
        let start = async |target| {
            let out = outbound(shadowsocks_out(method, two, to), ClientTransport::default());
            start(door_settings(target, out)).await
        };
        let client = start(target).await;
        exchange_all(&name, at(&client, "door")).await;
        let client = start(udp_target).await;
        udp_exchange(&name, udp_at(&client, "door")).await;
    }
}

/// A client whose program half-closes hears what comes afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_close_is_passed_on() {
    let target = counting_target().await;
    for method in [Method::Aes128Gcm, Method::Blake3Aes128Gcm] {
        let server = serve(shadowsocks(method, false)).await;
        let to = at(&server, "in");
        let out = outbound(shadowsocks_out(method, false, to), ClientTransport::default());
        let client = start(door_settings(target, out)).await;
        for len in [0, 1, 300_000] {
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            stream.write_all(&pattern(1, len)).await.unwrap();
            stream.shutdown().await.unwrap();
            let said = to_the_end(&mut stream).await;
            assert_eq!(said, (format!("{len} bytes").into_bytes(), true), "{method} {len}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once() {
    let target = target().await;
    let method = Method::Blake3Aes256Gcm;
    let server = serve(shadowsocks(method, true)).await;
    let to = at(&server, "in");
    let out = outbound(shadowsocks_out(method, true, to), ClientTransport::default());
    let client = start(door_settings(target, out)).await;
    let door = at(&client, "door");
    let mut all = JoinSet::new();
    for n in 0..200 {
        all.spawn(async move {
            let stream = TcpStream::connect(door).await.unwrap();
            within("exchange", exchange(stream, 1000 * n, 100_000)).await;
        });
    }
    assert_eq!(all.join_all().await.len(), 200);
}

/// A request to a target with some payload, made at a time, and what opens its answer.
pub(crate) struct Asked {
    pub(crate) wire: Vec<u8>,
    salt: Vec<u8>,
    keys: KeyChain,
}

pub(crate) fn ask(keys: KeyChain, to: SocketAddr, payload: &[u8], seed: u8, time: i64) -> Asked {
    let method = keys.method();
    // Salts of tests that run at once must differ: the process remembers them all.
    let salt = pattern(u64::from(seed) << 32 | u64::from(to.port()), method.salt_len());
    let to = Destination::tcp(Address::from(to.ip()), to.port());
    let mut wire = Vec::new();
    let mut sealer: ChunkSealer = match method.is_2022() {
        true => {
            let request = Request::begin(&keys, &salt, time, &to, &[0; 40], &mut wire);
            request.unwrap().sealer
        }
        false => classic::begin(&keys, &salt, &to, &mut wire).unwrap(),
    };
    sealer.seal(payload, &mut wire).unwrap();
    Asked { wire, salt, keys }
}

impl Asked {
    /// What an answer says.
    pub(crate) fn open(&self, answer: &[u8]) -> Vec<u8> {
        let own = self.keys.own();
        let (mut opener, mut rest) = match own.method().is_2022() {
            true => {
                let Step::Done { value, used } = open_answer(answer, own, &self.salt, now(0)).unwrap() else {
                    panic!("{} bytes are no answer", answer.len());
                };
                (value, answer[used..].to_vec())
            }
            false => {
                let (salt, rest) = answer.split_at(own.method().salt_len());
                (ChunkOpener::new(own, salt).unwrap(), rest.to_vec())
            }
        };
        let mut plain = Vec::new();
        while let Opened::Chunk { payload, used } = opener.open_next(&mut rest).unwrap() {
            plain.extend_from_slice(&rest[payload]);
            rest.drain(..used);
        }
        assert!(rest.is_empty());
        plain
    }
}

/// However a request is cut, it is read. Others refuse one whose header comes in more than one segment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_byte_a_segment() {
    let target = counting_target().await;
    for (number, (method, two)) in cases().enumerate() {
        let server = serve(shadowsocks(method, two)).await;
        let asked = ask(shadowsocks_chain(method, two), target, b"hello", number as u8, now(0));
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in &asked.wire {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
        stream.shutdown().await.unwrap();
        let (answer, whole) = to_the_end(&mut stream).await;
        assert_eq!(
            (asked.open(&answer), whole),
            (b"5 bytes".to_vec(), true),
            "{method} {two}"
        );
    }
}

/// Bytes of each user are counted, by who they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_counted() {
    let target = counting_target().await;
    for method in [Method::Aes256Gcm, Method::Blake3Aes256Gcm] {
        let mut settings = server_settings(shadowsocks(method, true), ServerTransport::default());
        settings.levels = counting();
        let server = start(settings).await;
        let asked = ask(shadowsocks_chain(method, true), target, &[7; 1000], 90, now(0));
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&asked.wire).await.unwrap();
        stream.shutdown().await.unwrap();
        let (answer, _) = to_the_end(&mut stream).await;
        assert_eq!(asked.open(&answer), b"1000 bytes");
        let count = |user: u8, way: &str| {
            let name = format!("user>>>user{user}@example>>>traffic>>>{way}");
            server.stats().get(&name).map_or(0, |counter| counter.get())
        };
        // The client may read the end before it is counted.
        let wanted = [(1000, 10), (0, 0)];
        let counted = || [1, 2].map(|user| (count(user, "uplink"), count(user, "downlink")));
        let until = std::time::Instant::now() + Duration::from_secs(5);
        while counted() != wanted && std::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(counted(), wanted, "{method}");
    }
}
