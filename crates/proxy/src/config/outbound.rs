//! Outbounds.

use sealway_v2ray::config::{self, BlackholeResponse, FinalAction, VmessSecurity as Word};

use sealway_v2ray::trojan::Key;

use super::{account, ips, networks, ranges, transport};
use crate::Error;
use crate::settings::*;

fn server(server: &config::Server) -> (sealway_v2ray::Address, u16) {
    (server.address.clone(), server.port)
}

pub(super) fn outbound(place: &str, outbound: &config::Outbound) -> Result<Outbound, Error> {
    let proxy = |proxy: &config::ProxyOutbound| ProxyOut {
        server: server(&proxy.server),
        account: proxy.account.as_ref().map(account),
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
            proxy_protocol: freedom.proxy_protocol.value,
            final_rules: freedom.final_rules.iter().map(final_rule).collect(),
        }),
        config::OutboundProtocol::Blackhole(blackhole) => OutboundProtocol::Blackhole {
            http: blackhole.response.kind == BlackholeResponse::Http,
        },
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
        }),
        config::OutboundProtocol::Vmess(vmess) => OutboundProtocol::Vmess(VmessOut {
            server: server(&vmess.server),
            id: vmess.id,
            security: match vmess.security {
                Word::Auto => VmessSecurity::Auto,
                Word::Aes128Gcm => VmessSecurity::Aes128Gcm,
                Word::Chacha20Poly1305 => VmessSecurity::ChaCha20Poly1305,
                Word::None => VmessSecurity::None,
                Word::Zero => VmessSecurity::Zero,
                _ => return Err(Error::config(place, "not supported yet: this security of VMess")),
            },
            authenticated_length: vmess.experiments.authenticated_length,
            no_end: vmess.experiments.no_termination_signal,
        }),
        config::OutboundProtocol::Socks(socks) => OutboundProtocol::Socks(proxy(socks)),
        config::OutboundProtocol::Http(http) => OutboundProtocol::Http(proxy(http)),
        _ => return Err(Error::config(place, "not supported yet: this outbound protocol")),
    };
    let stream = &outbound.stream;
    Ok(Outbound {
        tag: outbound.tag.clone(),
        protocol,
        transport: ClientTransport {
            kind: transport::kind(place, stream)?,
            tls: stream.tls.as_deref().map(|tls| transport::client_tls(stream, tls)),
            socket: transport::socket(place, stream)?,
        },
        send_through: outbound.send_through,
    })
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
