//! Two engines, a target that checks what it gets, and settings to put between them.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

mod protocols;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sealway_proxy::settings::*;
use sealway_proxy::{Server, Timeouts};
use sealway_v2ray::config::{File, Options, load};
use sealway_v2ray::{Address, UserId};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

pub use protocols::*;

pub const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";

pub fn id() -> UserId {
    UserId::parse(ID).unwrap()
}

/// A VLESS request for a TCP connection to an IPv4 address, as bytes.
pub fn vless_request(target: SocketAddr) -> Vec<u8> {
    let IpAddr::V4(ip) = target.ip() else {
        panic!("an IPv4 address");
    };
    vless_header(&[&[1][..], &ip.octets()].concat(), target.port())
}

/// The same to an address as it stands on the wire.
pub fn vless_header(address: &[u8], port: u16) -> Vec<u8> {
    [&[0][..], &id().as_bytes()[..], &[0, 1], &port.to_be_bytes(), address].concat()
}

pub fn loopback() -> Address {
    Address::from(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

pub fn any_port() -> Vec<Listen> {
    vec![Listen::Port("127.0.0.1:0".parse().unwrap())]
}

/// A certificate for `names`, as PEM: certificate, key.
pub fn certificate(names: &[&str]) -> (String, String) {
    let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

pub fn server_tls(names: &[&str]) -> (ServerTls, String) {
    let (certificate, key) = certificate(names);
    let tls = ServerTls {
        certificates: vec![Certificate {
            certificate: Pem::Inline(certificate.clone()),
            key: Pem::Inline(key),
            once: true,
        }],
        alpn: vec!["h2".into(), "http/1.1".into()],
        ..ServerTls::default()
    };
    (tls, certificate)
}

/// Trusts exactly the server's own certificate.
pub fn client_tls(certificate: &str) -> ClientTls {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    ClientTls {
        server_name: "server.example".into(),
        pinned: vec![Sha256::digest(&der).into()],
        ..ClientTls::default()
    }
}

/// What carries an inbound's protocol.
pub fn server_over(kind: TransportKind, tls: Option<ServerTls>) -> ServerTransport {
    ServerTransport {
        kind,
        tls,
        ..ServerTransport::default()
    }
}

/// What carries an outbound's protocol, in TLS to a server with this certificate if there is one.
pub fn client_over(kind: TransportKind, certificate: Option<&str>) -> ClientTransport {
    ClientTransport {
        kind,
        tls: certificate.map(client_tls),
        ..ClientTransport::default()
    }
}

/// Asks a SOCKS inbound for an association: the connection that it lasts with, and where its datagrams go.
pub async fn associate(socks: SocketAddr) -> (TcpStream, SocketAddr) {
    let mut control = TcpStream::connect(socks).await.unwrap();
    let request = [5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
    control.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    within("association", control.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer[..6], [5, 0, 5, 0, 0, 1]);
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    (control, SocketAddr::new(socks.ip(), port))
}

/// A datagram as SOCKS has it, to an IPv4 address or from one.
pub fn socks_packet(peer: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let IpAddr::V4(ip) = peer.ip() else {
        panic!("an IPv4 address");
    };
    [&[0, 0, 0, 1][..], &ip.octets(), &peer.port().to_be_bytes(), payload].concat()
}

/// A socket whose datagrams go to this address.
pub async fn udp_to(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(to).await.unwrap();
    socket
}

/// TLS to a server that has this certificate, by rustls and with nothing in it yet.
pub async fn tls_to(
    server: SocketAddr,
    certificate: &str,
    name: &str,
    alpn: &[&str],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> tokio_rustls::client::TlsStream<TcpStream> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|alpn| alpn.as_bytes().to_vec()).collect();
    let tcp = TcpStream::connect(server).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let name = name.to_owned().try_into().unwrap();
    connector.connect(name, tcp).await.unwrap()
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// Ports that were free a moment ago, each another one.
pub fn free_ports<const N: usize>() -> [u16; N] {
    sealway_net::ports::free().unwrap()
}

/// Everything the other end says, and whether it then ends (`true`) or resets the connection.
pub async fn to_the_end(stream: &mut TcpStream) -> (Vec<u8>, bool) {
    let mut said = Vec::new();
    let ended = within("end", stream.read_to_end(&mut said)).await;
    (said, ended.is_ok())
}

pub fn server_settings(protocol: InboundProtocol, transport: ServerTransport) -> Settings {
    Settings {
        inbounds: vec![inbound("in", protocol, transport)],
        outbounds: vec![freedom()],
        ..Settings::default()
    }
}

/// The level of everybody.
pub fn everybody(level: Level) -> Vec<(u32, Level)> {
    vec![(0, level)]
}

/// The same, with no more time than this for a handshake.
pub fn handshake_within(handshake: Duration) -> Vec<(u32, Level)> {
    everybody(Level {
        handshake,
        ..Level::default()
    })
}

/// The same, with these timeouts.
pub fn with_timeouts(timeouts: Timeouts) -> Vec<(u32, Level)> {
    everybody(Level {
        timeouts,
        ..Level::default()
    })
}

/// The same, which counts their bytes.
pub fn counting() -> Vec<(u32, Level)> {
    let level = Level {
        count_uplink: true,
        count_downlink: true,
        ..Level::default()
    };
    everybody(level)
}

/// A server of VLESS that counts everything.
pub fn counting_settings() -> Settings {
    let mut settings = server_settings(vless(), ServerTransport::default());
    settings.counters = SystemCounters {
        inbound_uplink: true,
        inbound_downlink: true,
        outbound_uplink: true,
        outbound_downlink: true,
    };
    settings.levels = counting();
    settings
}

/// A door to `target` whose connections go out here.
pub fn door_settings(target: SocketAddr, outbound: Outbound) -> Settings {
    Settings {
        inbounds: vec![door(target)],
        outbounds: vec![outbound],
        ..Settings::default()
    }
}

/// The settings of a configuration that is right.
pub fn settings_of(text: impl ToString) -> Settings {
    let text = text.to_string();
    let file = File {
        name: "config.json",
        text: text.as_bytes(),
    };
    let loaded = load(&[file], &Options::default());
    let config = loaded.config.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.problems));
    Settings::from_config(&config).unwrap()
}

/// A server that runs.
pub async fn start(settings: Settings) -> Server {
    Server::start(settings).await.unwrap()
}

/// A server that speaks this at `in`, over nothing but TCP.
pub async fn serve(protocol: InboundProtocol) -> Server {
    start(server_settings(protocol, ServerTransport::default())).await
}

/// A door to `target` whose connections go out by this, over nothing but TCP.
pub async fn door_by(target: SocketAddr, protocol: OutboundProtocol) -> Server {
    start(door_settings(target, outbound(protocol, ClientTransport::default()))).await
}

/// A pattern that no misplaced block can imitate.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    // By a library that is optimised where this is not: there is much of it.
    let mut stream = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    stream.fill(&mut out);
    out
}

/// Reads two lengths, then takes `up` bytes while it sends `down`, then sends the digest of what it took.
pub async fn target() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    // A thousand may come before the first is accepted. Where more wait than fit, the system resets some of them.
    let listener = socket.listen(4096).unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((tcp, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.into_split();
                let (Ok(up), Ok(down)) = (read.read_u64().await, read.read_u64().await) else {
                    return;
                };
                let sending = async {
                    write.write_all(&pattern(7, down as usize)).await.unwrap();
                    write
                };
                let taking = async {
                    let mut hash = Sha256::new();
                    let mut left = up as usize;
                    let mut buffer = vec![0; 65536];
                    while left > 0 {
                        let most = left.min(buffer.len());
                        let got = read.read(&mut buffer[..most]).await.unwrap();
                        assert!(got > 0, "upload cut off with {left} bytes to come");
                        hash.update(&buffer[..got]);
                        left -= got;
                    }
                    hash.finalize()
                };
                let (mut write, digest) = tokio::join!(sending, taking);
                let _ = write.write_all(&digest).await;
            });
        }
    });
    address
}

/// Takes everything up to the end, then answers with how much it was.
pub async fn counting_target() -> SocketAddr {
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

/// Says back what it hears.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

/// The other side of [`target`], through whatever `stream` leads through.
pub async fn exchange<S: AsyncRead + AsyncWrite>(stream: S, up: usize, down: usize) {
    if let Err(wrong) = try_exchange(stream, &pattern(3, up), down).await {
        panic!("{wrong}");
    }
}

/// The same, saying what went wrong.
pub async fn try_exchange<S: AsyncRead + AsyncWrite>(stream: S, payload: &[u8], down: usize) -> Result<(), String> {
    try_exchange_slowly(stream, payload, down, Duration::ZERO).await
}

/// The same, with a pause between the lengths and the rest.
pub async fn try_exchange_slowly<S: AsyncRead + AsyncWrite>(
    stream: S,
    payload: &[u8],
    down: usize,
    pause: Duration,
) -> Result<(), String> {
    let (mut read, mut write) = tokio::io::split(stream);
    let sending = async {
        write.write_u64(payload.len() as u64).await?;
        write.write_u64(down as u64).await?;
        if !pause.is_zero() {
            write.flush().await?;
            tokio::time::sleep(pause).await;
        }
        write.write_all(payload).await?;
        write.flush().await?;
        Ok::<_, std::io::Error>(write)
    };
    let taking = async {
        let mut got = vec![0; down];
        let wrong = |error| format!("download cut off: {error}");
        read.read_exact(&mut got).await.map_err(wrong)?;
        if got != pattern(7, down) {
            return Err("download garbled".to_owned());
        }
        let mut digest = [0; 32];
        let wrong = |error| format!("no digest: {error}");
        read.read_exact(&mut digest).await.map_err(wrong)?;
        Ok(digest)
    };
    let (sent, digest) = tokio::join!(sending, taking);
    // Kept until here: its end would be the end of the connection.
    let _write = sent.map_err(|error| format!("upload cut off: {error}"))?;
    if digest? != <[u8; 32]>::from(Sha256::digest(payload)) {
        return Err("upload garbled".to_owned());
    }
    Ok(())
}

pub const SIZES: [(usize, usize); 4] = [(1, 1), (65536, 65536), (5 << 20, 3 << 20), (0, 9_000_000)];

pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(30), future).await {
        Ok(done) => done,
        Err(_) => panic!("{what}: no end after 30 s"),
    }
}

/// Every size through a door.
pub async fn exchange_all(what: &str, door: SocketAddr) {
    exchange_sizes(what, door, &SIZES).await;
}

/// These sizes through a door.
pub async fn exchange_sizes(what: &str, door: SocketAddr, sizes: &[(usize, usize)]) {
    for &(up, down) in sizes {
        let stream = TcpStream::connect(door).await.unwrap();
        within(&format!("{what}, {up} up, {down} down"), exchange(stream, up, down)).await;
    }
}

/// Answers every datagram with its bytes reversed.
pub async fn udp_target() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            buffer[..len].reverse();
            let _ = socket.send_to(&buffer[..len], from).await;
        }
    });
    address
}

/// Datagrams of several sizes through a door.
pub async fn udp_exchange(what: &str, door: SocketAddr) {
    udp_exchange_up_to(what, door, 65_507).await;
}

/// The same, as far as they fit.
pub async fn udp_exchange_up_to(what: &str, door: SocketAddr, longest: usize) {
    let socket = udp_to(door).await;
    let sizes = [1, 2, 1400, 8192, 9000, 60_000];
    for len in sizes.into_iter().filter(|len| *len <= longest) {
        udp_round(what, &socket, len).await;
    }
}

/// Sends a datagram and checks the answer of a target that reverses.
pub async fn udp_round(what: &str, socket: &UdpSocket, len: usize) {
    let sent = pattern(len as u64, len);
    socket.send(&sent).await.unwrap();
    let mut got = vec![0; 65536];
    let n = within(&format!("{what}, datagram of {len}"), socket.recv(&mut got))
        .await
        .unwrap();
    got.truncate(n);
    got.reverse();
    assert!(got == sent, "{what}: datagram of {len} garbled");
}

/// The address of a started server's inbound.
pub fn at(server: &Server, tag: &str) -> SocketAddr {
    *server.addresses(tag).first().expect("listens")
}

/// The address for datagrams of a started server's inbound.
pub fn udp_at(server: &Server, tag: &str) -> SocketAddr {
    *server.addresses(tag).last().expect("listens")
}

/// A server that waits ten minutes for everything, with little room for what it answers.
pub async fn patient_server(protocol: InboundProtocol, kind: TransportKind) -> Server {
    let transport = ServerTransport {
        kind,
        socket: SocketOptions {
            send_buffer: Some(4 << 10),
            ..SocketOptions::default()
        },
        ..ServerTransport::default()
    };
    let mut settings = server_settings(protocol, transport);
    let long = Duration::from_secs(600);
    let level = Level {
        handshake: long,
        timeouts: Timeouts {
            idle: long,
            uplink_only: long,
            downlink_only: long,
        },
        ..Level::default()
    };
    settings.levels = vec![(0, level)];
    start(settings).await
}
