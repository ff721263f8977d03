//! Where those go who are no users: to the web server that fits.

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::vless::fallback::Fallback;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::*;
use crate::{client, vless, vless_out};

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

/// Asks through a door to a TLS port: what a browser would send, with the given name and ALPN.
async fn ask(server: SocketAddr, certificate: &str, name: &str, alpn: &[&str], request: &str) -> String {
    let tls = ClientTls {
        server_name: name.into(),
        alpn: alpn.iter().map(|&alpn| alpn.into()).collect(),
        ..client_tls(certificate)
    };
    // An HTTP CONNECT cannot be used to reach it, so TLS is put on a freedom outbound's place by a plain rustls client.
    let mut stream = tls_client(server, &tls).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said).await;
    said
}

async fn tls_client(server: SocketAddr, tls: &ClientTls) -> tokio_rustls::client::TlsStream<TcpStream> {
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(std::sync::Arc::new(Anyone))
        .with_no_client_auth();
    config.alpn_protocols = tls.alpn.iter().map(|alpn| alpn.clone().into_bytes()).collect();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let tcp = TcpStream::connect(server).await.unwrap();
    connector
        .connect(tls.server_name.clone().try_into().unwrap(), tcp)
        .await
        .unwrap()
}

#[derive(Debug)]
struct Anyone;

impl rustls::client::danger::ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &rustls::pki_types::ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_led_to_the_web_server_that_fits() {
    fit("vless", vless, vless_out).await;
    let to = |server: SocketAddr| trojan_out((loopback(), server.port()));
    fit("trojan", trojan_with, to).await;
}

async fn fit(
    protocol: &str,
    inbound: fn(Vec<Fallback<FallbackTarget>>) -> InboundProtocol,
    outbound: fn(SocketAddr) -> OutboundProtocol,
) {
    let (plain, path, h2, sni) = (web("plain").await, web("path").await, web("h2").await, web("sni").await);
    let (tls, certificate) = server_tls(&["server.example", "other.example"]);
    let transport = ServerTransport {
        tls: Some(tls),
        ..ServerTransport::default()
    };
    let fallbacks = vec![
        fallback("", "", "", plain, 1),
        fallback("", "", "/path", path, 0),
        fallback("", "h2", "", h2, 0),
        fallback("other.example", "", "", sni, 0),
    ];
    let server = Server::start(server_settings(inbound(fallbacks), transport))
        .await
        .unwrap();
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
    let own = ClientTransport {
        tls: Some(client_tls(&certificate)),
        ..ClientTransport::default()
    };
    let client = client(target, outbound(server_at), own).await;
    exchange_all(&format!("{protocol} in front of a web server"), at(&client, "door")).await;
}
