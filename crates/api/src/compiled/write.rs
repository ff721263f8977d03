//! Inbounds and outbounds as others list them.
//!
//! Passwords of Trojan and Shadowsocks are not kept, only what became of them: there they are empty, whoever asks.

mod rules;
mod stream;

use std::net::IpAddr;

use sealway_proxy::settings::{
    FallbackDial, FallbackTarget, Freedom, Inbound, InboundProtocol, Listen, Outbound, OutboundProtocol, SendThrough,
    ShadowsocksUser, ShadowsocksUsers, Sniffing, UnixName, VmessSecurity,
};
use sealway_v2ray::shadowsocks::Method;
use sealway_v2ray::vless::fallback::Fallback;
use sealway_v2ray::{Address, UserId};

pub(crate) use rules::rules;

use super::typed;
use crate::proto::net::ip_or_domain::Address as Compiled;
use crate::proto::net::{IpOrDomain, Network, PortList, PortRange};
use crate::proto::xray::app::proxyman::{ReceiverConfig, SenderConfig, SniffingConfig};
use crate::proto::xray::common::protocol::{SecurityConfig, SecurityType, ServerEndpoint};
use crate::proto::xray::proxy::{
    blackhole, dokodemo, freedom, http, shadowsocks, shadowsocks_2022, socks, trojan, vless, vmess,
};
use crate::proto::{InboundHandlerConfig, OutboundHandlerConfig, TypedMessage, User, ip_bytes};

/// An inbound of which nothing but the tag is told.
pub(crate) fn only_tag(tag: &str) -> InboundHandlerConfig {
    InboundHandlerConfig {
        tag: tag.to_owned(),
        ..Default::default()
    }
}

/// An inbound as it was asked for. Without `secrets` private keys, ids, passwords and values of headers are empty.
pub(crate) fn inbound(inbound: &Inbound, secrets: bool) -> InboundHandlerConfig {
    let receiver = ReceiverConfig {
        port_list: ports(&inbound.listen),
        listen: listen(&inbound.listen),
        stream_settings: stream::server(&inbound.transport, secrets),
        receive_original_destination: inbound.protocol.capture().is_some(),
        sniffing_settings: inbound.sniffing.as_ref().map(sniffing),
    };
    InboundHandlerConfig {
        tag: inbound.tag.clone(),
        receiver_settings: Some(typed("xray.app.proxyman.ReceiverConfig", &receiver)),
        proxy_settings: Some(protocol(&inbound.protocol, secrets)),
    }
}

/// An outbound as it was asked for, in the same way.
pub(crate) fn outbound(outbound: &Outbound, secrets: bool) -> OutboundHandlerConfig {
    let via = outbound.send_through.as_ref().and_then(|via| match via {
        SendThrough::Address(ip) => Some(of_ip(*ip)),
        _ => None,
    });
    let sender = SenderConfig {
        via,
        stream_settings: stream::client(&outbound.transport, secrets),
        ..Default::default()
    };
    OutboundHandlerConfig {
        tag: outbound.tag.clone(),
        sender_settings: Some(typed("xray.app.proxyman.SenderConfig", &sender)),
        proxy_settings: Some(out_protocol(&outbound.protocol, secrets)),
        ..Default::default()
    }
}

/// A user of an inbound, of whom nothing is told but who it is.
pub(crate) fn user(protocol: &InboundProtocol, email: String, level: u32) -> User {
    let account = match protocol {
        InboundProtocol::Vless(_) => typed("xray.proxy.vless.Account", &vless::Account::default()),
        InboundProtocol::Vmess(_) => vmess_account(String::new(), SecurityType::Auto),
        InboundProtocol::Trojan(_) => typed("xray.proxy.trojan.Account", &trojan::Account::default()),
        InboundProtocol::Shadowsocks(own) => match &own.users {
            ShadowsocksUsers::Classic(users) => shadowsocks_account(users.first().map(|user| user.id.method())),
            _ => typed(
                "xray.proxy.shadowsocks_2022.Account",
                &shadowsocks_2022::Account::default(),
            ),
        },
        InboundProtocol::Http(_) => typed("xray.proxy.http.Account", &http::Account::default()),
        _ => typed("xray.proxy.socks.Account", &socks::Account::default()),
    };
    User {
        level,
        email,
        account: Some(account),
    }
}

fn of_ip(ip: IpAddr) -> IpOrDomain {
    IpOrDomain {
        address: Some(Compiled::Ip(ip_bytes(ip))),
    }
}

fn of_name(name: String) -> IpOrDomain {
    IpOrDomain {
        address: Some(Compiled::Domain(name)),
    }
}

fn of_address(address: &Address) -> IpOrDomain {
    match address.ip() {
        Some(ip) => of_ip(ip),
        None => of_name(address.to_string()),
    }
}

fn unix(name: &UnixName) -> String {
    match name {
        UnixName::Path(path) => path.display().to_string(),
        // Zeros fill it up where the program asked for that.
        UnixName::Abstract(name) => match name.split(|byte| *byte == 0).next() {
            Some(bare) if bare.len() < name.len() => format!("@@{}", String::from_utf8_lossy(bare)),
            _ => format!("@{}", String::from_utf8_lossy(name)),
        },
    }
}

fn listen(all: &[Listen]) -> Option<IpOrDomain> {
    match all.first()? {
        Listen::Port(address) => Some(of_ip(address.ip())),
        Listen::EveryAddress(_) => None,
        Listen::Unix(name, _) => Some(of_name(unix(name))),
    }
}

/// The ports, those that follow each other as one range.
fn ports(all: &[Listen]) -> Option<PortList> {
    let mut range: Vec<PortRange> = Vec::new();
    for one in all {
        let port = match one {
            Listen::Port(address) => address.port(),
            Listen::EveryAddress(port) => *port,
            Listen::Unix(..) => continue,
        };
        let port = u32::from(port);
        match range.last_mut() {
            Some(last) if last.to + 1 == port => last.to = port,
            _ => range.push(PortRange { from: port, to: port }),
        }
    }
    (!range.is_empty()).then_some(PortList { range })
}

fn sniffing(sniffing: &Sniffing) -> SniffingConfig {
    SniffingConfig {
        enabled: true,
        destination_override: sniffing.overrides.iter().map(|one| one.as_str().to_owned()).collect(),
        metadata_only: sniffing.metadata_only,
        route_only: sniffing.route_only,
        ..Default::default()
    }
}

fn networks(tcp: bool, udp: bool) -> Vec<i32> {
    let both = [(tcp, Network::Tcp), (udp, Network::Udp)];
    both.into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, network)| network.into())
        .collect()
}

fn person(email: &str, level: u32, account: TypedMessage) -> User {
    User {
        level,
        email: email.to_owned(),
        account: Some(account),
    }
}

fn id(id: UserId, secrets: bool) -> String {
    if secrets { id.to_string() } else { String::new() }
}

fn vmess_account(id: String, security: SecurityType) -> TypedMessage {
    let mut account = vmess::Account::default();
    account.id = id;
    account.security_settings = Some(SecurityConfig {
        r#type: security.into(),
    });
    typed("xray.proxy.vmess.Account", &account)
}

/// An account of one of the methods of 2017.
fn shadowsocks_account(method: Option<Method>) -> TypedMessage {
    use shadowsocks::CipherType;
    let cipher = match method {
        Some(Method::Aes128Gcm) => CipherType::Aes128Gcm,
        Some(Method::Aes256Gcm) => CipherType::Aes256Gcm,
        Some(Method::ChaCha20Poly1305) => CipherType::Chacha20Poly1305,
        Some(Method::XChaCha20Poly1305) => CipherType::Xchacha20Poly1305,
        _ => CipherType::Unknown,
    };
    let mut account = shadowsocks::Account::default();
    account.cipher_type = cipher.into();
    typed("xray.proxy.shadowsocks.Account", &account)
}

fn accounts<'a>(
    list: impl Iterator<Item = (&'a String, &'a String)>,
    secrets: bool,
) -> std::collections::BTreeMap<String, String> {
    let hide = |pass: &String| if secrets { pass.clone() } else { String::new() };
    list.map(|(user, pass)| (user.clone(), hide(pass))).collect()
}

/// What kind of address a fallback is, and the address.
fn dest(to: &FallbackDial) -> (String, String) {
    match to {
        FallbackDial::Tcp(host, port) if host.ip().is_some_and(|ip| ip.is_ipv6()) => {
            ("tcp".to_owned(), format!("[{host}]:{port}"))
        }
        FallbackDial::Tcp(host, port) => ("tcp".to_owned(), format!("{host}:{port}")),
        FallbackDial::Local(port) => ("tcp".to_owned(), format!("localhost:{port}")),
        FallbackDial::Unix(name) => ("unix".to_owned(), unix(name)),
    }
}

fn fallback(one: &Fallback<FallbackTarget>) -> trojan::Fallback {
    let (r#type, dest) = dest(&one.target.to);
    trojan::Fallback {
        name: one.name.clone(),
        alpn: one.alpn.clone(),
        path: one.path.clone(),
        r#type,
        dest,
        xver: one.target.xver.into(),
    }
}

fn protocol(protocol: &InboundProtocol, secrets: bool) -> TypedMessage {
    match protocol {
        InboundProtocol::Vless(vless) => {
            let users = vless.users.iter().map(|user| {
                let mut account = vless::Account::default();
                account.id = id(user.user.id, secrets);
                account.flow = user.flow.as_str().to_owned();
                let account = typed("xray.proxy.vless.Account", &account);
                person(&user.user.email, user.user.level, account)
            });
            let fallbacks = vless
                .fallbacks
                .iter()
                .map(fallback)
                .map(|one| vless::inbound::Fallback {
                    name: one.name,
                    alpn: one.alpn,
                    path: one.path,
                    r#type: one.r#type,
                    dest: one.dest,
                    xver: one.xver,
                });
            let config = vless::inbound::Config {
                clients: users.collect(),
                fallbacks: fallbacks.collect(),
                decryption: "none".to_owned(),
                ..Default::default()
            };
            typed("xray.proxy.vless.inbound.Config", &config)
        }
        InboundProtocol::Vmess(vmess) => {
            let users = vmess.users.iter().map(|user| {
                let account = vmess_account(id(user.id, secrets), SecurityType::Auto);
                person(&user.email, user.level, account)
            });
            let config = vmess::inbound::Config {
                user: users.collect(),
                default: None,
            };
            typed("xray.proxy.vmess.inbound.Config", &config)
        }
        InboundProtocol::Trojan(trojan) => {
            let account = || typed("xray.proxy.trojan.Account", &trojan::Account::default());
            let users = trojan.users.iter();
            let config = trojan::ServerConfig {
                users: users.map(|user| person(&user.email, user.level, account())).collect(),
                fallbacks: trojan.fallbacks.iter().map(fallback).collect(),
            };
            typed("xray.proxy.trojan.ServerConfig", &config)
        }
        InboundProtocol::Shadowsocks(own) => of_shadowsocks(&own.users, networks(own.tcp, own.udp)),
        InboundProtocol::Socks(socks) => {
            let closed = !socks.accounts.is_empty();
            let config = socks::ServerConfig {
                auth_type: if closed {
                    socks::AuthType::Password
                } else {
                    socks::AuthType::NoAuth
                }
                .into(),
                accounts: accounts(socks.accounts.iter().map(|one| (&one.user, &one.pass)), secrets),
                address: socks.udp_address.map(of_ip),
                udp_enabled: socks.udp,
                user_level: socks.level,
            };
            typed("xray.proxy.socks.ServerConfig", &config)
        }
        InboundProtocol::Http(http) => {
            let config = http::ServerConfig {
                accounts: accounts(http.accounts.iter().map(|one| (&one.user, &one.pass)), secrets),
                allow_transparent: http.allow_transparent,
                user_level: http.level,
            };
            typed("xray.proxy.http.ServerConfig", &config)
        }
        InboundProtocol::Dokodemo(door) => {
            let config = dokodemo::Config {
                address: door.address.as_ref().map(of_address),
                port: door.port.into(),
                networks: networks(door.tcp, door.udp),
                follow_redirect: door.capture.is_some(),
                user_level: door.level,
                ..Default::default()
            };
            typed("xray.proxy.dokodemo.Config", &config)
        }
    }
}

fn of_shadowsocks(users: &ShadowsocksUsers, network: Vec<i32>) -> TypedMessage {
    let method = |user: &ShadowsocksUser| user.id.method().name().to_owned();
    match users {
        ShadowsocksUsers::Classic(users) => {
            let users = users
                .iter()
                .map(|user| person(&user.email, user.level, shadowsocks_account(Some(user.id.method()))));
            let config = shadowsocks::ServerConfig {
                users: users.collect(),
                network,
            };
            typed("xray.proxy.shadowsocks.ServerConfig", &config)
        }
        ShadowsocksUsers::One(user) => {
            let mut config = shadowsocks_2022::ServerConfig::default();
            config.method = method(user);
            config.email.clone_from(&user.email);
            config.level = i32::try_from(user.level).unwrap_or(i32::MAX);
            config.network = network;
            typed("xray.proxy.shadowsocks_2022.ServerConfig", &config)
        }
        ShadowsocksUsers::Many(key, users) => {
            let account = || {
                typed(
                    "xray.proxy.shadowsocks_2022.Account",
                    &shadowsocks_2022::Account::default(),
                )
            };
            let users = users.iter().map(|user| person(&user.email, user.level, account()));
            let mut config = shadowsocks_2022::MultiUserServerConfig::default();
            config.method = key.method().name().to_owned();
            config.users = users.collect();
            config.network = network;
            typed("xray.proxy.shadowsocks_2022.MultiUserServerConfig", &config)
        }
    }
}

fn server((address, port): &(Address, u16), account: Option<TypedMessage>) -> Option<ServerEndpoint> {
    Some(ServerEndpoint {
        address: Some(of_address(address)),
        port: (*port).into(),
        user: account.map(|account| person("", 0, account)),
    })
}

fn out_protocol(protocol: &OutboundProtocol, secrets: bool) -> TypedMessage {
    match protocol {
        OutboundProtocol::Freedom(freedom) => typed("xray.proxy.freedom.Config", &of_freedom(freedom)),
        OutboundProtocol::Blackhole { http } => {
            let answer = typed("xray.proxy.blackhole.HTTPResponse", &blackhole::HttpResponse {});
            let config = blackhole::Config {
                response: http.then_some(answer),
            };
            typed("xray.proxy.blackhole.Config", &config)
        }
        // What is configured of it are rules, which have no compiled form that is known here.
        OutboundProtocol::Dns(_) => TypedMessage {
            r#type: "xray.proxy.dns.Config".to_owned(),
            value: Vec::new(),
        },
        OutboundProtocol::Vless(vless) => {
            let mut account = vless::Account::default();
            account.id = id(vless.id, secrets);
            account.flow = vless.vision.map_or("", |_| "xtls-rprx-vision").to_owned();
            account.encryption = "none".to_owned();
            let account = typed("xray.proxy.vless.Account", &account);
            let config = vless::outbound::Config {
                vnext: server(&vless.server, Some(account)),
            };
            typed("xray.proxy.vless.outbound.Config", &config)
        }
        OutboundProtocol::Vmess(vmess) => {
            let security = match vmess.security {
                VmessSecurity::Aes128Gcm => SecurityType::Aes128Gcm,
                VmessSecurity::ChaCha20Poly1305 => SecurityType::Chacha20Poly1305,
                VmessSecurity::None => SecurityType::None,
                VmessSecurity::Zero => SecurityType::Zero,
                _ => SecurityType::Auto,
            };
            let account = vmess_account(id(vmess.id, secrets), security);
            let config = vmess::outbound::Config {
                receiver: server(&vmess.server, Some(account)),
            };
            typed("xray.proxy.vmess.outbound.Config", &config)
        }
        OutboundProtocol::Trojan(trojan) => {
            let account = typed("xray.proxy.trojan.Account", &trojan::Account::default());
            let config = trojan::ClientConfig {
                server: server(&trojan.server, Some(account)),
            };
            typed("xray.proxy.trojan.ClientConfig", &config)
        }
        OutboundProtocol::Shadowsocks(own) => {
            let config = shadowsocks::ClientConfig {
                server: server(&own.server, Some(shadowsocks_account(None))),
            };
            typed("xray.proxy.shadowsocks.ClientConfig", &config)
        }
        OutboundProtocol::Socks(proxy) => {
            let config = socks::ClientConfig {
                server: server(&proxy.server, None),
            };
            typed("xray.proxy.socks.ClientConfig", &config)
        }
        OutboundProtocol::Http(proxy) => {
            let config = http::ClientConfig {
                server: server(&proxy.server, None),
                header: Vec::new(),
            };
            typed("xray.proxy.http.ClientConfig", &config)
        }
    }
}

fn of_freedom(freedom: &Freedom) -> freedom::Config {
    let override_host = freedom.redirect_host.is_some() || freedom.redirect_port.is_some();
    let target = ServerEndpoint {
        address: freedom.redirect_host.as_ref().map(of_address),
        port: freedom.redirect_port.unwrap_or_default().into(),
        user: None,
    };
    freedom::Config {
        destination_override: override_host.then_some(freedom::DestinationOverride { server: Some(target) }),
        proxy_protocol: freedom.proxy_protocol.into(),
        ..Default::default()
    }
}
