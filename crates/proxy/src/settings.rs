//! What a server is to do, as valid values. Everything that can be wrong about text has been found before.

mod transport;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use sealway_v2ray::config::{DomainMatch, Hosts, IpMatch, MaskAddress, QueryStrategy, UserMatch, UserMatches};
use sealway_v2ray::vless::fallback::Fallback;
use sealway_v2ray::{Address, UserId};

use crate::Timeouts;

pub use transport::{
    Certificate, CipherSuite, ClientTls, ClientTransport, Curve, DomainStrategy, Families, HttpNetwork, Network,
    PemSource, ServerTls, ServerTransport, SocketOptions, Versions,
};

/// A whole server.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Where connections come in.
    pub inbounds: Vec<Inbound>,
    /// Where they go out. The first is the default.
    pub outbounds: Vec<Outbound>,
    /// Rules, of which the first that fits decides.
    pub rules: Vec<Rule>,
    /// When rules by address look up names.
    pub domain_strategy: RouteByName,
    /// Time limits and counters by user level; level 0 is used where a level is missing.
    pub levels: Vec<(u32, Level)>,
    /// Which counters of the whole are kept.
    pub counters: SystemCounters,
    /// Where accepted and refused connections are written; none by default.
    pub access_log: AccessLog,
    /// How much of addresses the access log shows; all by default.
    pub mask_address: MaskAddress,
    /// Fixed answers for names. The system's resolver is asked for others.
    pub hosts: Hosts,
    /// The families of addresses that names are resolved to.
    pub query_strategy: QueryStrategy,
}

impl Settings {
    /// Every certificate, key and authority, to say where relative paths start.
    pub fn pem_sources(&mut self) -> impl Iterator<Item = &mut PemSource> {
        let inbounds = self.inbounds.iter_mut().filter_map(|one| one.transport.tls.as_mut());
        let outbounds = self.outbounds.iter_mut().filter_map(|one| one.transport.tls.as_mut());
        inbounds
            .flat_map(ServerTls::pem_sources)
            .chain(outbounds.flat_map(ClientTls::pem_sources))
    }
}

/// Time limits and counters of a user level.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Level {
    /// From accepting to the end of the protocol header. Default 60 s.
    pub handshake: Duration,
    /// Afterwards.
    pub timeouts: Timeouts,
    /// Count what users of this level send.
    pub count_uplink: bool,
    /// Count what they receive.
    pub count_downlink: bool,
}

impl Default for Level {
    fn default() -> Self {
        Level {
            handshake: Duration::from_secs(60),
            timeouts: Timeouts::default(),
            count_uplink: false,
            count_downlink: false,
        }
    }
}

/// Counters by inbound and outbound tag. All off by default.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SystemCounters {
    /// `inbound>>>TAG>>>traffic>>>uplink`.
    pub inbound_uplink: bool,
    /// `inbound>>>TAG>>>traffic>>>downlink`.
    pub inbound_downlink: bool,
    /// `outbound>>>TAG>>>traffic>>>uplink`.
    pub outbound_uplink: bool,
    /// `outbound>>>TAG>>>traffic>>>downlink`.
    pub outbound_downlink: bool,
}

/// Where the access log goes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum AccessLog {
    /// Nowhere.
    #[default]
    Off,
    /// Standard output.
    Stdout,
    /// The end of this file.
    File(PathBuf),
}

/// When rules by address resolve a name.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RouteByName {
    /// Never: such rules fit addresses only.
    #[default]
    AsIs,
    /// When no rule fitted the name.
    IfNonMatch,
    /// As soon as a rule by address is looked at.
    OnDemand,
}

/// A unix socket's name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UnixName {
    /// A path, and the mode the socket file is given.
    Path(PathBuf, Option<u32>),
    /// An abstract name, without the leading zero byte.
    Abstract(Vec<u8>),
}

/// Where an inbound listens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Listen {
    /// A port on an address.
    Port(SocketAddr),
    /// A port on every address, IPv4 and IPv6.
    EveryAddress(u16),
    /// A unix socket.
    Unix(UnixName),
}

impl Listen {
    /// Whether only this machine reaches it.
    pub fn is_this_machine(&self) -> bool {
        match self {
            Listen::Port(address) => address.ip().to_canonical().is_loopback(),
            Listen::EveryAddress(_) => false,
            Listen::Unix(_) => true,
        }
    }
}

/// An inbound.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Its name, or empty.
    pub tag: String,
    /// Where it listens: one entry a port.
    pub listen: Vec<Listen>,
    /// What it speaks.
    pub protocol: InboundProtocol,
    /// What it speaks it over.
    pub transport: ServerTransport,
}

impl Inbound {
    /// Whether others than this machine reach it: by what it speaks, which is for clients elsewhere, or by where it listens.
    /// They may not reach private networks unless a rule allows it.
    pub fn is_remote(&self) -> bool {
        matches!(self.protocol, InboundProtocol::Vless(_) | InboundProtocol::Vmess(_))
            || !self.listen.iter().all(Listen::is_this_machine)
    }
}

/// What an inbound speaks.
#[derive(Clone, Debug)]
pub enum InboundProtocol {
    /// Everything goes to one target.
    Dokodemo(Dokodemo),
    /// SOCKS 4, 4a and 5.
    Socks(Socks),
    /// HTTP proxy.
    Http(HttpProxy),
    /// VLESS.
    Vless(VlessIn),
    /// VMess.
    Vmess(VmessIn),
}

/// A fixed target.
#[derive(Clone, Debug)]
pub struct Dokodemo {
    /// The host; loopback of the listener's family if there is none.
    pub address: Option<Address>,
    /// The port; 0 means the listener's.
    pub port: u16,
    /// Accept streams.
    pub tcp: bool,
    /// Accept datagrams.
    pub udp: bool,
    /// User level.
    pub level: u32,
}

/// A name and a password.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Account {
    /// Name.
    pub user: String,
    /// Password.
    pub pass: String,
}

/// SOCKS inbound.
#[derive(Clone, Debug, Default)]
pub struct Socks {
    /// Who may use it. Empty: anyone.
    pub accounts: Vec<Account>,
    /// Allow UDP ASSOCIATE.
    pub udp: bool,
    /// Address told to clients for their datagrams; that of the TCP connection if there is none.
    pub udp_address: Option<IpAddr>,
    /// User level.
    pub level: u32,
}

/// HTTP proxy inbound.
#[derive(Clone, Debug, Default)]
pub struct HttpProxy {
    /// Who may use it. Empty: anyone.
    pub accounts: Vec<Account>,
    /// Accept requests without an absolute URI.
    pub allow_transparent: bool,
    /// User level.
    pub level: u32,
}

/// A user of VLESS or VMess.
#[derive(Clone, Debug)]
pub struct User {
    /// Secret id.
    pub id: UserId,
    /// Name in counters, rules and the access log, or empty.
    pub email: String,
    /// Level.
    pub level: u32,
}

/// VLESS inbound.
#[derive(Clone, Debug, Default)]
pub struct VlessIn {
    /// Who may use it.
    pub users: Vec<User>,
    /// Where everybody else is sent.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

/// Where strangers are sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FallbackTarget {
    /// The host and port, or unix socket.
    pub to: FallbackDial,
    /// PROXY protocol version to announce the client with; 0 for none.
    pub xver: u8,
}

/// Address of a fallback.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FallbackDial {
    /// TCP to a host.
    Tcp(Address, u16),
    /// TCP to a port of this machine: 127.0.0.1, then ::1.
    Local(u16),
    /// A unix socket.
    Unix(UnixName),
}

/// VMess inbound.
#[derive(Clone, Debug, Default)]
pub struct VmessIn {
    /// Who may use it.
    pub users: Vec<User>,
    /// Refuse the words `none` and `zero`.
    pub secure_only: bool,
}

/// An outbound.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// Its name, or empty.
    pub tag: String,
    /// What it speaks.
    pub protocol: OutboundProtocol,
    /// What it speaks it over.
    pub transport: ClientTransport,
    /// Source address of its connections.
    pub send_through: Option<IpAddr>,
}

/// What an outbound speaks.
#[derive(Clone, Debug)]
pub enum OutboundProtocol {
    /// Straight to the target.
    Freedom(Freedom),
    /// Nowhere; with an HTTP 403 answer if true.
    Blackhole {
        /// Answer with `HTTP/1.1 403 Forbidden`.
        http: bool,
    },
    /// VLESS.
    Vless(VlessOut),
    /// VMess.
    Vmess(VmessOut),
    /// SOCKS 5.
    Socks(ProxyOut),
    /// HTTP CONNECT.
    Http(ProxyOut),
}

/// Straight to the target.
#[derive(Clone, Debug, Default)]
pub struct Freedom {
    /// Host to go to instead, whatever the target.
    pub redirect_host: Option<Address>,
    /// Port to go to instead.
    pub redirect_port: Option<u16>,
    /// Which addresses of a name are used.
    pub domain_strategy: DomainStrategy,
    /// PROXY protocol version to announce the client with; 0 for none.
    pub proxy_protocol: u8,
    /// Rules on the address that is dialled; the first that fits decides.
    pub final_rules: Vec<FinalRule>,
}

/// A rule on the address that is dialled.
#[derive(Clone, Debug)]
pub struct FinalRule {
    /// Allow or block.
    pub allow: bool,
    /// Stream, datagram or, if `None`, both.
    pub network: Option<sealway_v2ray::Network>,
    /// Ports; empty for all.
    pub ports: Vec<(u16, u16)>,
    /// Addresses; empty for all.
    pub ips: Vec<IpMatch>,
}

/// VLESS outbound.
#[derive(Clone, Debug)]
pub struct VlessOut {
    /// Server.
    pub server: (Address, u16),
    /// Our id there.
    pub id: UserId,
}

/// VMess outbound.
#[derive(Clone, Debug)]
pub struct VmessOut {
    /// Server.
    pub server: (Address, u16),
    /// Our id there.
    pub id: UserId,
    /// Cipher word.
    pub security: VmessSecurity,
    /// Lengths are authenticated (`AuthenticatedLength`).
    pub authenticated_length: bool,
    /// No end chunk is sent (`NoTerminationSignal`).
    pub no_end: bool,
}

/// The word for VMess ciphers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum VmessSecurity {
    /// By this machine's hardware: AES-128-GCM or ChaCha20-Poly1305.
    #[default]
    Auto,
    /// AES-128-GCM.
    Aes128Gcm,
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// Chunks in the clear.
    None,
    /// No chunks at all for streams.
    Zero,
}

/// SOCKS or HTTP outbound.
#[derive(Clone, Debug)]
pub struct ProxyOut {
    /// Server.
    pub server: (Address, u16),
    /// Our account there.
    pub account: Option<Account>,
    /// More headers of the CONNECT request. HTTP only.
    pub headers: Vec<(String, String)>,
}

/// A routing rule: all conditions that are not empty must fit; of each, one entry.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// Names.
    pub domains: Vec<DomainMatch>,
    /// Target addresses.
    pub ips: Vec<IpMatch>,
    /// Target ports, from and to.
    pub ports: Vec<(u16, u16)>,
    /// Source addresses.
    pub sources: Vec<IpMatch>,
    /// Source ports.
    pub source_ports: Vec<(u16, u16)>,
    /// Stream or datagrams.
    pub networks: Vec<sealway_v2ray::Network>,
    /// Addresses the client came to.
    pub locals: Vec<IpMatch>,
    /// Ports the client came to.
    pub local_ports: Vec<(u16, u16)>,
    /// E-mails of users.
    pub users: UserMatches,
    /// Tags of inbounds.
    pub inbound_tags: Vec<String>,
    /// Tag of the outbound that it leads to.
    pub outbound_tag: String,
}
