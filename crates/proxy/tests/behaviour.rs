//! What a connection does besides carrying bytes: fallbacks, ends, time limits, refusals, counters.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::*;
use sealway_proxy::settings::*;
use sealway_proxy::{Server, Timeouts};
use sealway_v2ray::vless::fallback::Fallback;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

fn vless(fallbacks: Vec<Fallback<FallbackTarget>>) -> InboundProtocol {
    InboundProtocol::Vless(VlessIn {
        users: vec![user()],
        fallbacks,
    })
}

fn vmess() -> InboundProtocol {
    InboundProtocol::Vmess(VmessIn {
        users: vec![user()],
        secure_only: false,
    })
}

fn vless_out(server: SocketAddr) -> OutboundProtocol {
    OutboundProtocol::Vless(VlessOut {
        server: (loopback(), server.port()),
        id: id(),
    })
}

async fn client(target: SocketAddr, protocol: OutboundProtocol, transport: ClientTransport) -> Server {
    let settings = Settings {
        inbounds: vec![door(target)],
        outbounds: vec![outbound(protocol, transport)],
        ..Settings::default()
    };
    Server::start(settings).await.unwrap()
}

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
    let server = Server::start(server_settings(vless(fallbacks), transport))
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
    let client = client(target, vless_out(server_at), own).await;
    exchange_all("vless in front of a web server", at(&client, "door")).await;
}

/// Takes everything up to the end, then answers with how much it was.
async fn counting_target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut all = Vec::new();
                if tcp.read_to_end(&mut all).await.is_ok() {
                    let _ = tcp.write_all(format!("{} bytes", all.len()).as_bytes()).await;
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_one_direction_leaves_the_other() {
    let target = counting_target().await;
    let (tls, certificate) = server_tls(&["server.example"]);
    let ws = Network::WebSocket(HttpNetwork::default());
    let vmess_out = |server: SocketAddr| {
        OutboundProtocol::Vmess(VmessOut {
            server: (loopback(), server.port()),
            id: id(),
            security: VmessSecurity::Auto,
            authenticated_length: false,
            no_end: false,
        })
    };
    type Out<'a> = &'a dyn Fn(SocketAddr) -> OutboundProtocol;
    let cases: [(&str, InboundProtocol, Out<'_>, Network, bool); 5] = [
        ("vless", vless(vec![]), &vless_out, Network::Raw, false),
        ("vless tls", vless(vec![]), &vless_out, Network::Raw, true),
        ("vmess", vmess(), &vmess_out, Network::Raw, false),
        ("vmess ws", vmess(), &vmess_out, ws.clone(), false),
        ("vmess ws tls", vmess(), &vmess_out, ws, true),
    ];
    for (name, protocol, far, network, with_tls) in cases {
        let transport = ServerTransport {
            network: network.clone(),
            tls: with_tls.then(|| tls.clone()),
            ..ServerTransport::default()
        };
        let server = Server::start(server_settings(protocol, transport)).await.unwrap();
        let transport = ClientTransport {
            network,
            tls: with_tls.then(|| client_tls(&certificate)),
            ..ClientTransport::default()
        };
        let client = client(target, far(at(&server, "in")), transport).await;
        for len in [0, 1, 300_000] {
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            stream.write_all(&pattern(1, len)).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut said = String::new();
            within(name, stream.read_to_string(&mut said)).await.unwrap();
            assert_eq!(said, format!("{len} bytes"), "{name}");
        }
    }
}

/// Virtual time from the last byte until a connection through a door with these limits is closed.
async fn closed_after(timeouts: Timeouts, half_close: bool) -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut settings = Settings {
        inbounds: vec![door(listener.local_addr().unwrap())],
        outbounds: vec![freedom()],
        ..Settings::default()
    };
    settings.levels.push((
        0,
        Level {
            timeouts,
            ..Level::default()
        },
    ));
    let server = Server::start(settings).await.unwrap();
    let mut near = TcpStream::connect(at(&server, "door")).await.unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    near.write_all(b"x").await.unwrap();
    assert_eq!(far.read_u8().await.unwrap(), b'x');
    if half_close {
        near.shutdown().await.unwrap();
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        // The end is passed on before its time limit begins.
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let since = Instant::now();
    assert_eq!(near.read(&mut [0]).await.unwrap_or(0), 0);
    since.elapsed()
}

#[tokio::test]
async fn a_connection_on_which_nothing_moves_is_closed_in_time() {
    let limits = Timeouts {
        idle: Duration::from_secs(300),
        uplink_only: Duration::from_secs(20),
        downlink_only: Duration::from_secs(40),
    };
    let idle = closed_after(limits, false).await;
    assert!((285..=315).contains(&idle.as_secs()), "{idle:?}");
}

#[tokio::test]
async fn a_half_closed_connection_has_its_own_time() {
    let limits = Timeouts {
        idle: Duration::from_secs(300),
        uplink_only: Duration::from_secs(20),
        downlink_only: Duration::from_secs(40),
    };
    let half = closed_after(limits, true).await;
    assert!((38..=42).contains(&half.as_secs()), "{half:?}");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_closed_in_time() {
    for protocol in [vless(vec![]), vmess()] {
        let server = Server::start(server_settings(protocol, ServerTransport::default()))
            .await
            .unwrap();
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&[0]).await.unwrap();
        tokio::task::yield_now().await;
        tokio::time::pause();
        let since = Instant::now();
        assert_eq!(
            stream.read(&mut [0]).await.unwrap_or(0),
            0,
            "nothing is said to a stranger"
        );
        let took = since.elapsed();
        assert!((57..=63).contains(&took.as_secs()), "{took:?}");
        tokio::time::resume();
    }
}

/// How many bytes a server takes from a stranger before it closes, written one by one behind `first`.
async fn taken_before_close(server: SocketAddr, first: &[u8]) -> usize {
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(first).await.unwrap();
    let mut sent = first.len();
    let mut answer = [0];
    loop {
        match tokio::time::timeout(Duration::from_millis(2), stream.read(&mut answer)).await {
            Ok(Ok(0) | Err(_)) => return sent,
            Ok(Ok(_)) => panic!("a stranger was answered"),
            Err(_) => {}
        }
        assert!(sent < 4096, "never closed");
        if stream.write_all(&[7; 16]).await.is_err() {
            return sent;
        }
        sent += 16;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_on_vmess_is_heard_out_before_the_door_closes() {
    let server = Server::start(server_settings(vmess(), ServerTransport::default()))
        .await
        .unwrap();
    for first in [vec![0; 16], pattern(5, 17), pattern(6, 54)] {
        let taken = within("drain", taken_before_close(at(&server, "in"), &first)).await;
        assert!(
            taken >= 16 + 38,
            "closed after {taken} bytes: the length of the first field shows"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_client_does_not_reach_this_machine() {
    let target = target().await;
    let mut settings = server_settings(vless(vec![]), ServerTransport::default());
    settings.outbounds[0].protocol = OutboundProtocol::Freedom(Freedom::default());
    let server = Server::start(settings).await.unwrap();
    let client = client(target, vless_out(at(&server, "in")), ClientTransport::default()).await;
    let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    let _ = stream.write_all(&[0; 16]).await;
    // The client is left waiting; had the target been reached, its digest would come.
    let said = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 1])).await;
    assert!(!matches!(said, Ok(Ok(1..))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_is_counted_also_when_the_kernel_moves_it() {
    let target = target().await;
    let mut settings = server_settings(vless(vec![]), ServerTransport::default());
    settings.counters = SystemCounters {
        inbound_uplink: true,
        inbound_downlink: true,
        outbound_uplink: true,
        outbound_downlink: true,
    };
    settings.levels = vec![(
        0,
        Level {
            count_uplink: true,
            count_downlink: true,
            ..Level::default()
        },
    )];
    let server = Server::start(settings).await.unwrap();
    let client = client(target, vless_out(at(&server, "in")), ClientTransport::default()).await;
    let (up, down) = (5 << 20, 7 << 20);
    let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    within("exchange", exchange(stream, up, down)).await;
    let (stats, up, down) = (server.stats().clone(), up as u64 + 16, down as u64 + 32);
    assert!(server.shutdown(Duration::from_secs(10)).await, "connections remained");
    let count = |name: &str| stats.get(name).unwrap().get();
    assert_eq!(count("user>>>user@example>>>traffic>>>uplink"), up);
    assert_eq!(count("user>>>user@example>>>traffic>>>downlink"), down);
    assert_eq!(count("outbound>>>direct>>>traffic>>>uplink"), up);
    assert_eq!(count("outbound>>>direct>>>traffic>>>downlink"), down);
    let header = 1 + 16 + 1 + 1 + 2 + 1 + 4;
    assert_eq!(count("inbound>>>in>>>traffic>>>uplink"), up + header);
    assert_eq!(count("inbound>>>in>>>traffic>>>downlink"), down + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_and_http_work_as_inbound_and_as_outbound() {
    let (target, udp_target) = (target().await, udp_target().await);
    let account = Account {
        user: "someone".into(),
        pass: "secret".into(),
    };
    let socks_in = InboundProtocol::Socks(Socks {
        accounts: vec![account.clone()],
        udp: true,
        ..Socks::default()
    });
    let http_in = InboundProtocol::Http(HttpProxy {
        accounts: vec![account.clone()],
        ..HttpProxy::default()
    });
    for (name, protocol) in [("socks", socks_in), ("http", http_in)] {
        let server = Server::start(server_settings(protocol, ServerTransport::default()))
            .await
            .unwrap();
        let proxy = |account| ProxyOut {
            server: (loopback(), at(&server, "in").port()),
            account,
            headers: Vec::new(),
        };
        let far = |account| match name {
            "socks" => OutboundProtocol::Socks(proxy(account)),
            _ => OutboundProtocol::Http(proxy(account)),
        };
        let right = client(target, far(Some(account.clone())), ClientTransport::default()).await;
        exchange_all(name, at(&right, "door")).await;
        let wrong = Account {
            user: "someone".into(),
            pass: "secreT".into(),
        };
        for refused in [None, Some(wrong)] {
            let client = client(target, far(refused), ClientTransport::default()).await;
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            assert_eq!(within(name, stream.read(&mut [0])).await.unwrap_or(0), 0);
        }
    }
    socks_udp(udp_target).await;
}

/// UDP ASSOCIATE: datagrams of the owner pass, those of anyone else do not.
async fn socks_udp(udp_target: SocketAddr) {
    let socks = InboundProtocol::Socks(Socks {
        udp: true,
        ..Socks::default()
    });
    let server = Server::start(server_settings(socks, ServerTransport::default()))
        .await
        .unwrap();
    let mut control = TcpStream::connect(at(&server, "in")).await.unwrap();
    control
        .write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut answer = [0; 12];
    control.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..6], [5, 0, 5, 0, 0, 1]);
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    let relay = SocketAddr::from(([127, 0, 0, 1], port));
    let head = |port: u16| [&[0, 0, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat();
    let own = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut got = [0; 100];
    own.send_to(&[head(udp_target.port()), b"abc".to_vec()].concat(), relay)
        .await
        .unwrap();
    let len = within("socks datagram", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], [head(udp_target.port()), b"cba".to_vec()].concat());
    // Another socket of the same host is not the owner; its datagram must not come back to it, nor to the owner.
    let other = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other
        .send_to(&[head(udp_target.port()), b"evil".to_vec()].concat(), relay)
        .await
        .unwrap();
    own.send_to(&[head(udp_target.port()), b"next".to_vec()].concat(), relay)
        .await
        .unwrap();
    let len = within("socks datagram", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], [head(udp_target.port()), b"txen".to_vec()].concat());
    assert!(other.try_recv(&mut got).is_err());
    drop(control);
    let gone = async {
        loop {
            // With the connection gone the port is closed, which the system says.
            if own.send_to(b"x", relay).await.is_err()
                || own
                    .try_recv(&mut got)
                    .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused)
            {
                return;
            }
            if tokio::net::UdpSocket::bind(relay).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("end of the association", gone).await;
}
