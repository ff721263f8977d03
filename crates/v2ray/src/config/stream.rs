//! `streamSettings`: what carries the proxy protocol.

mod download;

use super::context::Cx;
use super::reality::{Reality, UnreadReality};
use super::sockopt::{DomainStrategy, Sockopt};
use super::table::{Decode, FromKeys};
use super::tls::{Pem, Tls, UnreadTls, check_certificates};
use super::transport::{SecurityName, StreamSettings, Transport, UnreadDownload};
use crate::json::Value;
use crate::problem::Position;

pub use download::Download;

/// What carries the proxy protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The transport.
    pub transport: Transport,
    /// TLS, if it is used.
    pub tls: Option<Box<Tls>>,
    /// REALITY, if it is used: of the side that the stream belongs to.
    pub reality: Option<Reality>,
    /// Require the PROXY protocol at the begin of each connection.
    pub accept_proxy_protocol: bool,
    /// Where a client of XHTTP asks for what comes down, if not where it sends what goes up.
    pub download: Option<Box<Download>>,
    /// Options of the sockets.
    pub sockopt: Sockopt,
    /// Where it is configured.
    pub at: Position,
}

impl Stream {
    /// Whether nothing stands between the socket and the protocol.
    pub(crate) fn is_bare(&self) -> bool {
        !self.is_sealed() && self.transport == Transport::Raw
    }

    /// Whether TLS or REALITY protects it.
    pub(crate) fn is_sealed(&self) -> bool {
        self.tls.is_some() || self.reality.is_some()
    }

    /// Whether a private key stands in it, rather than in a file of its own.
    pub(crate) fn has_keys(&self) -> bool {
        if matches!(self.reality, Some(Reality::Server(_))) {
            return true;
        }
        let certificates = self.tls.iter().flat_map(|tls| &tls.certificates);
        certificates
            .into_iter()
            .any(|one| matches!(one.key, Some(Pem::Inline(_))))
    }
}

impl FromKeys for Stream {
    type Keys = StreamSettings;

    fn from_keys(mut s: StreamSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        // Each part is read whatever became of the others, so that all problems are found at once.
        let security = s.security.0.map(|security| security.value);
        let tls = match (security, s.tls.take()) {
            (Some(SecurityName::Tls), given) => {
                let given = given.map_or_else(|| Value::empty_object(at), |UnreadTls(given)| given);
                let tls = cx.within("tlsSettings", |cx| Tls::decode(given, cx));
                tls.map(|tls| Some(Box::new(tls)))
            }
            _ => Some(None),
        };
        let reality = match (security, s.reality.take()) {
            (Some(SecurityName::Reality), given) => {
                let given = given.map_or_else(|| Value::empty_object(at), |UnreadReality(given)| given);
                let reality = cx.within("realitySettings", |cx| Reality::decode(given, cx));
                reality.map(Some)
            }
            _ => Some(None),
        };
        let transport = s.transport(cx);
        if let (Some(security), Some((Transport::WebSocket(_) | Transport::HttpUpgrade(_) | Transport::RawHttp(_), _))) =
            (s.security.0, &transport)
            && security.value == SecurityName::Reality
        {
            let hint = "write raw, grpc, http or xhttp as `network`, on both ends";
            cx.error_in(
                "security",
                security.at,
                "REALITY carries raw, grpc, http and xhttp only",
                hint,
            );
            return None;
        }
        if let (Some((Transport::Xhttp(_), _)), Some(Some(tls))) = (&transport, &tls)
            && tls.alpn == ["h3"]
        {
            let hint = "write \"h2\" and \"http/1.1\" as `alpn`, on both ends";
            cx.within("tlsSettings", |cx| {
                cx.within("alpn", |cx| cx.later_but(at, "HTTP/3 (`alpn` \"h3\")", hint));
            });
            return None;
        }
        let (sockopt, tls, reality, (mut transport, accepts)) = (s.sockopt.0?, tls?, reality?, transport?);
        let unread = match &mut transport {
            Transport::Xhttp(xhttp) => xhttp.download.take(),
            _ => None,
        };
        let download = match unread {
            None => None,
            Some(UnreadDownload(value)) => Some(cx.within("xhttpSettings", |cx| {
                cx.within("downloadSettings", |cx| Download::read(value, cx))
            })?),
        };
        s.security.0?;
        s.final_mask.0?;
        Some(Stream {
            transport,
            tls,
            reality,
            download,
            accept_proxy_protocol: accepts || sockopt.accept_proxy_protocol,
            sockopt,
            at,
        })
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
            cx.within(object, |cx| cx.warn_in(key, at, text, hint));
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
        if let (true, Some(other)) = (listens, &sockopt.dialer_proxy) {
            no_effect("sockopt", "dialerProxy", other.at);
        }
        if listens && sockopt.penetrate.value {
            no_effect("sockopt", "penetrate", sockopt.penetrate.at);
        }
        if !listens && sockopt.v6_only.value {
            no_effect("sockopt", "V6Only", sockopt.v6_only.at);
        }
        if !listens && stream.accept_proxy_protocol {
            let text = "`acceptProxyProtocol` has no effect on an outbound";
            cx.warn(stream.at, text, "it belongs to the inbound at the other end");
        }
        let trusted = &sockopt.trusted_x_forwarded_for;
        if !trusted.is_empty() && (!listens || matches!(stream.transport, Transport::Raw | Transport::RawHttp(_))) {
            let text =
                "only inbounds over ws, httpupgrade, grpc, http or xhttp have requests with such headers; it has no effect here";
            let at = trusted.at;
            let hint = "it belongs to an inbound over ws, httpupgrade, grpc, http or xhttp";
            cx.within("sockopt", |cx| cx.warn_in("trustedXForwardedFor", at, text, hint));
        }
        if !listens && !stream.is_sealed() && matches!(stream.transport, Transport::Http(_)) {
            let hint = "write tls here; the server has it itself, or another one in front of it";
            cx.error_in("security", stream.at, "the transport http of an outbound needs tls or reality", hint);
        }
        if listens && let Some(tls) = &stream.tls {
            check_certificates(tls, stream.at, cx);
        }
    });
}
