//! XTLS Vision: who may use it, what is refused, ends of one direction, connections that are kept ready, and what a peer may do.

mod ready;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::mux;
use sealway_v2ray::vless::vision::{MAX_EMPTY, Seed};
use sealway_v2ray::vless::{Command, Flow, Request};
use sealway_v2ray::{Address, Destination};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::client::TlsStream;

use crate::common::*;
use crate::inner::Inner;

fn account() -> InboundProtocol {
    InboundProtocol::Vless(VlessIn {
        users: [VlessUser {
            user: user(),
            flow: Flow::Vision,
            seed: Seed::default(),
        }]
        .into_iter()
        .collect(),
        fallbacks: vec![],
    })
}

/// A server whose one account has the flow, and its certificate.
async fn serve(protocol: InboundProtocol) -> (Server, String) {
    let (tls, certificate) = server_tls(&["server.example"]);
    let transport = server_over(TransportKind::Raw, Some(tls));
    let server = start(server_settings(protocol, transport)).await;
    (server, certificate)
}

async fn client(to: SocketAddr, certificate: &str, target: SocketAddr, vision: Vision, mux: MuxOut) -> Server {
    let transport = client_over(TransportKind::Raw, Some(certificate));
    let mut outbound = outbound(vision_out(to, Some(vision)), transport);
    outbound.mux = mux;
    start(door_settings(target, outbound)).await
}

/// TLS of one version to a server, without anything in it yet.
async fn raw(
    to: SocketAddr,
    certificate: &str,
    version: &'static rustls::SupportedProtocolVersion,
) -> TlsStream<TcpStream> {
    tls_to(to, certificate, "server.example", &[], &[version]).await
}

fn request(flow: Flow, command: Command) -> Vec<u8> {
    let mut out = Vec::new();
    Request {
        id: id(),
        flow,
        command,
    }
    .encode(&mut out);
    out
}

fn tcp(to: SocketAddr) -> Command {
    Command::Connect(Destination::tcp(Address::from(to.ip()), to.port()))
}

fn block(first: bool, command: u8, content: &[u8], padding: usize) -> Vec<u8> {
    let mut block = if first { id().as_bytes().to_vec() } else { Vec::new() };
    block.push(command);
    block.extend_from_slice(&(content.len() as u16).to_be_bytes());
    block.extend_from_slice(&(padding as u16).to_be_bytes());
    block.extend_from_slice(content);
    block.resize(block.len() + padding, 0);
    block
}

/// What a server answers to these bytes, without the header of the response and the frame around the first block; until
/// nothing comes for a while, or to the end (`true`).
async fn answer(tls: &mut TlsStream<TcpStream>, words: &[u8]) -> (Vec<u8>, bool) {
    tls.write_all(words).await.unwrap();
    tls.flush().await.unwrap();
    let mut got = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        match timeout(Duration::from_secs(2), tls.read(&mut buffer)).await {
            Err(_) => return (got, false),
            Ok(Ok(0) | Err(_)) => return (got, true),
            Ok(Ok(n)) => got.extend_from_slice(&buffer[..n]),
        }
    }
}

/// The content of padded blocks behind the header of a response.
fn content(got: &[u8]) -> Vec<u8> {
    let Some(mut rest) = got.strip_prefix(&[0, 0]) else {
        return got.to_vec();
    };
    rest = rest.strip_prefix(&id().as_bytes()[..]).unwrap();
    let mut all = Vec::new();
    while let [command, a, b, c, d, more @ ..] = rest {
        let (len, padding) = (
            usize::from(u16::from_be_bytes([*a, *b])),
            usize::from(u16::from_be_bytes([*c, *d])),
        );
        all.extend_from_slice(&more[..len]);
        rest = &more[len + padding..];
        if *command != 0 {
            all.extend_from_slice(rest);
            break;
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_peers_send_in_blocks() {
    let echo = echo().await;
    let (server, certificate) = serve(account()).await;
    let header = request(Flow::Vision, tcp(echo));
    let other: Vec<u8> = id().as_bytes().iter().map(|byte| !byte).collect();
    let mut bad_command = block(true, 0, b"fine", 3);
    bad_command.extend(block(false, 3, b"no", 0));
    let mut wrong_id = other.clone();
    wrong_id.extend_from_slice(b"\0\0\x05\0\x03hello");
    let flood = |count: u32| {
        let mut flood = block(true, 0, b"before", 1);
        for _ in 0..count {
            flood.extend(block(false, 0, b"", 2));
        }
        flood.extend(block(false, 1, b"after", 0));
        flood
    };
    let mut after_end = block(true, 1, b"in a block", 9);
    after_end.extend(block(true, 0, b"no block", 4));
    // What it sends, what the target repeats of it, and whether the connection is then cut.
    let cases = [
        ("a block", block(true, 0, b"hello", 700), b"hello".to_vec(), false),
        ("unknown command", bad_command, b"fine".to_vec(), true),
        ("another id", wrong_id.clone(), wrong_id, false),
        ("empty blocks", flood(MAX_EMPTY), b"beforeafter".to_vec(), false),
        ("more empty blocks", flood(MAX_EMPTY + 1), b"before".to_vec(), true),
        (
            "a block behind the end",
            after_end.clone(),
            [&b"in a block"[..], &block(true, 0, b"no block", 4)].concat(),
            false,
        ),
        // Its padding never comes.
        (
            "a length beyond",
            block(true, 0, b"x", 65_535)[..5000].to_vec(),
            b"x".to_vec(),
            false,
        ),
    ];
    // All at once: what is not cut is listened to for seconds.
    let mut sent = JoinSet::new();
    for (what, words, repeated, cut) in cases {
        let (to, certificate) = (at(&server, "in"), certificate.clone());
        let words = [&header[..], &words].concat();
        sent.spawn(async move {
            let mut tls = raw(to, &certificate, &rustls::version::TLS13).await;
            let (got, ended) = answer(&mut tls, &words).await;
            (what, repeated, cut, got, ended)
        });
    }
    for (what, repeated, cut, got, ended) in sent.join_all().await {
        assert_eq!(ended, cut, "{what}");
        // What came together with something wrong need not go on.
        if !cut {
            assert_eq!(content(&got), repeated, "{what}");
        }
    }
    // A byte at a time.
    let mut tls = raw(at(&server, "in"), &certificate, &rustls::version::TLS13).await;
    for byte in [&header[..], &block(true, 0, b"slow", 5)].concat() {
        tls.write_all(&[byte]).await.unwrap();
        tls.flush().await.unwrap();
    }
    assert_eq!(content(&answer(&mut tls, &[]).await.0), b"slow");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_account_may_not_do() {
    let echo = echo().await;
    let (server, certificate) = serve(account()).await;
    let (plain, plain_certificate) = serve(vless()).await;
    let to = at(&server, "in");
    let udp = Command::Connect(Destination::udp(Address::from(echo.ip()), echo.port()));
    let tls13 = &rustls::version::TLS13;
    let tls12 = &rustls::version::TLS12;
    for (what, to, certificate, version, header) in [
        ("no flow", to, &certificate, tls13, request(Flow::None, tcp(echo))),
        (
            "datagrams by themselves",
            to,
            &certificate,
            tls13,
            request(Flow::Vision, udp),
        ),
        ("TLS 1.2", to, &certificate, tls12, request(Flow::Vision, tcp(echo))),
        (
            "an account without it",
            at(&plain, "in"),
            &plain_certificate,
            tls13,
            request(Flow::Vision, tcp(echo)),
        ),
    ] {
        let mut tls = raw(to, certificate, version).await;
        let words = [&header[..], &block(true, 0, b"hello", 9)].concat();
        assert_eq!(answer(&mut tls, &words).await, (vec![], true), "{what}");
    }
    // A mux is for datagrams: a stream in it is refused, whether the mux is padded or not, and however it is asked for.
    for (flow, command) in [
        (Flow::Vision, Command::Mux),
        (Flow::None, Command::Mux),
        (Flow::Vision, Command::Connect(mux::target().unwrap())),
    ] {
        let mut frame = Vec::new();
        let target = Destination::tcp(Address::from(echo.ip()), echo.port());
        mux::push_new(&mut frame, 1, &target, None, Some(b"hello")).unwrap();
        let words = match flow {
            Flow::Vision => block(true, 0, &frame, 9),
            Flow::None => frame,
        };
        let mut tls = raw(to, &certificate, tls13).await;
        let (got, _) = answer(&mut tls, &[&request(flow, command.clone())[..], &words].concat()).await;
        let got = match flow {
            Flow::Vision => content(&got),
            Flow::None => got[2..].to_vec(),
        };
        // Session 1 ends with an error.
        assert_eq!(got, [0, 4, 0, 1, 3, 2], "{flow:?}, {command:?}");
    }
}

/// TLS of one version for a server that is none of ours, and its certificate.
fn of_one_version(version: &'static rustls::SupportedProtocolVersion) -> (String, Arc<rustls::ServerConfig>) {
    let (certificate, key) = certificate(&["server.example"]);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    (certificate, Arc::new(config))
}

/// Where TLS is older, the server is told nothing, not even the id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_wants_tls_13_around_it() {
    for (version, says) in [(&rustls::version::TLS12, false), (&rustls::version::TLS13, true)] {
        let (certificate, config) = of_one_version(version);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let near = client(server, &certificate, echo().await, Vision::default(), MuxOut::default()).await;
        let mut program = TcpStream::connect(at(&near, "door")).await.unwrap();
        program.write_all(b"hello").await.unwrap();
        let (tcp, _) = within("connection", listener.accept()).await.unwrap();
        let mut tls = TlsAcceptor::from(config).accept(tcp).await.unwrap();
        let mut heard = [0; 64];
        let got = within("words", tls.read(&mut heard)).await.unwrap_or(0);
        assert_eq!(got > 0, says, "{version:?}: {:?}", &heard[..got]);
        if !says {
            assert_eq!(to_the_end(&mut program).await.0, b"");
        }
    }
}

/// A block says how long it is: a connection that ends within one was cut, and does not look whole to the target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_within_a_block_is_no_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (server, certificate) = serve(account()).await;
    let header = request(Flow::Vision, tcp(listener.local_addr().unwrap()));
    let whole = block(true, 0, b"hello", 30);
    for (left, is_said, ends) in [
        (0, false, true),
        (0, true, true),
        (7, false, false),
        (7, true, false),
        (32, false, false),
        (32, true, false),
    ] {
        let mut tls = raw(at(&server, "in"), &certificate, &rustls::version::TLS13).await;
        let words = [&header[..], &whole[..whole.len() - left]].concat();
        tls.write_all(&words).await.unwrap();
        tls.flush().await.unwrap();
        let (mut target, _) = within("connection", listener.accept()).await.unwrap();
        let mut heard = [0; 3];
        within("words", target.read_exact(&mut heard)).await.unwrap();
        match is_said {
            true => tls.shutdown().await.unwrap(),
            false => tls.get_mut().0.shutdown().await.unwrap(),
        }
        let (_, ended) = to_the_end(&mut target).await;
        assert_eq!(ended, ends, "{left} bytes are missing, said: {is_said}");
    }
}

/// One direction ends, the other goes on: within the outer TLS, and without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_of_one_direction_is_passed_on() {
    let (server, certificate) = serve(account()).await;
    let near = client(
        at(&server, "in"),
        &certificate,
        counting_target().await,
        Vision::default(),
        MuxOut::default(),
    )
    .await;
    // Lines, then what a program sends whose TLS has left the outer one, as far as a proxy can tell.
    let hello = [&[22, 3, 1, 0, 100, 1][..], &[0; 99]].concat();
    let sealed = [&[23, 3, 3, 0, 200][..], &[7; 200]].concat();
    for words in [
        vec![b'x'; 10],
        vec![b'x'; 300_000],
        [hello, sealed.repeat(2000)].concat(),
    ] {
        let mut tcp = TcpStream::connect(at(&near, "door")).await.unwrap();
        tcp.write_all(&words).await.unwrap();
        tcp.shutdown().await.unwrap();
        let (said, ended) = to_the_end(&mut tcp).await;
        assert_eq!(String::from_utf8_lossy(&said), format!("{} bytes", words.len()));
        assert!(ended);
    }
    // The same where both have left it, after a real handshake.
    let inner = Inner::new(TLS13_AES_128_GCM_SHA256);
    let behind = inner.in_front_of(counting_target().await).await;
    let near = client(
        at(&server, "in"),
        &certificate,
        behind,
        Vision::default(),
        MuxOut::default(),
    )
    .await;
    let mut tls = inner.connect(at(&near, "door")).await.unwrap();
    tls.write_all(&vec![1; 5_000_000]).await.unwrap();
    tls.shutdown().await.unwrap();
    let mut said = String::new();
    within("end", tls.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "5000000 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_share_carriers_and_quic_is_refused_unless_asked_for() {
    let (server, certificate) = serve(account()).await;
    let target = udp_target().await;
    for mux in [
        MuxOut::default(),
        MuxOut {
            datagrams: MuxDatagrams::Own(8),
            ..MuxOut::default()
        },
    ] {
        let near = client(at(&server, "in"), &certificate, target, Vision::default(), mux).await;
        udp_exchange_up_to("datagrams", udp_at(&near, "door"), 8192).await;
    }
    let Ok(quic) = UdpSocket::bind("127.43.0.9:443").await else {
        eprintln!("SKIPPED: port 443 is for root");
        return;
    };
    let at_443 = quic.local_addr().unwrap();
    for udp_443 in [false, true] {
        let vision = Vision {
            udp_443,
            ..Vision::default()
        };
        let near = client(at(&server, "in"), &certificate, at_443, vision, MuxOut::default()).await;
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let door = udp_at(&near, "door");
        socket.send_to(b"hello", door).await.unwrap();
        let came = timeout(
            Duration::from_secs(if udp_443 { 20 } else { 2 }),
            quic.recv(&mut [0; 9]),
        )
        .await;
        assert_eq!(came.is_ok(), udp_443);
    }
}

/// An association that reaches every target reaches none that is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quic_is_refused_whatever_went_before() {
    let (server, certificate) = serve(account()).await;
    let target = udp_target().await;
    let Ok(quic) = UdpSocket::bind("127.43.0.10:443").await else {
        eprintln!("SKIPPED: port 443 is for root");
        return;
    };
    let vless = vision_out(at(&server, "in"), Some(Vision::default()));
    let transport = client_over(TransportKind::Raw, Some(&certificate));
    let mut outbound = outbound(vless, transport);
    outbound.mux.full_cone = true;
    let mut settings = server_settings(socks(), ServerTransport::default());
    settings.outbounds = vec![outbound];
    let near = start(settings).await;
    let (_control, relay) = associate(at(&near, "in")).await;
    let own = udp_to(relay).await;
    let say = async |to: SocketAddr| own.send(&socks_packet(to, b"hello")).await.unwrap();
    for _ in 0..2 {
        say(target).await;
        within("answer", own.recv(&mut [0; 64])).await.unwrap();
        say(quic.local_addr().unwrap()).await;
    }
    assert!(quic.try_recv(&mut [0; 9]).is_err());
    let came = timeout(Duration::from_millis(300), quic.recv(&mut [0; 9])).await;
    assert!(came.is_err(), "QUIC went through");
}
