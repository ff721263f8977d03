//! What lies between a protocol and the network: HTTP upgrades, TLS, sockets.

use std::path::PathBuf;
use std::time::Duration;

pub use sealway_v2ray::config::{CipherSuite, Curve};

use super::{ClientReality, Front, Pem, ServerReality};

/// How an inbound's protocol is carried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerTransport {
    /// Between the socket, or TLS, and the protocol.
    pub kind: TransportKind,
    /// TLS on the socket.
    pub tls: Option<ServerTls>,
    /// REALITY on the socket, in place of TLS.
    pub reality: Option<Box<ServerReality>>,
    /// The socket itself.
    pub socket: SocketOptions,
    /// Every connection begins with a PROXY protocol header.
    pub accept_proxy_protocol: bool,
}

/// How an outbound's protocol is carried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientTransport {
    /// Between the socket, or TLS, and the protocol.
    pub kind: TransportKind,
    /// TLS on the socket.
    pub tls: Option<ClientTls>,
    /// REALITY on the socket, in place of TLS.
    pub reality: Option<Box<ClientReality>>,
    /// The socket itself.
    pub socket: SocketOptions,
    /// Another outbound in place of a socket.
    pub through: Option<Through>,
}

/// Another outbound that an outbound dials through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Through {
    /// Its tag.
    pub outbound: String,
    /// Names are resolved here, and not at the other end.
    pub resolves: bool,
}

/// What lies between the socket, or TLS on it, and the protocol.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TransportKind {
    /// Nothing.
    #[default]
    Raw,
    /// Nothing, behind a made-up HTTP request and response.
    RawHttp(Front),
    /// gRPC: streams of HTTP/2.
    Grpc(Grpc),
    /// HTTP/2 as V2Ray has it: a request for each stream.
    Http(Http),
    /// WebSocket.
    WebSocket(Upgrade),
    /// HTTP upgrade to a plain stream.
    HttpUpgrade(Upgrade),
    /// XHTTP.
    Xhttp(Box<Xhttp>),
}

/// Settings of XHTTP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Xhttp {
    /// What both ends agree on.
    pub http: sealway_v2ray::xhttp::Settings,
    /// A client speaks HTTP/2. A server speaks what it is asked in.
    pub http2: bool,
    /// If one of these headers is present, the first address in `X-Forwarded-For` is the client's.
    pub trusted_forwarded_for: Vec<String>,
    /// Where a client asks for what comes down, if not where it sends what goes up.
    pub download: Option<XhttpDownload>,
}

/// Where a client of XHTTP asks for what comes down.
#[derive(Clone, Debug, PartialEq)]
pub struct XhttpDownload {
    /// The server.
    pub server: (sealway_v2ray::Address, u16),
    /// What carries the requests. Its kind is XHTTP, too.
    pub transport: ClientTransport,
}

/// Settings that WebSocket and HTTPUpgrade share.
#[derive(Clone, Debug, PartialEq)]
pub struct Upgrade {
    /// Path; begins with `/`.
    pub path: String,
    /// Host header to require or send; if empty, any, and the name or address that was dialled.
    pub host: String,
    /// More headers to send.
    pub headers: Vec<(String, String)>,
    /// Most bytes of the first payload that go into the request. 0: none do.
    pub early_data: usize,
    /// Header that carries them; empty for the path.
    pub early_data_header: String,
    /// If one of these headers is present, the first address in `X-Forwarded-For` is the client's.
    pub trusted_forwarded_for: Vec<String>,
}

impl Default for Upgrade {
    fn default() -> Self {
        Upgrade {
            path: "/".into(),
            host: String::new(),
            headers: Vec::new(),
            early_data: 0,
            early_data_header: "Sec-WebSocket-Protocol".into(),
            trusted_forwarded_for: Vec::new(),
        }
    }
}

/// Settings of gRPC.
#[derive(Clone, Debug, PartialEq)]
pub struct Grpc {
    /// The name of the service, or the path of its methods: see [`sealway_v2ray::gun::Names`].
    pub service_name: String,
    /// What requests name as the server; if empty, the TLS server name, else what was dialled.
    pub authority: String,
    /// Clients call the second method.
    pub multi_mode: bool,
    /// Ping after this much silence. `None`: never.
    pub idle: Option<Duration>,
    /// Time for the answer to a ping.
    pub answer: Duration,
    /// Ping also while there are no streams.
    pub without_streams: bool,
    /// Bytes of a stream that may be on their way to us, from 65,535 to 2^31 - 1. `None`: 1 MiB.
    pub window: Option<u32>,
    /// What clients say they are.
    pub user_agent: String,
    /// If one of these headers is present, the first address in `X-Forwarded-For` is the client's.
    pub trusted_forwarded_for: Vec<String>,
}

impl Default for Grpc {
    fn default() -> Self {
        Grpc {
            service_name: String::new(),
            authority: String::new(),
            multi_mode: false,
            idle: None,
            answer: Duration::from_secs(20),
            without_streams: false,
            window: None,
            user_agent: String::new(),
            trusted_forwarded_for: Vec::new(),
        }
    }
}

/// Settings of V2Ray's HTTP/2.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Http {
    /// What the configuration says of it.
    pub http: sealway_v2ray::config::Http,
    /// If one of these headers is present, the first address in `X-Forwarded-For` is the client's.
    pub trusted_forwarded_for: Vec<String>,
}

/// A server certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The chain, the server's own first.
    pub certificate: Pem,
    /// Its private key.
    pub key: Pem,
    /// Never look at the files again.
    pub once: bool,
}

/// Lowest and highest TLS version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Versions {
    /// Accept TLS 1.2.
    pub tls12: bool,
    /// Accept TLS 1.3.
    pub tls13: bool,
}

impl Default for Versions {
    fn default() -> Self {
        Versions {
            tls12: true,
            tls13: true,
        }
    }
}

/// TLS of an inbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerTls {
    /// Certificates, the first for clients that name no server.
    pub certificates: Vec<Certificate>,
    /// Their places in the list of the configuration, for messages. Empty: as they stand here.
    pub entries: Vec<usize>,
    /// ALPN protocols in our order of preference. Empty: none is agreed on.
    pub alpn: Vec<String>,
    /// Versions.
    pub versions: Versions,
    /// Cipher suites, best first. A version of which none is named keeps all of its own.
    pub cipher_suites: Vec<CipherSuite>,
    /// Groups for the key exchange, best first. Empty: all.
    pub groups: Vec<Curve>,
    /// File that session secrets are added to, in the format of NSS. Whoever has it can read the captured connections.
    pub key_log: Option<PathBuf>,
    /// Refuse server names that no certificate is for.
    pub reject_unknown_sni: bool,
    /// Let clients resume sessions.
    pub resumption: bool,
    /// Files are loaded again after this time.
    pub reload: Option<Duration>,
    /// If there are any, each client must show a certificate from one of these authorities.
    pub client_authorities: Vec<Pem>,
}

/// TLS of an outbound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientTls {
    /// Name to ask for and check; the address dialled if empty.
    pub server_name: String,
    /// ALPN protocols to offer.
    pub alpn: Vec<String>,
    /// Versions.
    pub versions: Versions,
    /// Cipher suites, best first. A version of which none is named keeps all of its own.
    pub cipher_suites: Vec<CipherSuite>,
    /// Groups for the key exchange, best first. Empty: all.
    pub groups: Vec<Curve>,
    /// File that session secrets are added to, in the format of NSS. Whoever has it can read the captured connections.
    pub key_log: Option<PathBuf>,
    /// Believe any certificate. The connection is then encrypted to whoever answers.
    pub allow_insecure: bool,
    /// SHA-256 digests of the certificates to believe: the server's own, whatever its name and authority, or that of an
    /// authority it shows, in place of all others. This is checked even if any certificate is believed.
    pub pinned: Vec<[u8; 32]>,
    /// Digests of whole chains: SHA-256 of the first certificate, then for each further one SHA-256 of the digest so far
    /// and that certificate's. If there are any, the server's chain must be one of them, besides all else.
    pub pinned_chains: Vec<[u8; 32]>,
    /// SHA-256 digests of public keys. If there are any, the server's chain must have one of them, besides all else.
    pub pinned_keys: Vec<[u8; 32]>,
    /// Names of which the certificate must have one, in place of the server name.
    pub verify_names: Vec<String>,
    /// Authorities to believe besides, or in place of, those of the system.
    pub authorities: Vec<Pem>,
    /// Do not believe the system's authorities.
    pub no_system_roots: bool,
    /// Certificates to show to servers that ask for one.
    pub certificates: Vec<Certificate>,
    /// Their places in the list of the configuration, for messages. Empty: as they stand here.
    pub entries: Vec<usize>,
    /// Resume sessions.
    pub resumption: bool,
}

impl ServerTransport {
    /// Whether clients are judged by files, which may have changed while these settings have not.
    pub(crate) fn has_client_files(&self) -> bool {
        let is_file = |source: &Pem| matches!(source, Pem::File(_));
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.client_authorities.iter().any(is_file))
    }
}

impl ClientTransport {
    /// Whether any of it is in files, which may have changed while these settings have not.
    pub(crate) fn has_files(&self) -> bool {
        let mut all = self.clone();
        all.tls_mut()
            .flat_map(ClientTls::pem_sources)
            .any(|source| matches!(source, Pem::File(_)))
    }

    /// The other outbounds that it goes through.
    pub(crate) fn throughs(&self) -> impl Iterator<Item = &Through> {
        let below = match &self.kind {
            TransportKind::Xhttp(xhttp) => xhttp.download.as_ref(),
            _ => None,
        };
        let below = below.and_then(|download| download.transport.through.as_ref());
        self.through.iter().chain(below)
    }
}

fn of_certificates(own: &mut [Certificate]) -> impl Iterator<Item = &mut Pem> {
    own.iter_mut().flat_map(|one| [&mut one.certificate, &mut one.key])
}

impl ClientTransport {
    /// The TLS of it, and that of where XHTTP asks for what comes down.
    pub fn tls_mut(&mut self) -> impl Iterator<Item = &mut ClientTls> {
        let below = match &mut self.kind {
            TransportKind::Xhttp(xhttp) => xhttp.download.as_mut(),
            _ => None,
        };
        let below = below.and_then(|download| download.transport.tls.as_mut());
        self.tls.iter_mut().chain(below)
    }

    /// Where secrets of sessions are written to, those of where XHTTP asks for what comes down included.
    pub fn key_logs(&mut self) -> impl Iterator<Item = &mut Option<PathBuf>> {
        fn own<'a>(
            tls: &'a mut Option<ClientTls>,
            reality: &'a mut Option<Box<ClientReality>>,
        ) -> [Option<&'a mut Option<PathBuf>>; 2] {
            [
                tls.as_mut().map(|tls| &mut tls.key_log),
                reality.as_mut().map(|reality| &mut reality.key_log),
            ]
        }
        let below = match &mut self.kind {
            TransportKind::Xhttp(xhttp) => xhttp.download.as_mut(),
            _ => None,
        };
        let below = below.map(|download| own(&mut download.transport.tls, &mut download.transport.reality));
        own(&mut self.tls, &mut self.reality)
            .into_iter()
            .chain(below.into_iter().flatten())
            .flatten()
    }
}

impl ServerTransport {
    /// Where secrets of sessions are written to.
    pub fn key_logs(&mut self) -> impl Iterator<Item = &mut Option<PathBuf>> {
        let tls = self.tls.iter_mut().map(|tls| &mut tls.key_log);
        tls.chain(self.reality.iter_mut().map(|reality| &mut reality.key_log))
    }
}

impl ServerTls {
    /// Every certificate, key and authority.
    pub fn pem_sources(&mut self) -> impl Iterator<Item = &mut Pem> {
        of_certificates(&mut self.certificates).chain(&mut self.client_authorities)
    }
}

impl ClientTls {
    /// Every certificate, key and authority.
    pub fn pem_sources(&mut self) -> impl Iterator<Item = &mut Pem> {
        of_certificates(&mut self.certificates).chain(&mut self.authorities)
    }
}

/// Options of a socket. All default to the system's, except keep-alive probes, which are on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SocketOptions {
    /// SO_MARK, for routing tables.
    pub mark: Option<u32>,
    /// Whether sockets may use addresses of others (IP_TRANSPARENT).
    pub transparent: Transparent,
    /// Sockets for datagrams that are listened on take those for others, and say for whom they were.
    pub takes_up_datagrams: bool,
    /// Device to bind to (SO_BINDTODEVICE).
    pub interface: Option<String>,
    /// Time before the first keep-alive probe. `None`: 45 s.
    pub keep_alive_idle: Option<Duration>,
    /// Time between keep-alive probes. `None`: 45 s.
    pub keep_alive_interval: Option<Duration>,
    /// No keep-alive probes.
    pub no_keep_alive: bool,
    /// TCP_USER_TIMEOUT.
    pub user_timeout: Option<Duration>,
    /// Congestion control by name.
    pub congestion: Option<String>,
    /// TCP_MAXSEG, bytes.
    pub max_segment: Option<u32>,
    /// Receive buffer, bytes (SO_RCVBUF; the kernel doubles it and has a bound of its own).
    pub receive_buffer: Option<u32>,
    /// Send buffer, bytes (SO_SNDBUF).
    pub send_buffer: Option<u32>,
    /// Multipath TCP, where the kernel has it.
    pub multipath: bool,
    /// An IPv6 listener takes IPv6 only.
    pub v6_only: bool,
    /// How names are dialled.
    pub domain_strategy: DomainStrategy,
}

/// Whether a socket may use addresses that this machine does not have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Transparent {
    /// It may not.
    #[default]
    No,
    /// It may if this process has the right to. Nothing is wrong if it has not.
    IfAllowed,
    /// It may, and it is an error if this process has no right to.
    Yes,
}

/// Which addresses of a name are used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DomainStrategy {
    /// Families, in order of preference.
    pub families: Families,
    /// A name without such an address is an error; otherwise the system's choice is used then.
    pub force: bool,
    /// The object `dns` is asked; otherwise, but for its fixed answers, the system's resolver is.
    pub ask: bool,
}

/// Address families in order of preference.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Families {
    /// As the system orders them.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
    /// IPv4, then IPv6.
    V4V6,
    /// IPv6, then IPv4.
    V6V4,
}
