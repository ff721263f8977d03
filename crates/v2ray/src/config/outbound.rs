//! `outbounds`: where connections go out.

use std::net::IpAddr;

use ipnet::IpNet;

use super::context::{Cx, quoted};
use super::protocol::{OutboundProtocol, OutboundProtocolName, UnreadOutbound};
use super::scalar::{Name, Part, texts};
use super::schema::Loses;
use super::sockopt::DomainStrategy;
use super::stream::{Stream, check_side};
use super::table::{FromKeys, object, words};
use super::transport::Transport;
use crate::json::Value;
use crate::problem::{At, Position};

texts! {
    SendThrough = "IP address, network, `origin` or `srcip`", |text| match text {
        "origin" => Ok(SendThrough::Origin),
        "srcip" => Ok(SendThrough::Client),
        _ if text.contains('/') => {
            let parsed: Result<IpNet, _> = text.parse();
            parsed.map(|net| SendThrough::Pool(net.trunc())).map_err(|_| format!("{} is no network", quoted(text)))
        }
        _ => text.parse().map(SendThrough::Address).map_err(|_| format!("{} is no IP address", quoted(text))),
    }, "write an address of this machine, a network such as 2001:db8::/64, origin or srcip";
}

/// The source address of outgoing connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendThrough {
    /// This one.
    Address(IpAddr),
    /// One of this network, drawn anew for each connection.
    Pool(IpNet),
    /// The address that the client came to.
    Origin,
    /// The client's own.
    Client,
}

impl SendThrough {
    /// Whether each client has one of its own.
    pub(crate) fn is_the_clients(self) -> bool {
        matches!(self, SendThrough::Origin | SendThrough::Client)
    }

    /// The address of a pool that 128 random bits draw.
    pub fn drawn(net: IpNet, random: u128) -> IpAddr {
        match (net.network(), net.hostmask()) {
            (IpAddr::V4(net), IpAddr::V4(host)) => {
                IpAddr::from((net.to_bits() | random as u32 & host.to_bits()).to_be_bytes())
            }
            (IpAddr::V6(net), IpAddr::V6(host)) => {
                IpAddr::from((net.to_bits() | random & host.to_bits()).to_be_bytes())
            }
            (net, _) => net,
        }
    }
}

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
    pub(crate) struct OutboundSettings: "outbounds[]" {
        /// The name for rules and counters. Two outbounds cannot have the same.
        tag: Part<At<Name>> = "tag", default "\"\"";
        /// What is spoken.
        protocol: OutboundProtocolName = "protocol", required;
        /// The settings of the protocol.
        settings: Option<UnreadOutbound> = "settings";
        /// What carries the protocol, and how it is protected.
        stream: Part<Stream> = "streamSettings", default "{}";
        /// The source address of connections: one, or one out of a network; `origin`, the address that the client came to, or
        /// `srcip`, its own.
        send_through: Part<Option<At<SendThrough>>> = "sendThrough";
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
pub struct Outbound {
    /// The name for rules and counters. Empty: none. Otherwise no other outbound has it.
    pub tag: String,
    /// What is spoken.
    pub protocol: OutboundProtocol,
    /// What carries the protocol.
    pub stream: Stream,
    /// The source address of connections. `None`: the system's choice.
    pub send_through: Option<SendThrough>,
    /// Many connections in one.
    pub mux: Mux,
    /// Another outbound that this one dials through, instead of the one that `dialerProxy` names. Its tag is not empty.
    pub proxy: Option<ProxySettings>,
    /// Where it is configured.
    pub at: Position,
}

impl Outbound {
    /// Whether streams of several clients go in one connection.
    pub(crate) fn shares_connections(&self) -> bool {
        shares_connections(&self.stream, Some(&self.mux))
    }
}

fn shares_connections(stream: &Stream, mux: Option<&Mux>) -> bool {
    matches!(
        stream.transport,
        Transport::Grpc(_) | Transport::Http(_) | Transport::Xhttp(_)
    ) || mux.is_some_and(|mux| mux.enabled.value)
}

impl FromKeys for Outbound {
    type Keys = OutboundSettings;

    fn from_keys(s: OutboundSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
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
        if let Some(mux) = s.mux.0.as_ref().filter(|mux| mux.enabled.value && mux.concurrency >= 0)
            && let Some(OutboundProtocol::Vless(vless)) = &protocol
            && vless.vision.is_some()
        {
            let text = "with the flow xtls-rprx-vision servers take no streams in a mux, only datagrams";
            let hint = "write -1 as `concurrency`; datagrams share connections by `xudpConcurrency`";
            cx.within("mux", |cx| cx.error_in("concurrency", mux.enabled.at, text, hint));
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
        let send_through = s.send_through.0?;
        if let Some(source) = &send_through
            && source.value.is_the_clients()
            && shares_connections(&stream, s.mux.0.as_ref())
        {
            let what = "an address of the client's connection as `sendThrough` where many clients share a connection";
            cx.within("sendThrough", |cx| cx.later(Loses::Protection, source.at, what));
            return None;
        }
        Some(Outbound {
            tag: s.tag.0?.value.0,
            protocol: protocol?,
            stream,
            send_through: send_through.map(|source| source.value),
            mux: s.mux.0?,
            proxy: s.proxy.0?.filter(|proxy| !proxy.tag.is_empty()),
            at,
        })
    }
}
