//! `outbounds`: where connections go out.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::fallback::optional_host_port;
use super::json::{Data, Value};
use super::net::{IpMatches, is_private};
use super::problem::{At, Position};
use super::scalar::{Name, Networks, Part, Ports, texts};
use super::sockopt::DomainStrategy;
use super::stream::{Stream, Transport, check_side};
use super::table::{Decode, Kind, Loses, Object, object, words};
use crate::Address;

mod proxies;

use proxies::{ProxyOutSettings, VlessOutSettings, VmessOutSettings};
pub use proxies::{ProxyOutbound, Server, VlessOutbound, VmessOutbound, VmessSecurity};

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
    /// Many connections in one. Not supported yet: each connection has its own carrier.
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
        tag: Part<At<Name>> = "tag", default "\"\"";
        /// What is spoken.
        protocol: OutboundProtocolName = "protocol", required;
        /// The settings of the protocol.
        settings: Option<Value> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Part<Stream> = "streamSettings", default "{}";
        /// The source address of connections.
        send_through: Part<Option<SendThrough>> = "sendThrough";
        /// Many connections in one.
        mux: Part<Mux> = "mux", default "{}";
        /// How names become addresses before they go out.
        target_strategy: Part<At<DomainStrategy>> = "targetStrategy", default "\"AsIs\"";
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
        LaterWarning "blockDelay": "`blockDelay`; what is blocked is left waiting for 30 to 90 seconds";
    }
}

object! {
    /// Straight to the target.
    pub struct FreedomSettings: "freedom settings" {
        /// How names become addresses.
        domain_strategy: DomainStrategy = "domainStrategy" | "targetStrategy", default "\"AsIs\"";
        /// Where to go in place of the target.
        redirect: Redirect = "redirect";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "userLevel", default "0";
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
    /// Whether it holds an id or a password.
    pub(crate) fn has_secrets(&self) -> bool {
        match self {
            OutboundProtocol::Freedom(_) | OutboundProtocol::Blackhole(_) => false,
            OutboundProtocol::Vless(_) | OutboundProtocol::Vmess(_) => true,
            OutboundProtocol::Socks(proxy) | OutboundProtocol::Http(proxy) => proxy.account.is_some(),
        }
    }

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
        if let Some(mux) = s.mux.0.as_ref().filter(|mux| mux.enabled.value) {
            let what = "`mux`; every connection has a carrier of its own";
            cx.within("mux", |cx| {
                cx.within("enabled", |cx| cx.later(Loses::Ease, mux.enabled.at, what));
            });
        }
        if let Some(strategy) = s.target_strategy.0.filter(|asked| asked.value != DomainStrategy::AsIs) {
            match &mut protocol {
                Some(OutboundProtocol::Freedom(freedom)) => freedom.domain_strategy = strategy.value,
                _ => cx.within("targetStrategy", |cx| {
                    let what = "`targetStrategy` on an outbound that is a proxy";
                    cx.later(Loses::Protection, strategy.at, what);
                }),
            }
        }
        let stream = s.stream.0?;
        check_side(&stream, false, cx);
        check_straight(protocol.as_ref(), &stream, cx);
        if let Some(OutboundProtocol::Vless(vless)) = &protocol
            && stream.tls.is_none()
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
        s.target_strategy.0?;
        Some(Outbound {
            tag: s.tag.0?.value.0,
            protocol: protocol?,
            stream,
            send_through: s.send_through.0?.map(|SendThrough(ip)| ip),
            mux: s.mux.0?,
            at,
        })
    }
}

/// Tells of TLS and transports where nothing speaks over them.
fn check_straight(protocol: Option<&OutboundProtocol>, stream: &Stream, cx: &mut Cx<'_>) {
    if stream.tls.is_none() && stream.transport == Transport::Raw {
        return;
    }
    cx.within("streamSettings", |cx| match protocol {
        Some(OutboundProtocol::Freedom(_)) => {
            let what = "TLS and transports on a freedom outbound; targets are dialled as they are";
            cx.later(Loses::Protection, stream.at, what);
        }
        Some(OutboundProtocol::Blackhole(_)) => {
            let text = "`network` and `security` have no effect on a blackhole outbound, which dials nobody";
            cx.warn(stream.at, text, "they belong to outbounds that go through a server");
        }
        _ => {}
    });
}

/// Tells of limits that are asked for by an outbound's user.
pub(super) fn check_level(key: &str, level: At<u32>, cx: &mut Cx<'_>) {
    if level.value != 0 {
        let what = "limits of an outbound's own; those of the inbound's user hold";
        cx.within(key, |cx| cx.later(Loses::Ease, level.at, what));
    }
}

fn read_protocol(name: OutboundProtocolName, settings: Value, cx: &mut Cx<'_>) -> Option<OutboundProtocol> {
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
            check_level("userLevel", s.level, cx);
            Some(OutboundProtocol::Freedom(s))
        }
        OutboundProtocolName::Blackhole => {
            BlackholeSettings::decode(settings, cx).map(|s| OutboundProtocol::Blackhole(s.response.kind))
        }
        OutboundProtocolName::Vless => proxies::read_vless(settings, cx).map(OutboundProtocol::Vless),
        OutboundProtocolName::Vmess => proxies::read_vmess(settings, cx).map(OutboundProtocol::Vmess),
        OutboundProtocolName::Socks => proxies::read_proxy(settings, false, cx).map(OutboundProtocol::Socks),
        OutboundProtocolName::Http => proxies::read_proxy(settings, true, cx).map(OutboundProtocol::Http),
    }
}
