//! Where those go who are no users: to the web server that fits.

use sealway_proxy::settings::*;
use sealway_v2ray::vless::fallback::Fallback;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::client;
use crate::common::*;

/// A web server that says its name and repeats what it was asked.
async fn web(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                while !got.ends_with(b"\r\n\r\n") {
                    if tcp.read_buf(&mut got).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let said = format!("{name}|{}", String::from_utf8_lossy(&got));
                let _ = tcp.write_all(said.as_bytes()).await;
            });
        }
    });
    port
}

fn fallback(name: &str, alpn: &str, path: &str, port: u16, xver: u8) -> Fallback<FallbackTarget> {
    Fallback {
        name: name.into(),
        alpn: alpn.into(),
        path: path.into(),
        target: FallbackTarget {
            to: FallbackDial::Local(port),
            xver,
        },
    }
}

/// Asks a TLS port: what a browser would send, with the given name and ALPN.
async fn ask(server: SocketAddr, certificate: &str, name: &str, alpn: &[&str], request: &str) -> String {
    let mut stream = tls_to(server, certificate, name, alpn, rustls::DEFAULT_VERSIONS).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said).await;
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_led_to_the_web_server_that_fits() {
    fit("vless", vless_with, vless_out).await;
    fit("trojan", trojan_with, trojan_out).await;
}

async fn fit(
    protocol: &str,
    inbound: fn(Vec<Fallback<FallbackTarget>>) -> InboundProtocol,
    outbound: fn(SocketAddr) -> OutboundProtocol,
) {
    let (plain, path, h2, sni) = (web("plain").await, web("path").await, web("h2").await, web("sni").await);
    let (tls, certificate) = server_tls(&["server.example", "other.example"]);
    let transport = server_over(TransportKind::Raw, Some(tls));
    let fallbacks = vec![
        fallback("", "", "", plain, 1),
        fallback("", "", "/path", path, 0),
        fallback("", "h2", "", h2, 0),
        fallback("other.example", "", "", sni, 0),
    ];
    let server = start(server_settings(inbound(fallbacks), transport)).await;
    let server_at = at(&server, "in");
    let ask = async |name, alpn: &[&str], request| ask(server_at, &certificate, name, alpn, request).await;
    let get = "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n";
    let said = ask("server.example", &[], get).await;
    let (announced, rest) = said.split_once("\r\n").unwrap();
    assert!(announced.starts_with("plain|PROXY TCP4 127.0.0.1 127.0.0.1 "), "{said}");
    assert_eq!(rest, get, "not exactly what was sent");
    let get = "GET /path?query HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(ask("server.example", &[], get).await, format!("path|{get}"));
    assert_eq!(
        ask("server.example", &["h2"], "PRI * HTTP/2.0\r\n\r\n").await,
        "h2|PRI * HTTP/2.0\r\n\r\n"
    );
    assert_eq!(
        ask("other.example", &[], "HEAD / HTTP/1.1\r\n\r\n").await,
        "sni|HEAD / HTTP/1.1\r\n\r\n"
    );
    assert!(
        ask("server.example", &[], "short\r\n\r\n")
            .await
            .starts_with("plain|PROXY"),
        "18 bytes are not needed"
    );
    // Users get through as before.
    let target = target().await;
    let own = client_over(TransportKind::Raw, Some(&certificate));
    let client = client(target, outbound(server_at), own).await;
    exchange_all(&format!("{protocol} in front of a web server"), at(&client, "door")).await;
}
