//! A `config.json` that has been read, as settings of a server.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_v2ray::config::{
    self, BlackholeResponse, CertificateUsage, Config, EarlyData, FastOpen, FinalAction, Hosts, Log, LogTarget,
    Networks, Pem, Ports, RoutingStrategy, SocksAuth, Stream, TlsVersion, Tproxy, Transport, VmessSecurity as Word,
};
use sealway_v2ray::vless::fallback::Fallback;

use crate::settings::*;
use crate::{Error, Timeouts};

/// Longest name of a unix socket that fits behind the leading zero byte of an abstract one.
const ABSTRACT_LEN: usize = 107;

impl Settings {
    /// The settings a configuration stands for.
    ///
    /// # Errors
    /// [`Error::Config`] for what the configuration may hold and this engine does not have.
    pub fn from_config(config: &Config) -> Result<Settings, Error> {
        let mut settings = Settings {
            domain_strategy: match config.routing.domain_strategy {
                RoutingStrategy::AsIs => RouteByName::AsIs,
                RoutingStrategy::IpIfNonMatch => RouteByName::IfNonMatch,
                RoutingStrategy::IpOnDemand => RouteByName::OnDemand,
                _ => return Err(Error::config("routing.domainStrategy", "not supported yet")),
            },
            access_log: match &config.log.access {
                LogTarget::Off => AccessLog::Off,
                LogTarget::Stdout => AccessLog::Stdout,
                LogTarget::File(path) => AccessLog::File(path.into()),
            },
            ..Settings::default()
        };
        // Promises that would be broken in silence: addresses that a log was to hide, answers that were to be fixed.
        if config.log.mask_address != Log::default().mask_address {
            return Err(Error::config(
                "log.maskAddress",
                "not supported yet: the access log writes whole addresses; leave it out, or the access log off",
            ));
        }
        if config.dns.hosts != Hosts::default() {
            return Err(Error::config(
                "dns.hosts",
                "not supported yet: the system's resolver is asked; put fixed answers into /etc/hosts",
            ));
        }
        if config.log.dns {
            tracing::warn!("log.dnsLog: not supported yet: DNS queries are not logged");
        }
        if config.stats {
            let system = &config.policy.system;
            settings.counters = SystemCounters {
                inbound_uplink: system.stats_inbound_uplink,
                inbound_downlink: system.stats_inbound_downlink,
                outbound_uplink: system.stats_outbound_uplink,
                outbound_downlink: system.stats_outbound_downlink,
            };
        }
        let mut levels = vec![0];
        for (at, inbound) in config.inbounds.iter().enumerate() {
            settings
                .inbounds
                .push(self::inbound(&format!("inbounds[{at}]"), inbound, &mut levels)?);
        }
        for (at, outbound) in config.outbounds.iter().enumerate() {
            settings
                .outbounds
                .push(self::outbound(&format!("outbounds[{at}]"), outbound)?);
        }
        for (at, rule) in config.routing.rules.iter().enumerate() {
            settings.rules.push(self::rule(&format!("routing.rules[{at}]"), rule)?);
        }
        levels.sort_unstable();
        levels.dedup();
        for level in levels {
            let policy = config.policy.level(level);
            let limits = Level {
                handshake: policy.handshake,
                timeouts: Timeouts {
                    idle: policy.conn_idle,
                    uplink_only: policy.uplink_only,
                    downlink_only: policy.downlink_only,
                },
                count_uplink: config.stats && policy.stats_user_uplink,
                count_downlink: config.stats && policy.stats_user_downlink,
            };
            settings.levels.push((level, limits));
        }
        Ok(settings)
    }
}

fn ranges(ports: Option<&Ports>) -> Vec<(u16, u16)> {
    let ranges = ports.map(Ports::ranges).unwrap_or_default();
    ranges.iter().map(|range| (*range.start(), *range.end())).collect()
}

fn networks(networks: Option<&Networks>) -> Vec<sealway_v2ray::Network> {
    let both = [sealway_v2ray::Network::Tcp, sealway_v2ray::Network::Udp];
    match networks {
        Some(set) => both.into_iter().filter(|&network| set.contains(network)).collect(),
        None => Vec::new(),
    }
}

fn ips(matches: &config::IpMatches) -> Vec<IpMatch> {
    matches.0.iter().map(|set| set.value.clone()).collect()
}

fn rule(place: &str, rule: &config::Rule) -> Result<Rule, Error> {
    if rule.vless_routes.is_some() {
        return Err(Error::config(
            format!("{place}.vlessRoute"),
            "not supported yet: routing by vlessRoute",
        ));
    }
    Ok(Rule {
        domains: rule.domains.0.iter().map(|set| set.value.clone()).collect(),
        ips: ips(&rule.ips),
        ports: ranges(rule.ports.as_ref()),
        sources: ips(&rule.sources),
        source_ports: ranges(rule.source_ports.as_ref()),
        locals: ips(&rule.local_ips),
        local_ports: ranges(rule.local_ports.as_ref()),
        networks: networks(rule.networks.as_ref()),
        users: rule.users.clone(),
        inbound_tags: rule.inbound_tags.clone(),
        outbound_tag: rule.outbound_tag.clone(),
    })
}

fn unix(name: &config::UnixName, mode: Option<u32>) -> UnixName {
    match name {
        config::UnixName::Path(path) => UnixName::Path(path.into(), mode),
        config::UnixName::Abstract { name, padded } => {
            let mut bytes = name.clone().into_bytes();
            if *padded {
                bytes.resize(bytes.len().max(ABSTRACT_LEN), 0);
            }
            UnixName::Abstract(bytes)
        }
    }
}

fn user(user: &config::User, levels: &mut Vec<u32>) -> User {
    levels.push(user.level);
    User {
        id: user.id,
        email: user.email.clone(),
        level: user.level,
    }
}

fn account(account: &config::Account) -> Account {
    Account {
        user: account.user.clone(),
        pass: account.pass.clone(),
    }
}

fn inbound(place: &str, inbound: &config::Inbound, levels: &mut Vec<u32>) -> Result<Inbound, Error> {
    let listen = match &inbound.listen {
        config::Listen::Ip { ip: Some(ip), ports } => ports
            .iter()
            .map(|port| Listen::Port(SocketAddr::new(*ip, port)))
            .collect(),
        config::Listen::Ip { ip: None, ports } => ports.iter().map(Listen::EveryAddress).collect(),
        config::Listen::Unix { name, mode } => vec![Listen::Unix(unix(name, *mode))],
        _ => return Err(Error::config(format!("{place}.listen"), "not supported yet")),
    };
    let protocol = match &inbound.protocol {
        config::InboundProtocol::Dokodemo(door) => {
            levels.push(door.level);
            InboundProtocol::Dokodemo(Dokodemo {
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
                accounts: if closed {
                    socks.accounts.iter().map(account).collect()
                } else {
                    Vec::new()
                },
                udp: socks.udp,
                udp_address: socks.udp_address,
                level: socks.level,
            })
        }
        config::InboundProtocol::Http(http) => {
            levels.push(http.level);
            InboundProtocol::Http(HttpProxy {
                accounts: http.accounts.iter().map(account).collect(),
                allow_transparent: http.allow_transparent,
                level: http.level,
            })
        }
        config::InboundProtocol::Vless(vless) => InboundProtocol::Vless(VlessIn {
            users: vless.users.iter().map(|one| user(one, levels)).collect(),
            fallbacks: vless.fallbacks.iter().map(fallback).collect(),
        }),
        config::InboundProtocol::Vmess(vmess) => InboundProtocol::Vmess(VmessIn {
            users: vmess.users.iter().map(|one| user(one, levels)).collect(),
            secure_only: vmess.secure_only,
        }),
        _ => return Err(Error::config(place, "not supported yet: this inbound protocol")),
    };
    let stream = &inbound.stream;
    Ok(Inbound {
        tag: inbound.tag.clone(),
        listen,
        protocol,
        transport: ServerTransport {
            network: network(place, stream)?,
            tls: stream.tls.as_deref().map(|tls| server_tls(place, tls)).transpose()?,
            socket: socket(place, stream)?,
            accept_proxy_protocol: stream.accept_proxy_protocol || stream.sockopt.accept_proxy_protocol,
        },
    })
}

fn fallback(entry: &Fallback<config::FallbackTarget>) -> Fallback<FallbackTarget> {
    Fallback {
        name: entry.name.clone(),
        alpn: entry.alpn.clone(),
        path: entry.path.clone(),
        target: FallbackTarget {
            to: match &entry.target.to {
                config::FallbackDial::Local(port) => FallbackDial::Local(*port),
                config::FallbackDial::Tcp(host, port) => FallbackDial::Tcp(host.clone(), *port),
                config::FallbackDial::Unix(name) => FallbackDial::Unix(unix(name, None)),
            },
            xver: entry.target.xver,
        },
    }
}

fn network(place: &str, stream: &Stream) -> Result<Network, Error> {
    let (upgrade, ws) = match &stream.transport {
        Transport::Raw => return Ok(Network::Raw),
        Transport::WebSocket(upgrade) => (upgrade, true),
        Transport::HttpUpgrade(upgrade) => (upgrade, false),
        _ => {
            return Err(Error::config(
                format!("{place}.streamSettings"),
                "not supported yet: this transport",
            ));
        }
    };
    if upgrade.heartbeat.is_some() {
        tracing::warn!("{place}.streamSettings.wsSettings.heartbeatPeriod: not supported yet: no pings are sent");
    }
    let (early_data, early_data_header) = match &upgrade.early_data {
        None => (0, sealway_v2ray::ws::early::PROTOCOL_HEADER.into()),
        Some(EarlyData::Whole { limit }) => (*limit as usize, sealway_v2ray::ws::early::PROTOCOL_HEADER.into()),
        Some(EarlyData::Split { limit, header }) => (*limit as usize, header.clone().unwrap_or_default()),
    };
    let http = HttpNetwork {
        path: upgrade.path.clone(),
        host: upgrade.host.clone().unwrap_or_default(),
        headers: upgrade.headers.clone().into_iter().collect(),
        early_data,
        early_data_header,
        trusted_forwarded_for: stream
            .sockopt
            .trusted_x_forwarded_for
            .iter()
            .map(str::to_owned)
            .collect(),
    };
    Ok(if ws {
        Network::WebSocket(http)
    } else {
        Network::HttpUpgrade(http)
    })
}

fn pem(pem: &Pem) -> PemSource {
    match pem {
        Pem::File(path) => PemSource::File(path.into()),
        Pem::Inline(text) => PemSource::Text(text.clone()),
    }
}

fn versions(tls: &config::Tls) -> Versions {
    let between = |version: TlsVersion| {
        let order = |version| match version {
            TlsVersion::V10 => 0,
            TlsVersion::V11 => 1,
            TlsVersion::V12 => 2,
            _ => 3,
        };
        (order(tls.min_version)..=order(tls.max_version)).contains(&order(version))
    };
    Versions {
        tls12: between(TlsVersion::V12),
        tls13: between(TlsVersion::V13),
    }
}

/// What both sides refuse or say about TLS settings.
fn check_tls(place: &str, tls: &config::Tls) -> Result<(), Error> {
    let place = format!("{place}.streamSettings.tlsSettings");
    let refuse = |key: &str| Err(Error::config(format!("{place}.{key}"), "not supported yet"));
    if tls.verify_client {
        return refuse("verifyClientCertificate");
    }
    if !tls.pinned_chains.is_empty() {
        return refuse("pinnedPeerCertificateChainSha256");
    }
    if !tls.pinned_public_keys.is_empty() {
        return refuse("pinnedPeerCertificatePublicKeySha256");
    }
    if !tls.cipher_suites.is_empty() {
        tracing::warn!("{place}.cipherSuites: not supported yet: the usual cipher suites are offered");
    }
    if !tls.curves.is_empty() {
        tracing::warn!("{place}.curvePreferences: not supported yet: the usual groups are offered");
    }
    if tls.key_log.is_some() {
        tracing::warn!("{place}.masterKeyLog: not supported yet: no keys are written");
    }
    Ok(())
}

fn server_tls(place: &str, tls: &config::Tls) -> Result<ServerTls, Error> {
    check_tls(place, tls)?;
    let own = tls
        .certificates
        .iter()
        .filter(|one| one.usage == CertificateUsage::Encipherment);
    let certificates = own.filter_map(|one| {
        Some(Certificate {
            certificate: pem(&one.certificate),
            key: pem(one.key.as_ref()?),
            once: one.reload.is_none(),
        })
    });
    Ok(ServerTls {
        certificates: certificates.collect(),
        alpn: tls.alpn.clone(),
        versions: versions(tls),
        reject_unknown_sni: tls.reject_unknown_sni,
        resumption: tls.session_resumption,
        reload: tls.certificates.iter().filter_map(|one| one.reload).min(),
    })
}

fn client_tls(place: &str, tls: &config::Tls) -> Result<ClientTls, Error> {
    check_tls(place, tls)?;
    let authorities = tls
        .certificates
        .iter()
        .filter(|one| one.usage == CertificateUsage::Verify);
    Ok(ClientTls {
        server_name: tls.server_name.clone().unwrap_or_default(),
        alpn: tls.alpn.clone(),
        versions: versions(tls),
        allow_insecure: tls.allow_insecure,
        pinned: tls.pinned_certificates.clone(),
        verify_names: tls.verify_names.clone(),
        authorities: authorities.map(|one| pem(&one.certificate)).collect(),
        no_system_roots: tls.disable_system_root,
        resumption: tls.session_resumption,
    })
}

fn strategy(strategy: config::DomainStrategy) -> DomainStrategy {
    use config::DomainStrategy as From;
    let (families, force) = match strategy {
        From::UseIpv4 => (Families::V4, false),
        From::UseIpv6 => (Families::V6, false),
        From::UseIpv4v6 => (Families::V4V6, false),
        From::UseIpv6v4 => (Families::V6V4, false),
        From::ForceIp => (Families::Any, true),
        From::ForceIpv4 => (Families::V4, true),
        From::ForceIpv6 => (Families::V6, true),
        From::ForceIpv4v6 => (Families::V4V6, true),
        From::ForceIpv6v4 => (Families::V6V4, true),
        _ => (Families::Any, false),
    };
    DomainStrategy { families, force }
}

fn socket(place: &str, stream: &Stream) -> Result<SocketOptions, Error> {
    let sockopt = &stream.sockopt;
    let place = format!("{place}.streamSettings.sockopt");
    if sockopt.tproxy != Tproxy::Off {
        return Err(Error::config(
            format!("{place}.tproxy"),
            "not supported yet: transparent proxying",
        ));
    }
    let left_out = [
        ("tcpFastOpen", matches!(sockopt.tcp_fast_open, Some(FastOpen::Queue(_)))),
        ("tcpWindowClamp", sockopt.tcp_window_clamp > 0),
        ("tcpMptcp", sockopt.tcp_mptcp),
        ("customSockopt", !sockopt.custom.is_empty()),
        ("rxBufSize", sockopt.rx_buf_size > 0),
        ("txBufSize", sockopt.tx_buf_size > 0),
    ];
    for (key, _) in left_out.iter().filter(|(_, set)| *set) {
        tracing::warn!("{place}.{key}: not supported yet: the system's setting stays");
    }
    let seconds = |value: i32| {
        u64::try_from(value)
            .ok()
            .filter(|&value| value > 0)
            .map(Duration::from_secs)
    };
    let number = |value: u32| (value > 0).then_some(value);
    Ok(SocketOptions {
        mark: u32::try_from(sockopt.mark).ok().and_then(number),
        interface: Some(sockopt.interface.clone()).filter(|name| !name.is_empty()),
        keep_alive_idle: seconds(sockopt.tcp_keep_alive_idle),
        keep_alive_interval: seconds(sockopt.tcp_keep_alive_interval),
        user_timeout: number(sockopt.tcp_user_timeout).map(|ms| Duration::from_millis(ms.into())),
        congestion: Some(sockopt.tcp_congestion.clone()).filter(|name| !name.is_empty()),
        max_segment: number(sockopt.tcp_max_seg),
        v6_only: sockopt.v6_only,
        domain_strategy: strategy(sockopt.domain_strategy),
    })
}

fn server(server: &config::Server) -> (sealway_v2ray::Address, u16) {
    (server.address.clone(), server.port)
}

fn outbound(place: &str, outbound: &config::Outbound) -> Result<Outbound, Error> {
    if outbound.mux.enabled.value {
        return Err(Error::config(
            format!("{place}.mux"),
            "not supported yet: Mux.Cool; leave it out",
        ));
    }
    let proxy = |proxy: &config::ProxyOutbound| ProxyOut {
        server: server(&proxy.server),
        account: proxy.account.as_ref().map(account),
    };
    let protocol = match &outbound.protocol {
        config::OutboundProtocol::Freedom(freedom) => OutboundProtocol::Freedom(Freedom {
            redirect_host: freedom.redirect.address.clone(),
            redirect_port: freedom.redirect.port,
            domain_strategy: strategy(freedom.domain_strategy),
            proxy_protocol: freedom.proxy_protocol.value,
            final_rules: freedom.final_rules.iter().map(final_rule).collect(),
        }),
        config::OutboundProtocol::Blackhole(response) => OutboundProtocol::Blackhole {
            http: *response == BlackholeResponse::Http,
        },
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
            network: network(place, stream)?,
            tls: stream.tls.as_deref().map(|tls| client_tls(place, tls)).transpose()?,
            socket: socket(place, stream)?,
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
