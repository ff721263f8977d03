//! `outbounds`: where connections go out.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::protocol::{OutboundProtocol, OutboundProtocolName, UnreadOutbound};
use super::scalar::{Name, Part, texts};
use super::schema::{Kind, Loses};
use super::sockopt::DomainStrategy;
use super::stream::{Stream, check_side};
use super::table::{Decode, object, words};
use crate::json::Value;
use crate::problem::{At, Position};

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

words! {
    /// What becomes of datagrams to port 443, which are QUIC, where there is a mux.
    pub enum XudpProxyUdp443 {
        /// They are dropped, so that programs fall back to TCP.
        Reject = "reject" | "";
        /// They go through the mux like others.
        Allow = "allow";
        /// They go out without the mux.
        Skip = "skip";
    }
}

object! {
    /// Many connections in one (Mux.Cool). A server takes them without any key.
    pub struct Mux: "outbounds[].mux" {
        /// Whether it is done.
        enabled: At<bool> = "enabled", default "false";
        /// Connections in one carrier at once. 0: 8. Negative: streams go out on their own.
        concurrency: i16 = "concurrency", default "0";
        /// Associations of datagrams in one carrier at once. 0: they share the carriers of streams. Negative: they go out on
        /// their own.
        xudp_concurrency: i16 = "xudpConcurrency", default "0";
        /// What becomes of datagrams to port 443.
        xudp_proxy_udp_443: XudpProxyUdp443 = "xudpProxyUDP443", default "\"reject\"";
    }
}

object! {
    /// Dialling through another outbound.
    pub struct ProxySettings: "outbounds[].proxySettings" {
        /// The tag of that outbound. It carries what this one would send by a socket.
        tag: At<String> = "tag", default "\"\"";
        /// The transport of this outbound is spoken on top. Otherwise only its TLS is, as V2Ray does it.
        transport_layer: bool = "transportLayer", default "false";
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
        settings: Option<UnreadOutbound> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Part<Stream> = "streamSettings", default "{}";
        /// The source address of connections.
        send_through: Part<Option<SendThrough>> = "sendThrough";
        /// Many connections in one.
        mux: Part<Mux> = "mux", default "{}";
        /// Dialling through another outbound. It goes before `dialerProxy`.
        proxy: Part<Option<ProxySettings>> = "proxySettings";
        /// How names become addresses before they go out.
        target_strategy: Part<At<DomainStrategy>> = "targetStrategy", default "\"AsIs\"";
    }
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
    /// Many connections in one.
    pub mux: Mux,
    /// Another outbound that this one dials through, instead of the one that `dialerProxy` names. Its tag is not empty.
    pub proxy: Option<ProxySettings>,
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
        let settings = s
            .settings
            .map_or_else(|| Value::empty_object(at), |UnreadOutbound(given)| given);
        let mut protocol = cx.within("settings", |cx| OutboundProtocol::read(s.protocol, settings, cx));
        if let Some(mux) = s.mux.0.as_ref().filter(|mux| mux.enabled.value)
            && let Some(OutboundProtocol::Freedom(_) | OutboundProtocol::Blackhole(_)) = &protocol
        {
            cx.within("mux", |cx| {
                let text = "there is no server here that could take many connections in one: `mux` has no effect";
                cx.warn_in("enabled", mux.enabled.at, text, "leave it out");
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
        if let Some(protocol) = &protocol {
            protocol.check_stream(&stream, at, cx);
        }
        s.target_strategy.0?;
        Some(Outbound {
            tag: s.tag.0?.value.0,
            protocol: protocol?,
            stream,
            send_through: s.send_through.0?.map(|SendThrough(ip)| ip),
            mux: s.mux.0?,
            proxy: s.proxy.0?.filter(|proxy| !proxy.tag.is_empty()),
            at,
        })
    }
}
