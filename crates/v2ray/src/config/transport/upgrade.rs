//! `streamSettings`: what carries the proxy protocol.

use percent_encoding::percent_decode_str;

use super::context::{Cx, quoted};
use super::json::Value;
use super::problem::{At, Position};
use super::scalar::Part;
use super::sockopt::{DomainStrategy, Sockopt};
use super::table::{Decode, Kind, object, words};
use super::tls::{Headers, Pem, Tls};

words! {
    /// The transports.
    pub(crate) enum TransportName {
        /// Bytes as they are.
        Raw = "raw" | "tcp" | "";
        /// WebSocket (RFC 6455).
        WebSocket = "ws" | "websocket";
        /// An HTTP upgrade, and bytes as they are after it.
        HttpUpgrade = "httpupgrade";
    }
    other {
        LaterError "grpc": "the transport grpc";
        LaterError "gun": "the transport grpc";
        LaterError "xhttp": "the transport xhttp";
        LaterError "splithttp": "the transport xhttp";
        LaterError "kcp": "the transport mkcp";
        LaterError "mkcp": "the transport mkcp";
        LaterError "hysteria": "the transport hysteria";
        Gone "h2": "write grpc or xhttp on both ends";
        Gone "http": "write grpc or xhttp on both ends";
        Gone "quic": "write raw or ws on both ends, with tls, which quic always had";
        Gone "domainsocket": "write raw, and a path as the inbound's `listen`";
        Gone "ds": "write raw, and a path as the inbound's `listen`";
    }
}

words! {
    /// The security layers.
    pub(crate) enum SecurityName {
        /// None.
        None = "none" | "";
        /// TLS.
        Tls = "tls";
    }
    other {
        LaterError "reality": "REALITY";
        Gone "xtls": "write tls, and \"xtls-rprx-vision\" as the users' `flow`";
    }
}

words! {
    /// What raw connections begin with.
    pub(crate) enum HeaderName {
        /// Nothing.
        None = "none" | "";
    }
    other {
        LaterError "http": "the header type http (a made-up HTTP request before the first bytes)";
    }
}

object! {
    /// What raw connections begin with.
    pub(crate) struct RawHeader: "rawSettings.header" {
        /// The kind of header.
        kind: HeaderName = "type", default "\"none\"";
    }
    other {
        Accepted "request": "Only the header type http has it.";
        Accepted "response": "Only the header type http has it.";
    }
}

object! {
    /// Bytes as they are.
    pub(crate) struct RawSettings: "streamSettings.rawSettings" {
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// What connections begin with.
        header: RawHeader = "header", default "{}";
    }
}

object! {
    /// WebSocket.
    pub(crate) struct WsSettings: "streamSettings.wsSettings" {
        /// The path of the request. `?ed=N` at its end sends up to N bytes of early data inside the request.
        path: At<String> = "path", default "\"/\"";
        /// The Host header: sent by clients, and required of them by servers if it is not empty.
        host: String = "host";
        /// More headers of the request.
        headers: Headers = "headers";
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// Most bytes of early data in the older style, in the header or path that `earlyDataHeaderName` says.
        max_early_data: u32 = "maxEarlyData", default "0";
        /// The header for early data in the older style. Empty: behind the path.
        early_data_header: String = "earlyDataHeaderName";
    }
    other {
        LaterWarning "heartbeatPeriod": "pings (`heartbeatPeriod`)";
        LaterError "useBrowserForwarding": "connections made by a browser (`useBrowserForwarding`)";
    }
}

object! {
    /// An HTTP upgrade, and bytes as they are after it.
    pub(crate) struct HttpUpgradeSettings: "streamSettings.httpupgradeSettings" {
        /// The path of the request. `?ed=N` at its end is taken and has no effect.
        path: At<String> = "path", default "\"/\"";
        /// The Host header: sent by clients, and required of them by servers if it is not empty.
        host: String = "host";
        /// More headers of the request.
        headers: Headers = "headers";
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// Most bytes of early data in the older style, in the header or path that `earlyDataHeaderName` says.
        max_early_data: u32 = "maxEarlyData", default "0";
        /// The header for early data in the older style. Empty: behind the path.
        early_data_header: String = "earlyDataHeaderName";
    }
    other {
        LaterError "header": "a list of headers; write `headers` with names and values";
    }
}

object! {
    /// What carries the proxy protocol, and how it is protected.
    pub(crate) struct StreamSettings: "streamSettings" {
        /// The transport.
        network: Part<TransportName> = "network" | "method", default "\"raw\"";
        /// The security layer.
        security: Part<SecurityName> = "security", default "\"none\"";
        /// For the security layer tls.
        tls: Option<Value> = "tlsSettings";
        /// For the transport raw.
        raw: Part<RawSettings> = "rawSettings" | "tcpSettings", default "{}";
        /// For the transport ws.
        ws: Part<WsSettings> = "wsSettings", default "{}";
        /// For the transport httpupgrade.
        http_upgrade: Part<HttpUpgradeSettings> = "httpupgradeSettings", default "{}";
        /// Options of the sockets.
        sockopt: Part<Sockopt> = "sockopt", default "{}";
    }
    other {
        Accepted "realitySettings": "Only the security layer reality has them, which is not supported yet.";
        Accepted "grpcSettings": "Only the transport grpc has them, which is not supported yet.";
        Accepted "gunSettings": "Only the transport grpc has them, which is not supported yet.";
        Accepted "xhttpSettings": "Only the transport xhttp has them, which is not supported yet.";
        Accepted "splithttpSettings": "Only the transport xhttp has them, which is not supported yet.";
        Accepted "kcpSettings": "Only the transport mkcp has them, which is not supported yet.";
        Accepted "hysteriaSettings": "Only the transport hysteria has them, which is not supported yet.";
        Accepted "httpSettings": "The transport h2 is obsolete.";
        Accepted "quicSettings": "The transport quic is obsolete.";
        Accepted "dsSettings": "The transport domainsocket is obsolete.";
        LaterError "finalmask": "`finalmask`";
        Gone "xtlsSettings": "write `tlsSettings`, and \"xtls-rprx-vision\" as the users' `flow`";
    }
}

/// How the first bytes of a client travel inside the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EarlyData {
    /// `?ed=N`. WebSocket: a first payload of at most `limit` bytes goes into `Sec-WebSocket-Protocol` as a whole, a
    /// longer one does not at all. HTTPUpgrade: for writing payload without waiting for the answer, which not every server
    /// can take.
    Whole {
        /// Bytes.
        limit: u32,
    },
    /// `maxEarlyData`: the first `limit` bytes go into this header, or behind the path, and the rest follows in frames.
    Split {
        /// Bytes.
        limit: u32,
        /// The header. `None`: behind the path.
        header: Option<String>,
    },
}

/// A request that WebSocket or HTTPUpgrade begins with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Upgrade {
    /// The path. It begins with a slash and has no `ed` in its query.
    pub path: String,
    /// The Host header, if one is set.
    pub host: Option<String>,
    /// More headers, without Host.
    pub headers: Headers,
    /// How the first bytes travel, if early.
    pub early_data: Option<EarlyData>,
}

/// A transport.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Transport {
    /// Bytes as they are.
    Raw,
    /// WebSocket.
    WebSocket(Upgrade),
    /// An HTTP upgrade.
    HttpUpgrade(Upgrade),
}

/// What carries the proxy protocol.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stream {
    /// The transport.
    pub transport: Transport,
    /// TLS, if it is used.
    pub tls: Option<Box<Tls>>,
    /// Require the PROXY protocol at the begin of each connection.
    pub accept_proxy_protocol: bool,
    /// Options of the sockets.
    pub sockopt: Sockopt,
    /// Where it is configured.
    pub at: Position,
}

impl Stream {
    /// Whether a private key stands in it, rather than in a file of its own.
    pub(crate) fn has_keys(&self) -> bool {
        let certificates = self.tls.iter().flat_map(|tls| &tls.certificates);
        certificates
            .into_iter()
            .any(|one| matches!(one.key, Some(Pem::Inline(_))))
    }
}

impl Decode for Stream {
    fn kind() -> Kind {
        Kind::Object(StreamSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = StreamSettings::decode(value, cx)?;
        // Each part is read whatever became of the others, so that all problems are found at once.
        let tls = match (s.security.0, s.tls) {
            (Some(SecurityName::None) | None, _) => Some(None),
            (Some(SecurityName::Tls), given) => {
                let empty = || Value {
                    at,
                    data: super::json::Data::Object(Vec::new()),
                };
                let given = given.unwrap_or_else(empty);
                let tls = cx.within("tlsSettings", |cx| Tls::decode(given, cx));
                tls.map(|tls| Some(Box::new(tls)))
            }
        };
        let transport = match s.network.0 {
            Some(TransportName::Raw) => s.raw.0.map(|raw| (Transport::Raw, raw.accept_proxy_protocol)),
            Some(TransportName::WebSocket) => s.ws.0.and_then(|ws| {
                let older = (ws.max_early_data, ws.early_data_header);
                let upgrade = cx.within("wsSettings", |cx| upgrade(ws.path, ws.host, ws.headers, older, cx))?;
                Some((Transport::WebSocket(upgrade), ws.accept_proxy_protocol))
            }),
            Some(TransportName::HttpUpgrade) => s.http_upgrade.0.and_then(|http| {
                let older = (http.max_early_data, http.early_data_header);
                let name = "httpupgradeSettings";
                let upgrade = cx.within(name, |cx| upgrade(http.path, http.host, http.headers, older, cx))?;
                Some((Transport::HttpUpgrade(upgrade), http.accept_proxy_protocol))
            }),
            None => None,
        };
        let (sockopt, tls, (transport, accepts)) = (s.sockopt.0?, tls?, transport?);
        s.security.0?;
        Some(Stream {
            transport,
            tls,
            accept_proxy_protocol: accepts || sockopt.accept_proxy_protocol,
            sockopt,
            at,
        })
    }
}

/// Most early data either side takes, bytes.
const MAX_EARLY_DATA: u32 = 8192;

fn upgrade(
    path: At<String>,
    mut host: String,
    mut headers: Headers,
    older: (u32, String),
    cx: &mut Cx<'_>,
) -> Option<Upgrade> {
    let (text, ed) = split_early_data(&path);
    let wrong = text.chars().find(|c| c.is_control() || *c == ' ' || *c == '#');
    if let Some(c) = wrong {
        let text = format!("{} holds {c:?}, which no path may", quoted(&path));
        cx.within("path", |cx| cx.error(path.at, text, "write it percent-encoded"));
        return None;
    }
    // An old place of the host.
    if let Some(name) = headers.keys().find(|name| name.eq_ignore_ascii_case("host")).cloned() {
        let value = headers.remove(&name).unwrap_or_default();
        if host.is_empty() {
            host = value;
        }
    }
    for (name, value) in &headers {
        if !is_header(name, value) {
            let text = format!("{} is no header a request could have", quoted(name));
            cx.within("headers", |cx| cx.error(path.at, text, ""));
            return None;
        }
    }
    if host.chars().any(|c| c.is_control() || c == ' ') {
        let text = format!("{} is no Host header", quoted(&host));
        cx.within("host", |cx| cx.error(path.at, text, ""));
        return None;
    }
    let (limit, header) = older;
    let early_data = match (ed, limit) {
        (0, 0) => None,
        (0, limit) => Some(EarlyData::Split {
            limit,
            header: (!header.is_empty()).then_some(header),
        }),
        (limit, _) => Some(EarlyData::Whole { limit }),
    };
    if ed.max(limit) > MAX_EARLY_DATA {
        let text = format!(
            "at most {MAX_EARLY_DATA} bytes of early data fit into a request, not {}",
            ed.max(limit)
        );
        let key = if ed > 0 { "path" } else { "maxEarlyData" };
        cx.within(key, |cx| {
            cx.error(path.at, text, "2560 is what other programs recommend")
        });
        return None;
    }
    let path = if text.starts_with('/') {
        text
    } else {
        format!("/{text}")
    };
    Some(Upgrade {
        path,
        host: (!host.is_empty()).then_some(host),
        headers,
        early_data,
    })
}

/// Whether a request may have this header (RFC 9110 section 5).
pub(crate) fn is_header(name: &str, value: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token) && !value.chars().any(char::is_control)
}

/// Takes `ed=N` out of the query of a path.
fn split_early_data(path: &str) -> (String, u32) {
    let Some((before, query)) = path.split_once('?') else {
        return (path.to_owned(), 0);
    };
    let mut ed = 0;
    let mut rest: Vec<&str> = Vec::new();
    for pair in query.split('&') {
        match pair
            .strip_prefix("ed=")
            .map(|n| percent_decode_str(n).decode_utf8_lossy().parse())
        {
            Some(Ok(n)) => ed = n,
            _ => rest.push(pair),
        }
    }
    match rest.join("&") {
        rest if rest.is_empty() && ed > 0 => (before.to_owned(), ed),
        _ if ed == 0 => (path.to_owned(), 0),
        rest => (format!("{before}?{rest}"), ed),
    }
}

/// What is wrong about a stream for one side only.
pub(crate) fn check_side(stream: &Stream, listens: bool, cx: &mut Cx<'_>) {
    cx.within("streamSettings", |cx| {
        let side = if listens { "an inbound" } else { "an outbound" };
        let mut no_effect = |object: &str, key: &str, at: Position| {
            let text = format!("`{key}` has no effect on {side}");
            // It may be meant to protect, so it is not for us to say that it can go.
            let hint = if listens {
                "it belongs to the outbound at the other end"
            } else {
                "it belongs to the inbound at the other end"
            };
            cx.within(object, |cx| cx.within(key, |cx| cx.warn(at, text, hint)));
        };
        let sockopt = &stream.sockopt;
        if let Some(tls) = &stream.tls {
            let wrong = if listens { &tls.of_clients } else { &tls.of_servers };
            for (key, at) in wrong {
                no_effect("tlsSettings", key, *at);
            }
        }
        if listens && sockopt.domain_strategy.value != DomainStrategy::AsIs {
            no_effect("sockopt", "domainStrategy", sockopt.domain_strategy.at);
        }
        if !listens && sockopt.v6_only.value {
            no_effect("sockopt", "V6Only", sockopt.v6_only.at);
        }
        if !listens && stream.accept_proxy_protocol {
            let text = "`acceptProxyProtocol` has no effect on an outbound";
            cx.warn(stream.at, text, "it belongs to the inbound at the other end");
        }
        let trusted = &sockopt.trusted_x_forwarded_for;
        if !trusted.is_empty() && (!listens || stream.transport == Transport::Raw) {
            let text = "only inbounds over ws or httpupgrade have requests with such headers; it has no effect here";
            let at = trusted.at;
            cx.within("sockopt", |cx| {
                cx.within("trustedXForwardedFor", |cx| {
                    cx.warn(at, text, "it belongs to an inbound over ws or httpupgrade")
                });
            });
        }
        if listens && let Some(tls) = &stream.tls {
            super::tls::check_certificates(tls, stream.at, cx);
        }
    });
}
