//! Inbounds and outbounds of every protocol, which know each other.

use std::net::SocketAddr;

use sealway_proxy::settings::*;
use sealway_v2ray::Address;
use sealway_v2ray::shadowsocks::{self, KeyChain, Method};
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vless::fallback::Fallback;

use super::{any_port, id};

/// Straight out, also to this machine.
pub fn freedom() -> Outbound {
    Outbound {
        tag: "direct".into(),
        protocol: OutboundProtocol::Freedom(Freedom {
            final_rules: vec![FinalRule {
                allow: true,
                network: None,
                ports: vec![],
                ips: vec![],
            }],
            ..Freedom::default()
        }),
        transport: ClientTransport::default(),
        send_through: None,
        mux: MuxOut::default(),
    }
}

pub fn user() -> User {
    User {
        id: id(),
        email: "user@example".into(),
        level: 0,
    }
}

pub fn inbound(tag: &str, protocol: InboundProtocol, transport: ServerTransport) -> Inbound {
    Inbound {
        tag: tag.into(),
        listen: any_port(),
        protocol,
        transport,
        sniffing: None,
    }
}

pub fn door(target: SocketAddr) -> Inbound {
    let dokodemo = Dokodemo {
        capture: None,
        address: Some(Address::from(target.ip())),
        port: target.port(),
        tcp: true,
        udp: true,
        level: 0,
    };
    inbound("door", InboundProtocol::Dokodemo(dokodemo), ServerTransport::default())
}

pub fn outbound(protocol: OutboundProtocol, transport: ClientTransport) -> Outbound {
    Outbound {
        tag: "proxy".into(),
        protocol,
        transport,
        send_through: None,
        mux: MuxOut::default(),
    }
}

pub const PASSWORD: &str = "password";

pub fn trojan_with(fallbacks: Vec<Fallback<FallbackTarget>>) -> InboundProtocol {
    InboundProtocol::Trojan(TrojanIn {
        users: [TrojanUser {
            id: Key::of_password(PASSWORD),
            email: "user@example".into(),
            level: 0,
        }]
        .into_iter()
        .collect(),
        fallbacks,
    })
}

pub fn trojan() -> InboundProtocol {
    trojan_with(vec![])
}

pub fn trojan_out(server: SocketAddr) -> OutboundProtocol {
    OutboundProtocol::Trojan(TrojanOut {
        server: named(server),
        key: Key::of_password(PASSWORD),
    })
}

/// An address as settings have it.
pub fn named(server: SocketAddr) -> (Address, u16) {
    (Address::from(server.ip()), server.port())
}

pub fn vless_with(fallbacks: Vec<Fallback<FallbackTarget>>) -> InboundProtocol {
    InboundProtocol::Vless(VlessIn {
        users: [user().into()].into_iter().collect(),
        fallbacks,
    })
}

pub fn vless() -> InboundProtocol {
    vless_with(vec![])
}

pub fn vless_out(server: SocketAddr) -> OutboundProtocol {
    vision_out(server, None)
}

pub fn vision_out(server: SocketAddr, vision: Option<Vision>) -> OutboundProtocol {
    OutboundProtocol::Vless(VlessOut {
        server: named(server),
        id: id(),
        vision,
    })
}

pub fn vmess() -> InboundProtocol {
    InboundProtocol::Vmess(VmessIn {
        users: [user()].into_iter().collect(),
        secure_only: false,
    })
}

pub fn vmess_out(server: SocketAddr) -> OutboundProtocol {
    vmess_out_with(server, VmessSecurity::Auto, false)
}

pub fn vmess_out_with(server: SocketAddr, security: VmessSecurity, authenticated_length: bool) -> OutboundProtocol {
    OutboundProtocol::Vmess(VmessOut {
        server: named(server),
        id: id(),
        security,
        authenticated_length,
        no_end: false,
    })
}

/// A password for a method of Shadowsocks: for those of 2022 a key, which differs by `seed`.
pub fn shadowsocks_password(method: Method, seed: u8) -> String {
    use base64::Engine;
    if !method.is_2022() {
        return format!("password {seed}");
    }
    let key: Vec<u8> = (0..method.key_len() as u8).map(|n| n.wrapping_add(seed)).collect();
    base64::engine::general_purpose::STANDARD.encode(key)
}

/// The key of that password.
pub fn shadowsocks_key(method: Method, seed: u8) -> shadowsocks::Key {
    shadowsocks::Key::new(method, &shadowsocks_password(method, seed)).unwrap()
}

/// Shadowsocks for streams and datagrams, with one user, or with two whose keys have the seeds 1 and 2 (behind the server's
/// own, 0, where the method tells users apart).
pub fn shadowsocks(method: Method, two: bool) -> InboundProtocol {
    let one = |seed: u8| ShadowsocksUser {
        id: shadowsocks_key(method, seed),
        email: format!("user{seed}@example"),
        level: 0,
    };
    let users = match (method.is_2022(), two) {
        (false, false) => ShadowsocksUsers::Classic(vec![one(1)]),
        (false, true) => ShadowsocksUsers::Classic(vec![one(2), one(1)]),
        (true, false) => ShadowsocksUsers::One(one(1)),
        (true, true) => ShadowsocksUsers::Many(shadowsocks_key(method, 0), vec![one(2), one(1)]),
    };
    InboundProtocol::Shadowsocks(ShadowsocksIn {
        users,
        tcp: true,
        udp: true,
        once: true,
    })
}

/// What the user with the seed 1 has.
pub fn shadowsocks_chain(method: Method, two: bool) -> KeyChain {
    let own = shadowsocks_password(method, 1);
    match two && method.is_2022() {
        true => KeyChain::new(method, &format!("{}:{own}", shadowsocks_password(method, 0))).unwrap(),
        false => KeyChain::new(method, &own).unwrap(),
    }
}

/// The same, as an outbound.
pub fn shadowsocks_out(method: Method, two: bool, server: SocketAddr) -> OutboundProtocol {
    OutboundProtocol::Shadowsocks(ShadowsocksOut {
        server: named(server),
        keys: shadowsocks_chain(method, two),
    })
}

/// SOCKS for streams and datagrams.
pub fn socks() -> InboundProtocol {
    InboundProtocol::Socks(Socks {
        udp: true,
        ..Socks::default()
    })
}

pub fn socks_out(server: SocketAddr, account: Option<Account>) -> OutboundProtocol {
    OutboundProtocol::Socks(proxy_out(server, account))
}

/// A proxy of SOCKS or HTTP.
pub fn proxy_out(server: SocketAddr, account: Option<Account>) -> ProxyOut {
    ProxyOut {
        server: named(server),
        account,
        headers: Vec::new(),
    }
}
