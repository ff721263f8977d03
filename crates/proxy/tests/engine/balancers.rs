//! Balancers by what measuring outbounds shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Answers requests of HTTP. Returns its port, and the number of connections as it grows.
async fn web() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let _ = client.read(&mut [0; 1024]).await;
                let _ = client.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            });
        }
    });
    (port, count)
}

async fn start(text: &str) -> Server {
    let file = File {
        name: "config.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.problems));
    Server::start(Settings::from_config(&config).unwrap()).await.unwrap()
}

/// Waits until every one of so many outbounds has been measured.
async fn measured(server: &Server, count: usize) {
    for _ in 0..300 {
        if server.stats().health().len() == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?}", server.stats().health());
}

/// Of two outbounds one never answers: each way of measuring finds that, and connections take the other.
#[tokio::test(flavor = "multi_thread")]
async fn the_outbound_that_answers_is_taken() {
    let (web, visits) = web().await;
    // Accepts and never answers.
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hole_port = hole.local_addr().unwrap().port();
    for (observatory, strategy) in [
        (
            format!(
                r#""observatory": {{"subjectSelector": ["p-"], "probeURL": "http://127.0.0.1:{web}/", "probeInterval": "200ms", "enableConcurrency": true}}"#
            ),
            r#""strategy": {"type": "leastPing"}"#,
        ),
        (
            format!(
                r#""burstObservatory": {{"subjectSelector": ["p-"], "pingConfig": {{"destination": "http://127.0.0.1:{web}/", "timeout": "1s"}}}}"#
            ),
            r#""strategy": {"type": "leastLoad", "settings": {"expected": 2}}"#,
        ),
        (
            format!(
                r#""burstObservatory": {{"subjectSelector": ["p-"], "pingConfig": {{"destination": "http://127.0.0.1:{web}/", "timeout": "1s", "httpMethod": "GET", "connectivity": "http://127.0.0.1:{web}/"}}}}"#
            ),
            r#""fallbackTag": "blocked", "strategy": {"type": "roundRobin"}"#,
        ),
    ] {
        let server = start(&format!(
            r#"{{"log": {{"access": "none"}},
            "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
                "settings": {{"address": "127.0.0.1", "port": {web}}}}}],
            "outbounds": [{{"tag": "blocked", "protocol": "blackhole"}}, {{"tag": "p-good", "protocol": "freedom"}},
                {{"tag": "p-hole", "protocol": "socks", "settings": {{"servers": [{{"address": "127.0.0.1", "port": {hole_port}}}]}}}}],
            "routing": {{"balancers": [{{"tag": "b", "selector": ["p-"], {strategy}}}],
                "rules": [{{"network": "tcp", "balancerTag": "b"}}]}},
            {observatory}}}"#
        ))
        .await;
        let before = visits.load(Ordering::Relaxed);
        measured(&server, 2).await;
        if observatory.contains("enableConcurrency") {
            // The next round waits for the one that takes all of its five seconds.
            assert!(visits.load(Ordering::Relaxed) - before <= 2, "{visits:?}");
        }
        let health = server.stats().health();
        let (good, down) = (&health["p-good"], &health["p-hole"]);
        assert!(
            good.alive && good.delay > Duration::ZERO && good.last_seen > 0,
            "{health:?}"
        );
        assert!(
            !down.alive && down.failed == down.measured && !down.last_error.is_empty(),
            "{health:?}"
        );
        let to = server.addresses("in")[0];
        for _ in 0..6 {
            let mut client = TcpStream::connect(to).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            let mut answer = Vec::new();
            let reading = client.read_to_end(&mut answer);
            tokio::time::timeout(Duration::from_secs(5), reading)
                .await
                .unwrap()
                .unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 204"), "{strategy}");
        }
        server.shutdown(Duration::ZERO).await;
    }
}

/// Where even the direct way is closed, no outbound is blamed.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_network_nothing_is_blamed() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = |connectivity: &str| {
        format!(
            r#"{{"inbounds": [{{"listen": "127.0.0.1", "port": 0, "protocol": "socks"}}], "outbounds": [{{"tag": "p", "protocol": "freedom"}}],
            "burstObservatory": {{"subjectSelector": ["p"], "pingConfig": {{"timeout": "2s",
                "destination": "http://127.0.0.1:{closed}/"{connectivity}}}}}}}"#
        )
    };
    let blamed = start(&config("")).await;
    let spared = start(&config(&format!(r#", "connectivity": "http://127.0.0.1:{closed}/""#))).await;
    measured(&blamed, 1).await;
    assert!(!blamed.stats().health()["p"].alive);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(spared.stats().health().is_empty());
}
