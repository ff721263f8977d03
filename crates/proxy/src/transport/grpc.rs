//! gRPC: each stream is a call of a method whose messages hold its bytes.
//!
//! Many streams share a connection, in both roles. What lies under them is [`http2`](super::http2); what is here are calls and their
//! messages.

mod call;

use std::io;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use sealway_v2ray::Address;
use sealway_v2ray::gun::{Call, Kind, Names};

use super::http2::{Exchange, Options, Pings, STREAM_WINDOW};
use super::requests::{self, Pool, Requests};
use super::{Accepted, Arrival, Dial, Line, Transport};
use crate::error::{Error, Pending};
use crate::settings;
use crate::stats::Traffic;
use crate::stream::Stream;

use call::{Messages, broken};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The status of a method that nobody has.
const UNIMPLEMENTED: u16 = 12;
/// The status of a request that is none of gRPC.
const INTERNAL: u16 = 13;

/// The transport, for either side.
pub(super) struct Grpc {
    service: Arc<Service>,
    pool: Pool,
}

/// What takes calls, or is called.
struct Service {
    settings: settings::Grpc,
    names: Names,
}

impl Grpc {
    pub(super) fn new(settings: settings::Grpc) -> Self {
        let pings = Pings {
            idle: settings.idle,
            answer: settings.answer,
            without_streams: settings.without_streams,
        };
        Grpc {
            pool: Pool::new(options(&settings), pings),
            service: Arc::new(Service {
                names: Names::new(&settings.service_name),
                settings,
            }),
        }
    }

    async fn call(&self, dial: Dial<'_>) -> Result<Stream, Error> {
        let kind = match self.service.settings.multi_mode {
            true => Kind::MultiHunk,
            false => Kind::Hunk,
        };
        let request = self
            .service
            .request(dial.line, &dial.remote.name, kind)
            .map_err(|error| {
                let what = format!("no request can be made of these: {error}");
                Error::config("streamSettings.grpcSettings", what)
            })?;
        let body = self.pool.request(dial, request, check_head, Some(check_status)).await?;
        Ok(Stream::new(Box::new(Messages::new(body, kind)), Traffic::default()))
    }
}

impl Service {
    /// What requests name as the server.
    fn authority(&self, line: &Line, server: &(Address, u16)) -> String {
        if !self.settings.authority.is_empty() {
            return self.settings.authority.clone();
        }
        let host = line.host(server);
        if line.asked_name().is_empty() && server.0.ip().is_some() {
            return host;
        }
        // Others name the server without its port.
        let bare = host.strip_suffix(&format!(":{}", server.1)).map(str::to_owned);
        bare.unwrap_or(host)
    }

    /// The head of a call.
    fn request(&self, line: &Line, server: &(Address, u16), kind: Kind) -> Result<Request<()>, http::Error> {
        let uri = Uri::builder()
            .scheme(if line.has_tls() { "https" } else { "http" })
            .authority(self.authority(line, server))
            .path_and_query(self.names.path(kind))
            .build()?;
        Request::post(uri)
            .header(CONTENT_TYPE, GRPC)
            .header(TE, "trailers")
            .header(USER_AGENT, &self.settings.user_agent)
            .body(())
    }
}

fn options(settings: &settings::Grpc) -> Options {
    Options {
        window: settings.window.unwrap_or(STREAM_WINDOW),
        ..Options::default()
    }
}

impl Transport for Grpc {
    fn alpn(&self) -> &'static str {
        "h2"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn accept<'a>(&'a self, accepted: Accepted) -> Pending<'a, Arrival> {
        let service = Arc::clone(&self.service);
        let options = options(&service.settings);
        Box::pin(requests::accept(service, accepted, options))
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move { Ok((self.call(dial).await?, 0)) })
    }
}

impl Requests for Service {
    fn trusted(&self) -> &[String] {
        &self.settings.trusted_forwarded_for
    }

    fn serve(&self, exchange: Exchange) -> Option<Stream> {
        let kind = match kind(&exchange.request, &self.names) {
            Ok(kind) => kind,
            Err((status, code)) => {
                exchange.refuse(refusal(status, code));
                return None;
            }
        };
        let mut head = Response::new(());
        head.headers_mut().insert(CONTENT_TYPE, GRPC);
        let mut trailers = HeaderMap::with_capacity(2);
        trailers.insert(STATUS, 0.into());
        trailers.insert(MESSAGE, HeaderValue::from_static(""));
        let body = exchange.accept(head, Some(trailers));
        Some(Stream::new(Box::new(Messages::new(body, kind)), Traffic::default()))
    }
}

/// Which method a request calls, or the statuses of HTTP and gRPC that it is refused with.
fn kind(request: &Parts, names: &Names) -> Result<Kind, (StatusCode, u16)> {
    if request.method != Method::POST {
        return Err((StatusCode::METHOD_NOT_ALLOWED, INTERNAL));
    }
    let content = request
        .headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], HeaderValue::as_bytes);
    if !is_grpc(content) {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, INTERNAL));
    }
    match names.call(request.uri.path()) {
        Call::Method(kind) => Ok(kind),
        Call::Unknown => Err((StatusCode::OK, UNIMPLEMENTED)),
    }
}

/// Whether a Content-Type is one of gRPC's.
fn is_grpc(content: &[u8]) -> bool {
    let rest = content
        .get(..GRPC.len())
        .filter(|begin| begin.eq_ignore_ascii_case(GRPC.as_bytes()))
        .map(|begin| &content[begin.len()..]);
    matches!(rest, Some([] | [b'+' | b';', ..]))
}

fn refusal(status: StatusCode, code: u16) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head.headers_mut().insert(CONTENT_TYPE, GRPC);
    head.headers_mut().insert(STATUS, code.into());
    head
}

/// What a client thinks of the head of an answer.
fn check_head(head: &Response<()>) -> io::Result<()> {
    let content = head.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if head.status() != StatusCode::OK || !is_grpc(content) {
        return Err(broken(format!(
            "the gRPC server answers with HTTP status {} and no gRPC",
            head.status().as_u16()
        )));
    }
    check_status(head.headers())
}

/// What a client thinks of the end of a call.
fn check_status(headers: &HeaderMap) -> io::Result<()> {
    let Some(status) = headers.get(STATUS) else {
        return Ok(());
    };
    match status.to_str().ok().and_then(|text| text.parse::<u16>().ok()) {
        Some(0) => Ok(()),
        Some(UNIMPLEMENTED) => Err(broken(
            "the gRPC server has no such method; compare `serviceName` on both ends",
        )),
        Some(code) => Err(broken(format!("the gRPC server answers with status {code}"))),
        None => Err(broken("the gRPC server answers with a status that is no number")),
    }
}

#[cfg(test)]
mod tests;
