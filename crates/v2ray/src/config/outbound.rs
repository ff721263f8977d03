//! `outbounds`: where connections go out.

use std::net::IpAddr;

use super::context::{Cx, quoted};
use super::protocol::{OutboundProtocol, OutboundProtocolName, UnreadOutbound};
use super::scalar::{Name, Part, texts};
use super::schema::{Kind, Loses};
use super::sockopt::DomainStrategy;
use super::stream::{Stream, check_side};
use super::table::{Decode, object};
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
        settings: Option<UnreadOutbound> = "settings";
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
        let settings = s
            .settings
            .map_or_else(|| Value::empty_object(at), |UnreadOutbound(given)| given);
        let mut protocol = cx.within("settings", |cx| OutboundProtocol::read(s.protocol, settings, cx));
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
            at,
        })
    }
}
