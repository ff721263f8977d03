//! Where connections go out, and what they speak there.

use sealway_v2ray::config::IpMatch;
use sealway_v2ray::mux::BaseKey;
use sealway_v2ray::shadowsocks::KeyChain;
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vless::vision::Seed;
use sealway_v2ray::{Address, Network, UserId};

use super::{
    Account, ClientTransport, DnsRule, DomainStrategy, Fragment, Noise, NonIpQuery, SendThrough, VmessSecurity,
};

/// An outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct Outbound {
    /// Its name, or empty.
    pub tag: String,
    /// What it speaks.
    pub protocol: OutboundProtocol,
    /// What it speaks it over.
    pub transport: ClientTransport,
    /// Source address of its connections.
    pub send_through: Option<SendThrough>,
    /// Many connections in one.
    pub mux: MuxOut,
}

/// Many connections in one, as the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MuxOut {
    /// Streams in one carrier at once. `None`: each goes out on its own.
    pub streams: Option<u16>,
    /// What carries datagrams.
    pub datagrams: MuxDatagrams,
    /// What becomes of datagrams to port 443, which are QUIC.
    pub port_443: MuxPort443,
    /// One association of a VLESS outbound serves all targets of a client, by XUDP, but for ports 53 and 443.
    pub full_cone: bool,
    /// The key of the ids by which servers find associations again. `None`: one of this process.
    pub base_key: Option<BaseKey>,
}

/// What carries the datagrams of an outbound.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MuxDatagrams {
    /// What the protocol has for them.
    #[default]
    Native,
    /// The carriers of streams.
    Shared,
    /// Carriers of their own, with this many associations in one at once.
    Own(u16),
}

/// What becomes of datagrams to port 443.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MuxPort443 {
    /// They go out without the mux.
    #[default]
    Skip,
    /// They go through the mux like others.
    Allow,
    /// They are dropped, so that programs fall back to TCP.
    Reject,
}

/// What an outbound speaks.
#[derive(Clone, Debug, PartialEq)]
pub enum OutboundProtocol {
    /// Straight to the target.
    Freedom(Freedom),
    /// Nowhere; with an HTTP 403 answer if true.
    Blackhole {
        /// Answer with `HTTP/1.1 403 Forbidden`.
        http: bool,
    },
    /// Answers questions of DNS.
    Dns(DnsOut),
    /// Shadowsocks.
    Shadowsocks(ShadowsocksOut),
    /// Trojan.
    Trojan(TrojanOut),
    /// VLESS.
    Vless(VlessOut),
    /// VMess.
    Vmess(VmessOut),
    /// SOCKS 5.
    Socks(ProxyOut),
    /// HTTP CONNECT.
    Http(ProxyOut),
}

/// Answers questions of DNS that are sent to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DnsOut {
    /// How questions that go on are sent. `None`: as they came.
    pub network: Option<Network>,
    /// Where they are sent. `None`: to their target.
    pub address: Option<Address>,
    /// The port they are sent to. `None`: that of their target.
    pub port: Option<u16>,
    /// What becomes of questions that are not about addresses. `None`, without rules: they get an empty answer.
    pub non_ip_query: Option<NonIpQuery>,
    /// Types of questions that are refused, or dropped.
    pub block_types: Vec<u16>,
    /// Rules about questions, in place of the two above.
    pub rules: Vec<DnsRule>,
}

/// Straight to the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Freedom {
    /// Host to go to instead, whatever the target.
    pub redirect_host: Option<Address>,
    /// Port to go to instead.
    pub redirect_port: Option<u16>,
    /// Which addresses of a name are used.
    pub domain_strategy: DomainStrategy,
    /// Names are resolved here, also for another outbound that this one dials through.
    pub resolves: bool,
    /// PROXY protocol version to announce the client with; 0 for none.
    pub proxy_protocol: u8,
    /// Rules on the address that is dialled; the first that fits decides.
    pub final_rules: Vec<FinalRule>,
    /// The first bytes of connections are cut into pieces.
    pub fragment: Option<Fragment>,
    /// Datagrams that are sent ahead of the first one of an association.
    pub noises: Vec<Noise>,
}

/// A rule on the address that is dialled.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalRule {
    /// Allow or block.
    pub allow: bool,
    /// Stream, datagram or, if `None`, both.
    pub network: Option<Network>,
    /// Ports; empty for all.
    pub ports: Vec<(u16, u16)>,
    /// Addresses; empty for all.
    pub ips: Vec<IpMatch>,
}

/// Shadowsocks outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowsocksOut {
    /// Server. Datagrams go to the same port.
    pub server: (Address, u16),
    /// What the password stands for.
    pub keys: KeyChain,
}

/// Trojan outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct TrojanOut {
    /// Server.
    pub server: (Address, u16),
    /// What our password there becomes on the wire.
    pub key: Key,
}

/// VLESS outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct VlessOut {
    /// Server.
    pub server: (Address, u16),
    /// Our id there.
    pub id: UserId,
    /// The flow `xtls-rprx-vision`, if the payload is to go by it.
    pub vision: Option<Vision>,
}

/// The flow `xtls-rprx-vision`, as the client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vision {
    /// How much is padded.
    pub seed: Seed,
    /// Datagrams to port 443 are carried too. Otherwise they are refused, so that programs fall back to TCP.
    pub udp_443: bool,
    /// Connections to the server that are kept ready.
    pub ready: u16,
}

/// VMess outbound.
#[derive(Clone, Debug, PartialEq)]
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

/// SOCKS or HTTP outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyOut {
    /// Server.
    pub server: (Address, u16),
    /// Our account there.
    pub account: Option<Account>,
    /// More headers of the CONNECT request. HTTP only.
    pub headers: Vec<(String, String)>,
}
