//! Inbounds.

use std::net::SocketAddr;

use sealway_v2ray::config::{self, SocksAuth};

use super::transport;
use crate::settings::*;

impl From<&config::ServiceListen> for Listen {
    fn from(listen: &config::ServiceListen) -> Listen {
        // Whoever is to use it besides its owner is named by a mode.
        const OWNER: u32 = 0o600;
        match listen {
            config::ServiceListen::Ip(address) if address.ip().is_unspecified() && address.is_ipv6() => {
                Listen::EveryAddress(address.port())
            }
            config::ServiceListen::Ip(address) => Listen::Port(*address),
            config::ServiceListen::Unix(name, mode) => Listen::Unix(name.clone(), mode.or(Some(OWNER))),
        }
    }
}

fn user<K: Clone>(user: &config::User<K>, levels: &mut Vec<u32>) -> User<K> {
    levels.push(user.level);
    User {
        id: user.id.clone(),
        email: user.email.clone(),
        level: user.level,
    }
}

fn vless_user(vless: &config::VlessUser, levels: &mut Vec<u32>) -> VlessUser {
    VlessUser {
        user: user(&vless.user, levels),
        flow: vless.flow,
        seed: vless.seed,
    }
}

fn shadowsocks_users(users: &config::ShadowsocksUsers, levels: &mut Vec<u32>) -> ShadowsocksUsers {
    let mut one = |one| user(one, levels);
    match users {
        config::ShadowsocksUsers::Classic(users) => ShadowsocksUsers::Classic(users.iter().map(one).collect()),
        config::ShadowsocksUsers::One(user) => ShadowsocksUsers::One(one(user)),
        config::ShadowsocksUsers::Many(key, users) => {
            ShadowsocksUsers::Many(key.clone(), users.iter().map(one).collect())
        }
    }
}

pub(super) fn inbound(inbound: &config::Inbound, levels: &mut Vec<u32>) -> Inbound {
    let listen = match &inbound.listen {
        config::Listen::Ip { ip: Some(ip), ports } => ports
            .iter()
            .map(|port| Listen::Port(SocketAddr::new(*ip, port)))
            .collect(),
        config::Listen::Ip { ip: None, ports } => ports.iter().map(Listen::EveryAddress).collect(),
        config::Listen::Unix { name, mode } => vec![Listen::Unix(name.clone(), *mode)],
    };
    let protocol = match &inbound.protocol {
        config::InboundProtocol::Dokodemo(door) => {
            levels.push(door.level);
            InboundProtocol::Dokodemo(Dokodemo {
                capture: capture(door, &inbound.stream),
                address: door.address.clone(),
                port: door.port.0,
                tcp: door.networks.tcp,
                udp: door.networks.udp,
                level: door.level,
            })
        }
        config::InboundProtocol::Socks(socks) => {
            levels.push(socks.level);
            let closed = socks.auth.value == SocksAuth::Password;
            InboundProtocol::Socks(Socks {
                accounts: if closed { socks.accounts.clone() } else { Vec::new() },
                udp: socks.udp,
                udp_address: socks.udp_address,
                level: socks.level,
            })
        }
        config::InboundProtocol::Http(http) => {
            levels.push(http.level);
            InboundProtocol::Http(HttpProxy {
                accounts: http.accounts.clone(),
                allow_transparent: http.allow_transparent,
                level: http.level,
            })
        }
        config::InboundProtocol::Trojan(trojan) => InboundProtocol::Trojan(TrojanIn {
            users: trojan.users.iter().map(|one| user(one, levels)).collect(),
            fallbacks: trojan.fallbacks.clone(),
        }),
        config::InboundProtocol::Shadowsocks(shadowsocks) => InboundProtocol::Shadowsocks(ShadowsocksIn {
            users: shadowsocks_users(&shadowsocks.users, levels),
            tcp: shadowsocks.networks.tcp,
            udp: shadowsocks.networks.udp,
            once: shadowsocks.once,
        }),
        config::InboundProtocol::Vless(vless) => InboundProtocol::Vless(VlessIn {
            users: vless.users.iter().map(|one| vless_user(one, levels)).collect(),
            fallbacks: vless.fallbacks.clone(),
        }),
        config::InboundProtocol::Vmess(vmess) => InboundProtocol::Vmess(VmessIn {
            users: vmess.users.iter().map(|one| user(one, levels)).collect(),
            secure_only: vmess.secure_only,
        }),
    };
    let stream = &inbound.stream;
    let mut socket = transport::socket(stream);
    if let Some(capture) = protocol.capture() {
        let (_, udp) = protocol.networks();
        socket.takes_up_datagrams = udp;
        // What is redirected comes to an address of this machine.
        if capture == Capture::Redirect {
            socket.transparent = Transparent::IfAllowed;
        }
    }
    Inbound {
        tag: inbound.tag.clone(),
        listen,
        protocol,
        transport: ServerTransport {
            kind: transport::kind(stream),
            tls: stream.tls.as_deref().map(|tls| transport::server_tls(stream, tls)),
            reality: match &stream.reality {
                Some(config::Reality::Server(reality)) => Some(reality.clone()),
                _ => None,
            },
            socket,
            accept_proxy_protocol: stream.accept_proxy_protocol || stream.sockopt.accept_proxy_protocol,
        },
        sniffing: inbound.sniffing.enabled.value.then(|| sniffing(&inbound.sniffing)),
    }
}

fn sniffing(sniffing: &config::Sniffing) -> Sniffing {
    Sniffing {
        overrides: sniffing.dest_override.0.clone(),
        domains_excluded: sniffing.domains_excluded.0.iter().map(|at| at.value.clone()).collect(),
        ips_excluded: sniffing.ips_excluded.0.iter().map(|at| at.value.clone()).collect(),
        metadata_only: sniffing.metadata_only,
        route_only: sniffing.route_only,
        server_first: super::ranges(sniffing.server_first.as_ref()),
    }
}

/// How the firewall leads connections to a door, if it goes on to where they were meant to go.
fn capture(door: &config::DokodemoSettings, stream: &config::Stream) -> Option<Capture> {
    door.follow_redirect.then_some(match stream.sockopt.tproxy {
        config::Tproxy::Tproxy => Capture::Tproxy,
        _ => Capture::Redirect,
    })
}
