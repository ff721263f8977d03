//! TLS, transports and sockets.

use std::time::Duration;

use sealway_v2ray::config::{self, CertificateUsage, EarlyData, Stream, TlsVersion, Tproxy, Transport};
use sealway_v2ray::xhttp::settings::Mode;

use crate::settings::*;

pub(super) fn kind(stream: &Stream) -> TransportKind {
    let (upgrade, ws) = match &stream.transport {
        Transport::Grpc(settings) => return TransportKind::Grpc(grpc(settings, stream)),
        Transport::Http(settings) => return TransportKind::Http(http(settings, stream)),
        Transport::Raw => return TransportKind::Raw,
        Transport::RawHttp(front) => return TransportKind::RawHttp((**front).clone()),
        Transport::WebSocket(upgrade) => (upgrade, true),
        Transport::HttpUpgrade(upgrade) => (upgrade, false),
        Transport::Xhttp(settings) => return TransportKind::Xhttp(Box::new(xhttp(stream, settings))),
    };
    let (early_data, early_data_header) = match &upgrade.early_data {
        None => (0, sealway_v2ray::ws::early::PROTOCOL_HEADER.into()),
        Some(EarlyData::Whole { limit }) => (*limit as usize, sealway_v2ray::ws::early::PROTOCOL_HEADER.into()),
        Some(EarlyData::Split { limit, header }) => (*limit as usize, header.clone().unwrap_or_default()),
    };
    let http = Upgrade {
        path: upgrade.path.clone(),
        host: upgrade.host.clone().unwrap_or_default(),
        headers: upgrade.headers.clone().into_iter().collect(),
        early_data,
        early_data_header,
        trusted_forwarded_for: trusted(stream, false),
    };
    match ws {
        true => TransportKind::WebSocket(http),
        false => TransportKind::HttpUpgrade(http),
    }
}

fn xhttp(stream: &Stream, settings: &config::Xhttp) -> Xhttp {
    let download = stream.download.as_ref().map(|download| XhttpDownload {
        server: (download.address.clone(), download.port),
        transport: client(&download.stream),
    });
    let mut http = settings.settings.clone();
    if matches!(stream.reality, Some(config::Reality::Client(_))) && http.mode == Mode::Auto {
        // No CDN is on the way of REALITY.
        http.mode = if download.is_some() {
            Mode::StreamUp
        } else {
            Mode::StreamOne
        };
    }
    Xhttp {
        http,
        // REALITY agrees on no application protocol: both ends take it for granted.
        http2: stream.reality.is_some() || stream.tls.as_ref().is_some_and(|tls| tls.alpn != ["http/1.1"]),
        trusted_forwarded_for: trusted(stream, false),
        download,
    }
}

/// Headers whose presence says that X-Forwarded-For is to be believed. `always`: its own is enough.
fn trusted(stream: &Stream, always: bool) -> Vec<String> {
    let names = stream.sockopt.trusted_x_forwarded_for.iter();
    names
        .chain(always.then_some("X-Forwarded-For"))
        .map(str::to_owned)
        .collect()
}

fn grpc(settings: &config::Grpc, stream: &Stream) -> Grpc {
    Grpc {
        service_name: settings.service_name.clone(),
        authority: settings.authority.clone().unwrap_or_default(),
        multi_mode: settings.multi_mode,
        idle: settings.idle,
        answer: settings.answer,
        without_streams: settings.without_streams,
        window: settings.window,
        user_agent: user_agent(settings.user_agent.as_deref().unwrap_or("chrome")).to_owned(),
        trusted_forwarded_for: trusted(stream, settings.parse_forwarded_for),
    }
}

fn http(settings: &config::Http, stream: &Stream) -> Http {
    Http {
        trusted_forwarded_for: trusted(stream, settings.parse_forwarded_for),
        http: settings.clone(),
    }
}

/// What a program says it is, by its name; any other text as it is.
fn user_agent(name: &str) -> &str {
    match name {
        "chrome" => {
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
        }
        "edge" => {
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 \
             Edg/142.0.0.0"
        }
        "firefox" => "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
        "golang" => "Go-http-client/2.0",
        other => other,
    }
}

/// What carries an outbound's protocol.
pub(super) fn client(stream: &Stream) -> ClientTransport {
    let mut kind = kind(stream);
    let socket = socket(stream);
    let through = stream.sockopt.dialer_proxy.as_ref().map(|other| Through {
        outbound: other.value.clone(),
        resolves: stream.sockopt.domain_strategy.value != config::DomainStrategy::AsIs,
    });
    if let TransportKind::Xhttp(xhttp) = &mut kind
        && let (Some(download), true) = (&mut xhttp.download, stream.sockopt.penetrate.value)
    {
        download.transport.socket = socket.clone();
        download.transport.through = through.clone();
    }
    ClientTransport {
        kind,
        tls: stream.tls.as_deref().map(|tls| client_tls(stream, tls)),
        reality: match &stream.reality {
            Some(config::Reality::Client(reality)) => Some(reality.clone()),
            _ => None,
        },
        socket,
        through,
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

/// The protocols to offer. Where nothing but HTTP/2 is spoken, it is always one of them.
fn alpn(stream: &Stream, tls: &config::Tls) -> Vec<String> {
    let http2 = matches!(stream.transport, Transport::Grpc(_) | Transport::Http(_));
    let usual: &[&str] = match stream.transport {
        Transport::Raw | Transport::RawHttp(_) | Transport::Xhttp(_) => &["h2", "http/1.1"],
        _ if http2 => &["h2"],
        // An upgrade is a matter of HTTP/1.1.
        _ => &["http/1.1"],
    };
    let mut named = tls.alpn.clone();
    if named.is_empty() {
        named.extend(usual.iter().map(|name| (*name).to_owned()));
    } else if http2 && !named.iter().any(|name| name == "h2") {
        named.push("h2".to_owned());
    }
    named
}

/// Certificates this end shows, and their places in the list.
fn own(tls: &config::Tls) -> (Vec<Certificate>, Vec<usize>) {
    let listed = tls.certificates.iter().enumerate();
    let own = listed.filter(|(_, one)| one.usage == CertificateUsage::Encipherment);
    own.filter_map(|(at, one)| {
        let certificate = Certificate {
            certificate: one.certificate.clone(),
            key: one.key.clone()?,
            once: one.reload.is_none(),
        };
        Some((certificate, at))
    })
    .unzip()
}

/// Authorities for the other end's certificate.
fn authorities(tls: &config::Tls, usage: CertificateUsage) -> Vec<Pem> {
    let listed = tls.certificates.iter().filter(|one| one.usage == usage);
    listed.map(|one| one.certificate.clone()).collect()
}

pub(super) fn server_tls(stream: &Stream, tls: &config::Tls) -> ServerTls {
    let (certificates, entries) = own(tls);
    ServerTls {
        certificates,
        entries,
        alpn: alpn(stream, tls),
        versions: versions(tls),
        cipher_suites: tls.cipher_suites.clone(),
        groups: tls.curves.clone(),
        key_log: tls.key_log.clone(),
        reject_unknown_sni: tls.reject_unknown_sni,
        resumption: tls.session_resumption,
        reload: tls.certificates.iter().filter_map(|one| one.reload).min(),
        client_authorities: match tls.verify_client {
            true => authorities(tls, CertificateUsage::VerifyClient),
            false => Vec::new(),
        },
    }
}

fn client_tls(stream: &Stream, tls: &config::Tls) -> ClientTls {
    let (certificates, entries) = own(tls);
    ClientTls {
        server_name: tls.server_name.clone().unwrap_or_default(),
        alpn: alpn(stream, tls),
        versions: versions(tls),
        cipher_suites: tls.cipher_suites.clone(),
        groups: tls.curves.clone(),
        key_log: tls.key_log.clone(),
        allow_insecure: tls.allow_insecure,
        pinned: tls.pinned_certificates.clone(),
        pinned_chains: tls.pinned_chains.clone(),
        pinned_keys: tls.pinned_public_keys.clone(),
        verify_names: tls.verify_names.clone(),
        authorities: authorities(tls, CertificateUsage::Verify),
        no_system_roots: tls.disable_system_root,
        certificates,
        entries,
        resumption: tls.session_resumption,
    }
}

pub(super) fn strategy(strategy: config::DomainStrategy) -> DomainStrategy {
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
    let ask = strategy != From::AsIs;
    DomainStrategy { families, force, ask }
}

pub(super) fn socket(stream: &Stream) -> SocketOptions {
    let sockopt = &stream.sockopt;
    let seconds = |value: i32| {
        u64::try_from(value)
            .ok()
            .filter(|&value| value > 0)
            .map(Duration::from_secs)
    };
    let number = |value: u32| (value > 0).then_some(value);
    SocketOptions {
        mark: u32::try_from(sockopt.mark).ok().and_then(number),
        transparent: match sockopt.tproxy {
            Tproxy::Off => Transparent::No,
            _ => Transparent::Yes,
        },
        takes_up_datagrams: false,
        interface: Some(sockopt.interface.clone()).filter(|name| !name.is_empty()),
        keep_alive_idle: seconds(sockopt.tcp_keep_alive_idle),
        keep_alive_interval: seconds(sockopt.tcp_keep_alive_interval),
        no_keep_alive: sockopt.tcp_keep_alive_idle < 0 || sockopt.tcp_keep_alive_interval < 0,
        user_timeout: number(sockopt.tcp_user_timeout).map(|ms| Duration::from_millis(ms.into())),
        congestion: Some(sockopt.tcp_congestion.clone()).filter(|name| !name.is_empty()),
        max_segment: number(sockopt.tcp_max_seg),
        receive_buffer: number(sockopt.rx_buf_size),
        send_buffer: number(sockopt.tx_buf_size),
        multipath: sockopt.tcp_mptcp,
        v6_only: sockopt.v6_only.value,
        domain_strategy: strategy(sockopt.domain_strategy.value),
    }
}
