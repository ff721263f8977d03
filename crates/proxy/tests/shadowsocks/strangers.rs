//! What strangers see: whatever they send, the same.

use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::shadowsocks::{ChunkSealer, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::datagrams::resident;
use super::streams::ask;
use super::*;

/// What an outsider sees who sends this: what is said, and whether it ends in good order.
async fn seen(server: &Server, sent: &[u8]) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(at(server, "in")).await.unwrap();
    let _ = stream.write_all(sent).await;
    let _ = stream.shutdown().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    to_the_end(&mut stream).await
}

/// Wrong beginnings of requests to a target, by what is wrong.
fn wrong(method: Method, two: bool, target: std::net::SocketAddr) -> Vec<(&'static str, Vec<u8>)> {
    let junk = pattern(8, 20_000);
    let own = || shadowsocks_chain(method, two);
    let request = |seed: u8, time: i64| ask(own(), target, b"hello", seed, time).wire;
    let changed = |seed: u8, at: usize| {
        let mut wire = request(seed, now(0));
        wire[at] ^= 1;
        wire
    };
    let then = |wire: Vec<u8>| [wire, junk.clone()].concat();
    let salt = method.salt_len();
    let mut all = vec![
        ("junk", junk.clone()),
        (
            "a web browser",
            then(b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n".to_vec()),
        ),
        (
            "TLS",
            then(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and what follows".to_vec()),
        ),
        ("a changed salt", then(changed(1, 3))),
        ("a changed length", then(changed(2, salt + 1))),
        ("a changed tag", then(changed(3, salt + 17))),
    ];
    if method.is_2022() {
        all.push(("a clock that is ahead", then(request(4, now(60)))));
        all.push(("a clock that is behind", then(request(5, now(-60)))));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_all_see_the_same() {
    let target = counting_target().await;
    for (method, two) in cases() {
        let server = serve(shadowsocks(method, two)).await;
        for (name, sent) in wrong(method, two, target) {
            // In 2017 they are heard out; in 2022 the connection is reset at once, as the other servers do it.
            assert_eq!(
                seen(&server, &sent).await,
                (vec![], !method.is_2022()),
                "{method} {two}, {name}"
            );
        }
    }
}

/// A request that was right once is refused like any other wrong one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_requests_are_refused() {
    let target = counting_target().await;
    let junk = pattern(8, 20_000);
    for (number, (method, two)) in cases().enumerate() {
        let server = serve(shadowsocks(method, two)).await;
        let asked = ask(
            shadowsocks_chain(method, two),
            target,
            b"hello",
            100 + number as u8,
            now(0),
        );
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&asked.wire).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(asked.open(&to_the_end(&mut stream).await.0), b"5 bytes");
        // In 2022 nothing follows: what is let in would be answered. In 2017 it is more than the server listens to.
        let again = match method.is_2022() {
            true => asked.wire.clone(),
            false => [&asked.wire[..], &junk].concat(),
        };
        assert_eq!(
            seen(&server, &again).await,
            (vec![], !method.is_2022()),
            "{method} {two}"
        );
        if method.is_2022() {
            // Not by another inbound of this process either.
            let other = serve(shadowsocks(method, two)).await;
            assert_eq!(seen(&other, &again).await, (vec![], false), "{method} {two}");
        }
    }
}

/// Whoever does not want it can have requests of 2017 come twice, as the cores let them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_requests_of_2017_pass_where_nobody_remembers() {
    let target = counting_target().await;
    let method = Method::Aes128Gcm;
    let InboundProtocol::Shadowsocks(mut settings) = shadowsocks(method, false) else {
        panic!()
    };
    settings.once = false;
    let server = serve(InboundProtocol::Shadowsocks(settings)).await;
    let asked = ask(shadowsocks_chain(method, false), target, b"hello", 200, now(0));
    for _ in 0..2 {
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&asked.wire).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(asked.open(&to_the_end(&mut stream).await.0), b"5 bytes");
    }
}

/// A beginning that never goes on ends with the time there is for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dribbling_does_not_win_time() {
    let target = counting_target().await;
    for method in [Method::Aes256Gcm, Method::Blake3Aes256Gcm] {
        let mut settings = server_settings(shadowsocks(method, false), ServerTransport::default());
        settings.levels = handshake_within(Duration::from_millis(300));
        let server = start(settings).await;
        let asked = ask(shadowsocks_chain(method, false), target, b"hello", 201, now(0));
        for len in [0, 1, 40, method.salt_len() + 30] {
            let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
            stream.write_all(&asked.wire[..len]).await.unwrap();
            let begun = std::time::Instant::now();
            let (said, in_order) = to_the_end(&mut stream).await;
            assert!(begun.elapsed() < Duration::from_secs(10));
            assert_eq!((said, in_order), (vec![], !method.is_2022()), "{method} {len}");
        }
    }
}

/// Bytes that are sent at a time where it is counted how many are taken.
const PIECE: usize = 64;

/// How many bytes are taken before the connection ends, in good order.
async fn taken(to: std::net::SocketAddr, sent: Vec<u8>) -> usize {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for (number, piece) in sent.chunks(PIECE).enumerate() {
        stream.write_all(piece).await.unwrap();
        if let Ok(ended) = timeout(Duration::from_millis(25), stream.read(&mut [0])).await {
            assert_eq!(ended.unwrap(), 0);
            return (number + 1) * PIECE;
        }
    }
    panic!("all of it was taken");
}

/// A server of 2017 takes as much of a request whose length is right and nothing else as of noise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_much_is_heard_of_a_good_beginning_as_of_noise() {
    let target = counting_target().await;
    for (method, two) in [(Method::Aes256Gcm, false), (Method::ChaCha20Poly1305, true)] {
        let keys = shadowsocks_chain(method, two);
        let server = serve(shadowsocks(method, two)).await;
        let junk = pattern(8, 20_000);
        let salt = method.salt_len();
        let mut changed = ask(shadowsocks_chain(method, two), target, b"", 210, now(0)).wire;
        changed[salt + 18] ^= 1;
        let good = ask(shadowsocks_chain(method, two), target, b"", 211, now(0)).wire;
        let salt = pattern(u64::from(target.port()) << 8, salt);
        let mut unknown = salt.clone();
        let mut sealer = ChunkSealer::new(keys.own(), &salt).unwrap();
        sealer.seal(&[9; 40], &mut unknown).unwrap();
        // Seen before.
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&good).await.unwrap();
        drop(stream);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut all = JoinSet::new();
        for sent in [vec![], vec![], changed, unknown, good] {
            let sent = [sent, junk.clone()].concat();
            all.spawn(taken(at(&server, "in"), sent));
        }
        let taken = all.join_all().await;
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        // 64 bytes at most are drawn for each connection.
        assert!(*least > 4 * PIECE && most - least <= 3 * PIECE, "{method}: {taken:?}");
    }
}

/// Ten thousand strangers leave nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_strangers_leave_nothing_behind() {
    let target = counting_target().await;
    for (seed, method) in [(221, Method::Aes128Gcm), (222, Method::Blake3Aes128Gcm)] {
        let server = serve(shadowsocks(method, true)).await;
        let to = at(&server, "in");
        let before = resident();
        let mut all = JoinSet::new();
        for n in 0..100 {
            all.spawn(async move {
                for m in 0..50 {
                    let mut stream = TcpStream::connect(to).await.unwrap();
                    let _ = stream.write_all(&pattern(n * 100 + m, 120)).await;
                    let _ = stream.shutdown().await;
                    assert_eq!(to_the_end(&mut stream).await.0, b"");
                }
            });
        }
        assert_eq!(all.join_all().await.len(), 100);
        let asked = ask(shadowsocks_chain(method, true), target, b"hello", seed, now(0));
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(&asked.wire).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(asked.open(&to_the_end(&mut stream).await.0), b"5 bytes");
        let grown = resident().saturating_sub(before);
        // Other tests run meanwhile.
        assert!(grown < 64 << 20, "{method}: {grown} bytes");
    }
}
