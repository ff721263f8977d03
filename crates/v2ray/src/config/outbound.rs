//! `outbounds`: where connections go out.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::fallback::optional_host_port;
use super::json::{Data, Value};
use super::net::{IpMatches, is_private};
use super::problem::{At, Position, Severity};
use super::scalar::{Networks, Port, Ports, texts};
use super::sockopt::{DomainStrategy, ScalarText};
use super::stream::{Stream, check_side};
use super::table::{Decode, Kind, Object, object, words};
use super::tls::Headers;
use super::user::{Account, Experiments, FlowName, check_alter_id, check_encryption};
use crate::{Address, UserId};

words! {
    /// The protocols of outbounds.
    pub(crate) enum OutboundProtocolName {
        /// Straight to the target.
        Freedom = "freedom" | "direct";
        /// Nowhere.
        Blackhole = "blackhole" | "block";
        /// VLESS.
        Vless = "vless";
        /// VMess.
        Vmess = "vmess";
        /// SOCKS5.
        Socks = "socks";
        /// HTTP proxy, by CONNECT.
        Http = "http";
    }
    other {
        LaterError "trojan": "the protocol trojan";
        LaterError "shadowsocks": "the protocol shadowsocks";
        LaterError "hysteria": "the protocol hysteria";
        LaterError "wireguard": "the protocol wireguard";
        LaterError "loopback": "the protocol loopback";
        LaterError "dns": "the protocol dns";
    }
}

texts! {
    SendThrough = "IP address", |text| match text.to_ascii_lowercase().as_str() {
        "origin" | "srcip" => Err(format!("not supported yet: {} as the source address", quoted(text))),
        lower if lower.contains('/') => Err(format!("not supported yet: a source address out of {}", quoted(text))),
        _ => text.parse().map(SendThrough).map_err(|_| format!("{} is no IP address", quoted(text))),
    }, "";
}

/// The source address of outgoing connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SendThrough(IpAddr);

object! {
    /// Many connections in one. Recognised; each connection has its own carrier for now.
    pub struct Mux: "outbounds[].mux" {
        /// Whether it is done.
        enabled: At<bool> = "enabled", default "false";
        /// Connections in one carrier.
        concurrency: i32 = "concurrency", default "8";
        /// Streams of datagrams in one carrier.
        xudp_concurrency: i32 = "xudpConcurrency", default "8";
        /// What to do with datagrams to port 443: `reject`, `allow`, `skip`.
        xudp_proxy_udp_443: String = "xudpProxyUDP443", default "\"reject\"";
    }
}

object! {
    /// Where connections go out, and what is spoken there. The first is for whatever no rule is about.
    struct OutboundSettings: "outbounds[]" {
        /// The name for rules and counters. Two outbounds cannot have the same.
        tag: At<String> = "tag", default "\"\"";
        /// What is spoken.
        protocol: OutboundProtocolName = "protocol", required;
        /// The settings of the protocol.
        settings: Option<Value> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Stream = "streamSettings", default "{}";
        /// The source address of connections.
        send_through: Option<SendThrough> = "sendThrough";
        /// Many connections in one.
        mux: Mux = "mux", default "{}";
        /// How names become addresses before they go out.
        target_strategy: At<DomainStrategy> = "targetStrategy", default "\"AsIs\"";
    }
    other {
        LaterError "proxySettings": "dialling through another outbound (`proxySettings`)";
    }
}

texts! {
    Redirect = "`host:port`, `host:` or `:port`", |text| {
        let (address, port) = optional_host_port(text)?;
        Ok(Redirect { address, port })
    }, "write host:port, :port to keep the host, or host: to keep the port";
}

/// Where connections go in place of their target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Redirect {
    /// The host. `None`: the target's.
    pub address: Option<Address>,
    /// The port. `None`: the target's.
    pub port: Option<u16>,
}

words! {
    /// What a final rule does.
    pub enum FinalAction {
        /// Connect.
        Allow = "allow";
        /// Do not.
        Block = "block";
    }
}

object! {
    /// A rule on the address that is dialled. The first that fits decides. All conditions must hold.
    pub struct FinalRule: "freedom settings.finalRules[]" {
        /// What it does.
        action: FinalAction = "action", required;
        /// Kinds of traffic. Absent: all.
        networks: Option<Networks> = "network";
        /// Ports. Absent: all.
        ports: Option<Ports> = "port";
        /// Addresses. Empty: all.
        ips: IpMatches = "ip";
    }
    other {
        LaterWarning "blockDelay": "`blockDelay`; what is blocked is closed at once";
    }
}

object! {
    /// Straight to the target.
    pub struct FreedomSettings: "freedom settings" {
        /// How names become addresses.
        domain_strategy: DomainStrategy = "domainStrategy" | "targetStrategy", default "\"AsIs\"";
        /// Where to go in place of the target.
        redirect: Redirect = "redirect";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
        /// The version of the PROXY protocol to announce the client with. 0: none.
        proxy_protocol: At<u8> = "proxyProtocol", default "0";
        /// Rules on the address that is dialled.
        final_rules: Vec<FinalRule> = "finalRules";
    }
    other {
        LaterError "fragment": "cutting the first packets into pieces (`fragment`)";
        LaterError "noise": "datagrams of noise (`noise`)";
        LaterError "noises": "datagrams of noise (`noises`)";
        LaterError "ipsBlocked": "`ipsBlocked`; write `finalRules`";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

words! {
    /// How a refused connection is answered.
    pub enum BlackholeResponse {
        /// Not at all.
        None = "none" | "";
        /// By `HTTP/1.1 403 Forbidden`.
        Http = "http";
    }
}

object! {
    /// How refused connections are answered.
    pub(crate) struct BlackholeAnswer: "blackhole settings.response" {
        /// The kind of answer.
        kind: BlackholeResponse = "type", default "\"none\"";
    }
}

object! {
    /// Nowhere.
    pub(crate) struct BlackholeSettings: "blackhole settings" {
        /// How refused connections are answered.
        response: BlackholeAnswer = "response", default "{}";
    }
}

object! {
    /// Who we are at a VLESS server.
    struct VlessOutUser: "vless outbound settings.vnext[].users[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: UserId = "id", required;
        /// The encryption of VLESS itself: `none`. It must be there.
        encryption: Option<At<String>> = "encryption";
        /// The flow.
        flow: FlowName = "flow", default "\"\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
    other {
        LaterError "reverse": "reverse connections";
        Accepted "testpre": "Only the flow xtls-rprx-vision has it.";
        Accepted "testseed": "Only the flow xtls-rprx-vision has it.";
        Accepted "seed": "";
    }
}

words! {
    /// How a VMess client has its payload sealed.
    pub enum VmessSecurity {
        /// By what this machine's hardware is good at: AES-128-GCM or ChaCha20-Poly1305.
        Auto = "auto" | "";
        /// AES-128-GCM.
        Aes128Gcm = "aes-128-gcm";
        /// ChaCha20-Poly1305.
        Chacha20Poly1305 = "chacha20-poly1305" | "chacha20-ietf-poly1305";
        /// Not at all, in chunks.
        None = "none";
        /// Not at all. Streams have no chunks either.
        Zero = "zero";
    }
    other {
        Gone "aes-128-cfb": "write auto";
        Gone "legacy": "write auto";
    }
}

object! {
    /// Who we are at a VMess server.
    struct VmessOutUser: "vmess outbound settings.vnext[].users[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: UserId = "id", required;
        /// How the payload is sealed.
        security: VmessSecurity = "security", default "\"auto\"";
        /// Obsolete. Only the AEAD header, alterId 0, is spoken.
        alter_id: Option<At<ScalarText>> = "alterId";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// Experiments, as one text.
        experiments: Experiments = "experiments", default "\"\"";
        /// A name, for the reader.
        email: String = "email";
    }
}

object! {
    /// Who we are at a SOCKS or HTTP server.
    struct ProxyOutUser: "servers[].users[]" {
        /// The name.
        user: String = "user" | "username", required;
        /// The password.
        pass: String = "pass" | "password", required;
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
}

/// Declares the lists of servers, which differ in their users only.
macro_rules! server {
    ($Name:ident, $title:literal, $User:ty) => {
        object! {
            /// A server.
            struct $Name: $title {
                /// Its address.
                address: Address = "address", required;
                /// Its port.
                port: Port = "port", required;
                /// Who we are there: one user.
                users: Vec<$User> = "users";
            }
        }
    };
}
server!(VlessServer, "vless outbound settings.vnext[]", VlessOutUser);
server!(VmessServer, "vmess outbound settings.vnext[]", VmessOutUser);
server!(ProxyServer, "socks and http outbound settings.servers[]", ProxyOutUser);

object! {
    /// A VLESS server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    struct VlessOutSettings: "vless outbound settings" {
        /// The server: a list of one.
        servers: Vec<VlessServer> = "vnext", required;
    }
}

object! {
    /// A VMess server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    struct VmessOutSettings: "vmess outbound settings" {
        /// The server: a list of one.
        servers: Vec<VmessServer> = "vnext", required;
    }
}

object! {
    /// A SOCKS or HTTP server. It stands here, or in the keys of a user and a server themselves (`address`, `port`,
    /// `user`, …).
    struct ProxyOutSettings: "socks and http outbound settings" {
        /// The server: a list of one.
        servers: Vec<ProxyServer> = "servers", required;
        /// Headers for the CONNECT request. HTTP only.
        headers: Headers = "headers";
    }
}

/// A server to go through.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Server {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
}

/// A VLESS server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VlessOutbound {
    /// The server.
    pub server: Server,
    /// Our id there.
    pub id: UserId,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// A name, for the reader.
    pub email: String,
}

/// A VMess server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VmessOutbound {
    /// The server.
    pub server: Server,
    /// Our id there.
    pub id: UserId,
    /// How the payload is sealed.
    pub security: VmessSecurity,
    /// Experiments.
    pub experiments: Experiments,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// A name, for the reader.
    pub email: String,
}

/// A SOCKS or HTTP server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProxyOutbound {
    /// The server.
    pub server: Server,
    /// Our account there, if we need one.
    pub account: Option<Account>,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// Headers for the CONNECT request. HTTP only.
    pub headers: Headers,
}

/// What is spoken at an outbound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OutboundProtocol {
    /// Straight to the target.
    Freedom(FreedomSettings),
    /// Nowhere.
    Blackhole(BlackholeResponse),
    /// VLESS.
    Vless(VlessOutbound),
    /// VMess.
    Vmess(VmessOutbound),
    /// SOCKS5.
    Socks(ProxyOutbound),
    /// HTTP proxy, by CONNECT.
    Http(ProxyOutbound),
}

impl OutboundProtocol {
    /// The tables of all protocols' settings.
    pub(crate) const TABLES: [&'static Object; 5] = [
        FreedomSettings::TABLE,
        BlackholeSettings::TABLE,
        VlessOutSettings::TABLE,
        VmessOutSettings::TABLE,
        ProxyOutSettings::TABLE,
    ];
}

/// Where connections go out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Outbound {
    /// The name for rules and counters. Empty: none. Otherwise no other outbound has it.
    pub tag: String,
    /// What is spoken.
    pub protocol: OutboundProtocol,
    /// What carries the protocol.
    pub stream: Stream,
    /// The source address of connections. `None`: the system's choice.
    pub send_through: Option<IpAddr>,
    /// Many connections in one. Each has its own carrier for now.
    pub mux: Mux,
    /// Where it is configured.
    pub at: Position,
}

impl Decode for Outbound {
    fn kind() -> Kind {
        Kind::Object(OutboundSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = OutboundSettings::decode(value, cx)?;
        let settings = s.settings.unwrap_or(Value {
            at,
            data: Data::Object(Vec::new()),
        });
        let mut protocol = cx.within("settings", |cx| read_protocol(s.protocol, settings, cx));
        if s.mux.enabled.value {
            let what = "`mux`; every connection has a carrier of its own";
            cx.within("mux", |cx| cx.later(Severity::Warning, s.mux.enabled.at, what));
        }
        if s.target_strategy.value != DomainStrategy::AsIs {
            match &mut protocol {
                Some(OutboundProtocol::Freedom(freedom)) => freedom.domain_strategy = s.target_strategy.value,
                _ => cx.within("targetStrategy", |cx| {
                    cx.later(
                        Severity::Error,
                        s.target_strategy.at,
                        "`targetStrategy` on an outbound that is a proxy",
                    );
                }),
            }
        }
        check_side(&s.stream, false, cx);
        if let Some(OutboundProtocol::Vless(vless)) = &protocol
            && s.stream.tls.is_none()
            && !vless.server.address.ip().is_some_and(is_private)
            && vless
                .server
                .address
                .domain()
                .is_none_or(|name| name.as_str() != "localhost")
        {
            let text =
                "VLESS does not encrypt, and there is no TLS: everything, the id included, can be read on the way";
            cx.warn(
                at,
                text,
                "write \"security\": \"tls\" under `streamSettings` on both ends",
            );
        }
        Some(Outbound {
            tag: s.tag.value,
            protocol: protocol?,
            stream: s.stream,
            send_through: s.send_through.map(|SendThrough(ip)| ip),
            mux: s.mux,
            at,
        })
    }
}

/// Rewrites settings in which server and user stand flat into a list of one server with one user.
fn nest(settings: Value, list: &str, user_keys: &[&str], beside: &[&str]) -> Value {
    let at = settings.at;
    let Data::Object(members) = settings.data else {
        return settings;
    };
    let is = |name: &str, keys: &[&str]| keys.iter().any(|key| key.eq_ignore_ascii_case(name));
    let nested = members.iter().any(|m| is(&m.key, &[list]));
    if nested
        || !members
            .iter()
            .any(|m| is(&m.key, &["address", "port"]) || is(&m.key, user_keys))
    {
        return Value {
            at,
            data: Data::Object(members),
        };
    }
    let (outside, members): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| is(&m.key, beside));
    let (user, mut server): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| is(&m.key, user_keys));
    let member = |key: &str, data| super::json::Member {
        key: key.into(),
        at,
        value: Value { at, data },
    };
    let object = |members| Value {
        at,
        data: Data::Object(members),
    };
    // A proxy without a name and a password has no user.
    if !user.is_empty() {
        server.push(member("users", Data::Array(vec![object(user)])));
    }
    let mut all = vec![member(list, Data::Array(vec![object(server)]))];
    all.extend(outside);
    object(all)
}

/// The one server of a list.
fn one<T>(mut list: Vec<T>, what: &str, at: Position, cx: &mut Cx<'_>) -> Option<T> {
    match list.len() {
        1 => list.pop(),
        0 => {
            cx.error(at, format!("there is no {what} here"), format!("list one {what}"));
            None
        }
        n => {
            cx.later(
                Severity::Error,
                at,
                &format!("more than one {what} in an outbound (here are {n}); write one outbound for each"),
            );
            None
        }
    }
}

fn read_protocol(name: OutboundProtocolName, settings: Value, cx: &mut Cx<'_>) -> Option<OutboundProtocol> {
    let at = settings.at;
    match name {
        OutboundProtocolName::Freedom => {
            let s = FreedomSettings::decode(settings, cx)?;
            if s.proxy_protocol.value > 2 {
                let text = format!("there is no version {} of the PROXY protocol", s.proxy_protocol.value);
                cx.within("proxyProtocol", |cx| {
                    cx.error(s.proxy_protocol.at, text, "write 0, 1 or 2")
                });
                return None;
            }
            Some(OutboundProtocol::Freedom(s))
        }
        OutboundProtocolName::Blackhole => {
            BlackholeSettings::decode(settings, cx).map(|s| OutboundProtocol::Blackhole(s.response.kind))
        }
        OutboundProtocolName::Vless => {
            let user_keys = [
                "id",
                "encryption",
                "flow",
                "level",
                "email",
                "seed",
                "testpre",
                "testseed",
                "reverse",
            ];
            let s = VlessOutSettings::decode(nest(settings, "vnext", &user_keys, &[]), cx)?;
            let server = one(s.servers, "server", at, cx)?;
            let user = one(server.users, "user", at, cx)?;
            check_encryption("encryption", user.encryption.as_ref(), at, cx);
            Some(OutboundProtocol::Vless(VlessOutbound {
                server: Server {
                    address: server.address,
                    port: server.port.0,
                },
                id: user.id,
                level: user.level,
                email: user.email,
            }))
        }
        OutboundProtocolName::Vmess => {
            let user_keys = ["id", "security", "alterId", "level", "experiments", "email"];
            let s = VmessOutSettings::decode(nest(settings, "vnext", &user_keys, &[]), cx)?;
            let server = one(s.servers, "server", at, cx)?;
            let user = one(server.users, "user", at, cx)?;
            check_alter_id(std::iter::once(user.alter_id), cx);
            Some(OutboundProtocol::Vmess(VmessOutbound {
                server: Server {
                    address: server.address,
                    port: server.port.0,
                },
                id: user.id,
                security: user.security,
                experiments: user.experiments,
                level: user.level,
                email: user.email,
            }))
        }
        OutboundProtocolName::Socks | OutboundProtocolName::Http => {
            let user_keys = ["user", "pass", "username", "password", "level", "email"];
            let s = ProxyOutSettings::decode(nest(settings, "servers", &user_keys, &["headers"]), cx)?;
            let server = one(s.servers, "server", at, cx)?;
            let user = match server.users.is_empty() {
                true => None,
                false => Some(one(server.users, "user", at, cx)?),
            };
            let level = user.as_ref().map_or(0, |user| user.level);
            let outbound = ProxyOutbound {
                server: Server {
                    address: server.address,
                    port: server.port.0,
                },
                account: user.map(|user| Account {
                    user: user.user,
                    pass: user.pass,
                }),
                level,
                headers: s.headers,
            };
            Some(match name {
                OutboundProtocolName::Socks => OutboundProtocol::Socks(outbound),
                _ => OutboundProtocol::Http(outbound),
            })
        }
    }
}
