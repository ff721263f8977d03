//! Outbounds.

use sealway_v2ray::config::{self, BlackholeResponse, FinalAction, XudpProxyUdp443};
use sealway_v2ray::mux::BaseKey;

use sealway_v2ray::trojan::Key;

use super::{ips, networks, ranges, transport};
use crate::Error;
use crate::settings::*;

fn server(server: &config::Server) -> (sealway_v2ray::Address, u16) {
    (server.address.clone(), server.port)
}

pub(super) fn outbound(outbound: &config::Outbound, cone: &Cone) -> Outbound {
    let proxy = |proxy: &config::ProxyOutbound| ProxyOut {
        server: server(&proxy.server),
        account: proxy.account.clone(),
        headers: proxy.headers.value.clone().into_iter().collect(),
    };
    let protocol = match &outbound.protocol {
        config::OutboundProtocol::Freedom(freedom) => OutboundProtocol::Freedom(Freedom {
            redirect_host: freedom.redirect.address.clone(),
            redirect_port: freedom.redirect.port,
            // Names are resolved once, by the more particular of two keys.
            domain_strategy: transport::strategy(match freedom.domain_strategy {
                config::DomainStrategy::AsIs => outbound.stream.sockopt.domain_strategy.value,
                asked => asked,
            }),
            resolves: freedom.domain_strategy != config::DomainStrategy::AsIs,
            proxy_protocol: freedom.proxy_protocol.value,
            final_rules: freedom.final_rules.iter().map(final_rule).collect(),
            fragment: freedom.fragment.clone(),
            noises: freedom.noises.clone(),
        }),
        config::OutboundProtocol::Blackhole(blackhole) => OutboundProtocol::Blackhole {
            http: blackhole.response.kind == BlackholeResponse::Http,
        },
        config::OutboundProtocol::Dns(dns) => OutboundProtocol::Dns(DnsOut {
            network: dns.network,
            address: dns.address.clone(),
            port: (dns.port.0 > 0).then_some(dns.port.0),
            non_ip_query: dns.non_ip_query,
            block_types: dns.block_types.clone(),
            rules: dns.rules.value.clone(),
        }),
        config::OutboundProtocol::Trojan(trojan) => OutboundProtocol::Trojan(TrojanOut {
            server: server(&trojan.server),
            key: Key::of_password(&trojan.password),
        }),
        config::OutboundProtocol::Shadowsocks(shadowsocks) => OutboundProtocol::Shadowsocks(ShadowsocksOut {
            server: server(&shadowsocks.server),
            keys: shadowsocks.keys.clone(),
        }),
        config::OutboundProtocol::Vless(vless) => OutboundProtocol::Vless(VlessOut {
            server: server(&vless.server),
            id: vless.id,
            vision: vless.vision.as_ref().map(|vision| Vision {
                seed: vision.seed,
                udp_443: vision.udp_443,
                ready: vision.ready,
            }),
        }),
        config::OutboundProtocol::Vmess(vmess) => OutboundProtocol::Vmess(VmessOut {
            server: server(&vmess.server),
            id: vmess.id,
            security: vmess.security,
            authenticated_length: vmess.experiments.authenticated_length,
            no_end: vmess.experiments.no_termination_signal,
        }),
        config::OutboundProtocol::Socks(socks) => OutboundProtocol::Socks(proxy(socks)),
        config::OutboundProtocol::Http(http) => OutboundProtocol::Http(proxy(http)),
    };
    let mut transport = transport::client(&outbound.stream);
    if let Some(proxy) = &outbound.proxy {
        let through = Through {
            outbound: proxy.tag.value.clone(),
            resolves: false,
        };
        // What comes down must not show who asks for it to a server that the other outbound is to hide it from.
        if let TransportKind::Xhttp(xhttp) = &mut transport.kind
            && let Some(download) = &mut xhttp.download
        {
            download.transport.through.get_or_insert_with(|| through.clone());
        }
        transport.through = Some(through);
        if !proxy.transport_layer {
            transport.kind = TransportKind::Raw;
        }
    }
    Outbound {
        tag: outbound.tag.clone(),
        protocol,
        transport,
        send_through: outbound.send_through,
        mux: mux(outbound, cone),
    }
}

/// What Xray's environment says of datagrams.
pub(super) struct Cone {
    /// One association serves all targets of a client.
    pub(super) full: bool,
    /// The key of the ids by which servers find associations again.
    pub(super) base_key: Option<BaseKey>,
}

impl Cone {
    /// Reads `XRAY_CONE_DISABLED` and `XRAY_XUDP_BASEKEY`.
    pub(super) fn from_environment() -> Result<Cone, Error> {
        let read = |name: &str, dotted: &str| std::env::var(name).or_else(|_| std::env::var(dotted)).ok();
        let key = read(BASE_KEY, "xray.xudp.basekey").filter(|key| !key.is_empty());
        let wrong = || {
            Error::config(
                BASE_KEY,
                "is not the base64 of 32 bytes, of the kind for URLs and without padding",
            )
        };
        Ok(Cone {
            full: read("XRAY_CONE_DISABLED", "xray.cone.disabled").is_none_or(|off| off != "true"),
            base_key: key.map(|key| BaseKey::parse(&key).ok_or_else(wrong)).transpose()?,
        })
    }
}

/// The variable that holds a [`BaseKey`].
const BASE_KEY: &str = "XRAY_XUDP_BASEKEY";

/// Streams in one carrier where the configuration does not say it.
const USUAL_CONCURRENCY: u16 = 8;

fn mux(outbound: &config::Outbound, cone: &Cone) -> MuxOut {
    let asked = &outbound.mux;
    let mut mux = MuxOut {
        full_cone: cone.full,
        base_key: cone.base_key.clone(),
        ..MuxOut::default()
    };
    if !asked.enabled.value {
        return mux;
    }
    mux.streams = match u16::try_from(asked.concurrency) {
        Ok(0) => Some(USUAL_CONCURRENCY),
        more => more.ok(),
    };
    mux.datagrams = match u16::try_from(asked.xudp_concurrency) {
        Ok(0) if mux.streams.is_some() => MuxDatagrams::Shared,
        Ok(0) | Err(_) => MuxDatagrams::Native,
        Ok(most) => MuxDatagrams::Own(most),
    };
    mux.port_443 = match asked.xudp_proxy_udp_443 {
        XudpProxyUdp443::Reject => MuxPort443::Reject,
        XudpProxyUdp443::Allow => MuxPort443::Allow,
        XudpProxyUdp443::Skip => MuxPort443::Skip,
    };
    mux
}

fn final_rule(rule: &config::FinalRule) -> FinalRule {
    let one = match networks(rule.networks.as_ref()).as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    FinalRule {
        allow: rule.action == FinalAction::Allow,
        network: one,
        ports: ranges(rule.ports.as_ref()),
        ips: ips(&rule.ips),
    }
}
