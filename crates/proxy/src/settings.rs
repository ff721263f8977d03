//! What a server is to do, as plain values. Everything that can be wrong about text has been found before.

mod inbound;
mod outbound;
mod packed;
mod service;
mod transport;
mod users;

use std::path::PathBuf;
use std::time::Duration;

pub use crate::log::Rotation;
pub use sealway_v2ray::config::{
    AccessFormat, Account, Attributes, Balancer, BalancerKind, BurstObservatory, ClientReality, Cost, CostMatch, Dns,
    DnsAction, DnsAddress, DnsIps, DnsRule, DnsServer, DnsTransport, DomainMatch, FakePool, FallbackDial,
    FallbackTarget, Fragment, Front, HostAnswer, IpMatch, LeastLoad, Limits, LogTarget, MaskAddress, Metrics, Noise,
    NoisePacket, NoiseTo, NonIpQuery, Observatory, Override, Packets, Pem, ProbeMethod, ProbeUrl, ProcessMatch,
    Processes, Protocols, QueryStrategy, RoutingStrategy, Secret, SendThrough, ServerReality, Systems, ThrottledAfter,
    UnixName, UserMatch, UserMatches, VmessSecurity,
};

pub use sealway_v2ray::xhttp::settings::Span;

pub use inbound::{
    Capture, Dokodemo, HttpProxy, Inbound, InboundProtocol, Listen, NewAccount, NewUser, ShadowsocksIn,
    ShadowsocksUser, ShadowsocksUsers, Sniffing, Socks, TrojanIn, TrojanUser, User, VlessIn, VlessUser, VmessIn,
};
pub use outbound::{
    DnsOut, FinalRule, Freedom, MuxDatagrams, MuxOut, MuxPort443, Outbound, OutboundProtocol, ProxyOut, ShadowsocksOut,
    TrojanOut, Vision, VlessOut, VmessOut,
};
pub use packed::{Pack, Packed, Packer, Unpacker};
pub use service::Service;
pub use transport::{
    Certificate, CipherSuite, ClientTls, ClientTransport, Curve, DomainStrategy, Families, Grpc, Http, ServerTls,
    ServerTransport, SocketOptions, Through, Transparent, TransportKind, Upgrade, Versions, Xhttp, XhttpDownload,
};

/// A whole server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Where connections come in.
    pub inbounds: Vec<Inbound>,
    /// Where they go out. The first is the default.
    pub outbounds: Vec<Outbound>,
    /// Services of this program that rules may lead to besides outbounds.
    pub services: Vec<Service>,
    /// Rules, of which the first that fits decides.
    pub rules: Vec<Rule>,
    /// What rules may lead to besides outbounds.
    pub balancers: Vec<Balancer>,
    /// Measuring outbounds one after another, for balancers.
    pub observatory: Option<Observatory>,
    /// Measuring outbounds many times each, for balancers.
    pub burst: Option<BurstObservatory>,
    /// When rules by address look up names.
    pub domain_strategy: RoutingStrategy,
    /// Folders that geo files are looked for in, in this order. Empty: [`geo::folders`](crate::geo::folders).
    pub geo_folders: Vec<PathBuf>,
    /// Time limits and counters by user level; level 0 is used where a level is missing.
    pub levels: Vec<(u32, Level)>,
    /// Limits of users by e-mail, in any case, before those of their levels.
    pub limits: Vec<(String, Limits)>,
    /// Where what users have used is kept over restarts.
    pub store: Option<UsageStore>,
    /// Which counters of the whole are kept.
    pub counters: SystemCounters,
    /// Where accepted and refused connections are written; none by default.
    pub access_log: LogTarget,
    /// What lines of the access log look like.
    pub access_format: AccessFormat,
    /// When a file of the access log is begun anew, beside being told to. Never by default.
    pub access_rotation: Option<Rotation>,
    /// How much of addresses the access log shows; all by default.
    pub mask_address: MaskAddress,
    /// Name resolution.
    pub dns: Dns,
    /// Numbers for whoever watches; not counted by default.
    pub metrics: Option<Metrics>,
}

impl Settings {
    /// Every certificate, key and authority, to say where relative paths start.
    pub fn pem_sources(&mut self) -> impl Iterator<Item = &mut Pem> {
        pem_sources(self.inbounds.iter_mut(), self.outbounds.iter_mut())
    }
}

/// The parts of settings, each with its place in the configuration: all of them, or those that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Inbounds, with their places in the list.
    pub inbounds: Vec<(usize, Inbound)>,
    /// Outbounds, with their places in the list.
    pub outbounds: Vec<(usize, Outbound)>,
    /// Where accepted and refused connections are written.
    pub access_log: LogTarget,
}

impl From<&Settings> for Parts {
    fn from(settings: &Settings) -> Parts {
        Parts {
            inbounds: settings.inbounds.iter().cloned().enumerate().collect(),
            outbounds: settings.outbounds.iter().cloned().enumerate().collect(),
            access_log: settings.access_log.clone(),
        }
    }
}

impl Parts {
    /// As [`Settings::pem_sources`].
    pub fn pem_sources(&mut self) -> impl Iterator<Item = &mut Pem> {
        pem_sources(
            self.inbounds.iter_mut().map(|(_, one)| one),
            self.outbounds.iter_mut().map(|(_, one)| one),
        )
    }
}

fn pem_sources<'a>(
    inbounds: impl Iterator<Item = &'a mut Inbound>,
    outbounds: impl Iterator<Item = &'a mut Outbound>,
) -> impl Iterator<Item = &'a mut Pem> {
    let inbounds = inbounds.filter_map(|one| one.transport.tls.as_mut());
    let outbounds = outbounds.flat_map(|one| one.transport.tls_mut());
    inbounds
        .flat_map(ServerTls::pem_sources)
        .chain(outbounds.flat_map(ClientTls::pem_sources))
}

/// Where what users have used is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageStore {
    /// The file or the database.
    pub store: sealway_ledger::Store,
    /// The name of this node there.
    pub node: sealway_ledger::Node,
}

/// How long a connection may go on, each from the last byte that moved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timeouts {
    /// With both directions open. Default 300 s.
    pub idle: Duration,
    /// After the target has ended its direction. Default 1 s; 0 closes at once.
    pub uplink_only: Duration,
    /// After the client has ended its direction. Default 1 s; 0 closes at once.
    pub downlink_only: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            idle: Duration::from_secs(300),
            uplink_only: Duration::from_secs(1),
            downlink_only: Duration::from_secs(1),
        }
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
    /// List the addresses that they are connected from.
    pub count_online: bool,
    /// How much of the server one of them may take.
    pub limits: Limits,
}

impl Default for Level {
    fn default() -> Self {
        Level {
            handshake: Duration::from_secs(60),
            timeouts: Timeouts::default(),
            count_uplink: false,
            count_downlink: false,
            count_online: false,
            limits: Limits::default(),
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

/// A routing rule: all conditions that are not empty must fit; of each, one entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// Its name, or empty.
    pub name: String,
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
    /// Names of sniffed protocols.
    pub protocols: Protocols,
    /// Attributes of an HTTP request, all of which must fit.
    pub attributes: Attributes,
    /// Numbers in bytes 6 and 7 of the ids that clients of VLESS send, from and to.
    pub vless_routes: Vec<(u16, u16)>,
    /// Programs on this machine that connect.
    pub processes: Processes,
    /// Systems that the program may run on.
    pub systems: Systems,
    /// Tag of the outbound that it leads to. Empty: it leads to a balancer.
    pub outbound_tag: String,
    /// Tag of the balancer that it leads to.
    pub balancer_tag: String,
}
