//! What carries a protocol.

use sealway_proxy::settings::{
    ClientReality, ClientTls, ClientTransport, Pem, ServerReality, ServerTls, ServerTransport, SocketOptions,
    ThrottledAfter, TransportKind, Xhttp,
};
use sealway_v2ray::xhttp::settings::Mode;

use super::super::typed;
use crate::proto::TypedMessage;
use crate::proto::xray::transport::internet::reality::{self, LimitFallback};
use crate::proto::xray::transport::internet::tls::{self, certificate::Usage};
use crate::proto::xray::transport::internet::{
    SocketConfig, StreamConfig, TransportConfig, grpc, httpupgrade, splithttp, tcp, websocket,
};

const TLS: &str = "xray.transport.internet.tls.Config";
const REALITY: &str = "xray.transport.internet.reality.Config";

/// That of an inbound. `None`: nothing but TCP.
pub(super) fn server(transport: &ServerTransport, secrets: bool) -> Option<StreamConfig> {
    let security = match (&transport.tls, &transport.reality) {
        (Some(tls), _) => Some((TLS, typed(TLS, &server_tls(tls, secrets)))),
        (None, Some(reality)) => Some((REALITY, typed(REALITY, &server_reality(reality, secrets)))),
        (None, None) => None,
    };
    let proxied = transport.accept_proxy_protocol;
    stream(&transport.kind, security, &transport.socket, proxied, secrets)
}

/// That of an outbound.
pub(super) fn client(transport: &ClientTransport, secrets: bool) -> Option<StreamConfig> {
    let security = match (&transport.tls, &transport.reality) {
        (Some(tls), _) => Some((TLS, typed(TLS, &client_tls(tls)))),
        (None, Some(reality)) => Some((REALITY, typed(REALITY, &client_reality(reality, secrets)))),
        (None, None) => None,
    };
    stream(&transport.kind, security, &transport.socket, false, secrets)
}

fn stream(
    kind: &TransportKind,
    security: Option<(&str, TypedMessage)>,
    socket: &SocketOptions,
    proxied: bool,
    secrets: bool,
) -> Option<StreamConfig> {
    let (name, settings) = self::kind(kind, proxied, secrets);
    let socket = SocketConfig {
        mark: socket.mark.unwrap_or_default().cast_signed(),
        interface: socket.interface.clone().unwrap_or_default(),
        tcp_congestion: socket.congestion.clone().unwrap_or_default(),
        v6only: socket.v6_only,
        tcp_mptcp: socket.multipath,
        ..Default::default()
    };
    let plain = matches!(kind, TransportKind::Raw) && !proxied;
    if plain && security.is_none() && socket == SocketConfig::default() {
        return None;
    }
    let (kind, security) = security.map_or((String::new(), Vec::new()), |(kind, message)| {
        (kind.to_owned(), vec![message])
    });
    Some(StreamConfig {
        protocol_name: name.to_owned(),
        transport_settings: settings
            .filter(|_| !plain)
            .map(|settings| TransportConfig {
                protocol_name: name.to_owned(),
                settings: Some(settings),
            })
            .into_iter()
            .collect(),
        security_type: kind,
        security_settings: security,
        socket_settings: (socket != SocketConfig::default()).then_some(socket),
        ..Default::default()
    })
}

/// The name of a transport and its settings.
fn kind(kind: &TransportKind, accept_proxy_protocol: bool, secrets: bool) -> (&'static str, Option<TypedMessage>) {
    match kind {
        TransportKind::Raw | TransportKind::RawHttp(_) => {
            let http = matches!(kind, TransportKind::RawHttp(_));
            let config = tcp::Config {
                header_settings: http.then(|| TypedMessage {
                    r#type: "xray.transport.internet.headers.http.Config".to_owned(),
                    value: Vec::new(),
                }),
                accept_proxy_protocol,
            };
            ("tcp", Some(typed("xray.transport.internet.tcp.Config", &config)))
        }
        TransportKind::Grpc(own) => {
            let config = grpc::encoding::Config {
                authority: own.authority.clone(),
                service_name: own.service_name.clone(),
                multi_mode: own.multi_mode,
                ..Default::default()
            };
            (
                "grpc",
                Some(typed("xray.transport.internet.grpc.encoding.Config", &config)),
            )
        }
        // No program that has messages of today has one for it.
        TransportKind::Http(_) => ("http", None),
        TransportKind::WebSocket(own) => {
            let config = websocket::Config {
                host: own.host.clone(),
                path: own.path.clone(),
                header: headers(&own.headers, secrets),
                accept_proxy_protocol,
                ed: u32::try_from(own.early_data).unwrap_or(u32::MAX),
                ..Default::default()
            };
            let config = typed("xray.transport.internet.websocket.Config", &config);
            ("websocket", Some(config))
        }
        TransportKind::HttpUpgrade(own) => {
            let config = httpupgrade::Config {
                host: own.host.clone(),
                path: own.path.clone(),
                header: headers(&own.headers, secrets),
                accept_proxy_protocol,
                ..Default::default()
            };
            let config = typed("xray.transport.internet.httpupgrade.Config", &config);
            ("httpupgrade", Some(config))
        }
        TransportKind::Xhttp(own) => {
            let config = typed("xray.transport.internet.splithttp.Config", &xhttp(own, secrets));
            ("splithttp", Some(config))
        }
    }
}

/// Headers, of which one may be what somebody is let in for.
fn headers(own: &[(String, String)], secrets: bool) -> std::collections::BTreeMap<String, String> {
    let show = |value: &String| if secrets { value.clone() } else { String::new() };
    own.iter().map(|(name, value)| (name.clone(), show(value))).collect()
}

fn xhttp(own: &Xhttp, secrets: bool) -> splithttp::Config {
    let mode = match own.http.mode {
        Mode::Auto => "",
        Mode::PacketUp => "packet-up",
        Mode::StreamUp => "stream-up",
        Mode::StreamOne => "stream-one",
    };
    splithttp::Config {
        host: own.http.host.clone(),
        path: own.http.path.clone(),
        mode: mode.to_owned(),
        headers: headers(&own.http.headers, secrets),
        no_grpc_header: own.http.no_grpc_header,
        no_sse_header: own.http.no_sse_header,
        ..Default::default()
    }
}

fn pem(source: &Pem) -> (Vec<u8>, String) {
    match source {
        Pem::File(path) => (Vec::new(), path.display().to_string()),
        Pem::Inline(text) => (text.clone().into_bytes(), String::new()),
    }
}

fn server_tls(own: &ServerTls, secrets: bool) -> tls::Config {
    let shown = own.certificates.iter().map(|one| {
        let (certificate, certificate_path) = pem(&one.certificate);
        let (key, key_path) = pem(&one.key);
        let mut shown = tls::Certificate::default();
        (shown.certificate, shown.certificate_path) = (certificate, certificate_path);
        shown.key = if secrets { key } else { Vec::new() };
        (shown.key_path, shown.one_time_loading) = (key_path, one.once);
        shown
    });
    let trusted = own.client_authorities.iter().map(|one| {
        let (certificate, certificate_path) = pem(one);
        let mut shown = tls::Certificate::default();
        (shown.certificate, shown.certificate_path) = (certificate, certificate_path);
        shown.usage = Usage::AuthorityVerify.into();
        shown
    });
    tls::Config {
        certificate: shown.chain(trusted).collect(),
        next_protocol: own.alpn.clone(),
        enable_session_resumption: own.resumption,
        reject_unknown_sni: own.reject_unknown_sni,
        ..Default::default()
    }
}

fn client_tls(own: &ClientTls) -> tls::Config {
    tls::Config {
        server_name: own.server_name.clone(),
        next_protocol: own.alpn.clone(),
        allow_insecure: own.allow_insecure,
        disable_system_root: own.no_system_roots,
        enable_session_resumption: own.resumption,
        verify_peer_cert_by_name: own.verify_names.clone(),
        pinned_peer_cert_sha256: own.pinned.iter().map(|digest| digest.to_vec()).collect(),
        ..Default::default()
    }
}

fn throttle(limit: &ThrottledAfter) -> LimitFallback {
    LimitFallback {
        after_bytes: limit.after,
        bytes_per_sec: limit.rate,
        burst_bytes_per_sec: limit.burst,
    }
}

fn server_reality(own: &ServerReality, secrets: bool) -> reality::Config {
    let (r#type, dest) = super::dest(&own.target);
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let seed = own.mldsa65_seed.as_ref().filter(|_| secrets);
    let mut config = reality::Config::default();
    (config.dest, config.r#type) = (dest, r#type);
    config.xver = own.xver.into();
    config.server_names.clone_from(&own.server_names);
    config.min_client_ver = own.min_client_version.map(Vec::from).unwrap_or_default();
    config.max_client_ver = own.max_client_version.map(Vec::from).unwrap_or_default();
    config.max_time_diff = own.max_time_diff.map_or(0, millis);
    if secrets {
        config.private_key = own.private_key.0.to_vec();
        config.short_ids = own.short_ids.iter().map(|id| id.to_vec()).collect();
    }
    config.mldsa65_seed = seed.map(|seed| seed.0.to_vec()).unwrap_or_default();
    config.limit_fallback_upload = own.limit_upload.as_ref().map(throttle);
    config.limit_fallback_download = own.limit_download.as_ref().map(throttle);
    config
}

fn client_reality(own: &ClientReality, secrets: bool) -> reality::Config {
    let mut config = reality::Config::default();
    config.fingerprint.clone_from(&own.fingerprint);
    config.server_name.clone_from(&own.server_name);
    config.public_key = own.public_key.to_vec();
    if secrets {
        config.short_id = own.short_id.to_vec();
    }
    config.mldsa65_verify = own.mldsa65_verify.as_ref().map(|key| key.to_vec()).unwrap_or_default();
    config.spider_x.clone_from(&own.spider_x);
    config
}
