//! gRPC: each stream is a call of a method whose messages hold its bytes.
//!
//! Many streams share a connection, in both roles. What lies under them is [`http2`]; what is here are calls, their messages
//! and the connections that a client keeps.

mod call;
mod pool;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri};
use sealway_v2ray::Address;
use sealway_v2ray::gun::{Call, Kind, Names};

use super::http2::{Exchange, Options, Pings, STREAM_WINDOW, Server};
use super::{Accepted, Arrival, Dial, Line, Many, Remote, Transport};
use crate::error::{Error, Pending};
use crate::settings;
use crate::stats::Traffic;
use crate::stream::Stream;

use call::{Messages, broken};
use pool::Pool;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Connections that are tried for one stream.
const ATTEMPTS: usize = 3;

/// The status of a method that nobody has.
const UNIMPLEMENTED: u16 = 12;
/// The status of a request that is none of gRPC.
const INTERNAL: u16 = 13;

/// The transport, for either side.
pub(super) struct Grpc {
    settings: Arc<settings::Grpc>,
    names: Arc<Names>,
    pool: Pool,
}

impl Grpc {
    pub(super) fn new(settings: settings::Grpc) -> Self {
        let pings = Pings {
            idle: settings.idle,
            answer: settings.answer,
            without_streams: settings.without_streams,
        };
        Grpc {
            names: Arc::new(Names::new(&settings.service_name)),
            pool: Pool::new(options(&settings), pings),
            settings: Arc::new(settings),
        }
    }

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

    async fn call(&self, line: &Arc<Line>, remote: &Remote, traffic: Traffic) -> Result<Stream, Error> {
        let kind = match self.settings.multi_mode {
            true => Kind::MultiHunk,
            false => Kind::Hunk,
        };
        let request = self.request(line, &remote.name, kind).map_err(|error| {
            let what = format!("no request can be made of these: {error}");
            Error::config("streamSettings.grpcSettings", what)
        })?;
        let mut left = ATTEMPTS;
        loop {
            let connection = self.pool.take(line, remote, traffic.clone()).await?;
            let asked = connection.request(request.clone(), Box::new(check_head), Some(check_status));
            left -= 1;
            match asked.await {
                Ok(body) => return Ok(Stream::new(Box::new(Messages::client(body, kind)), Traffic::default())),
                Err(error) if left == 0 => return Err(error),
                // The connection has ended meanwhile, or the server wants it to: another one takes its place.
                Err(_) => {}
            }
        }
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
        Box::pin(async move {
            let Accepted {
                stream,
                source,
                local,
                forwarded,
                agreed,
            } = accepted;
            let server = Server::begin(stream, options(&self.settings)).await?;
            let like = move |stream| Accepted {
                stream,
                source,
                local,
                forwarded,
                agreed: agreed.clone(),
            };
            Ok(Arrival::Many(Box::new(Calls {
                server,
                names: Arc::clone(&self.names),
                settings: Arc::clone(&self.settings),
                like: Box::new(like),
            })))
        })
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move { Ok((self.call(dial.line, dial.remote, dial.traffic).await?, 0)) })
    }
}

/// The calls of a client's connection.
struct Calls {
    server: Server,
    names: Arc<Names>,
    settings: Arc<settings::Grpc>,
    /// An arrival like that of the connection, over another stream.
    like: Box<dyn Fn(Stream) -> Accepted + Send>,
}

impl Many for Calls {
    fn next(&mut self) -> Pending<'_, Option<Accepted>> {
        Box::pin(async move {
            loop {
                let Some(exchange) = self.server.next().await? else {
                    return Ok(None);
                };
                match kind(&exchange.request, &self.names) {
                    Ok(kind) => return Ok(Some(self.begin(exchange, kind))),
                    Err((status, code)) => exchange.refuse(refusal(status, code)),
                }
            }
        })
    }
}

impl Calls {
    fn begin(&self, exchange: Exchange, kind: Kind) -> Accepted {
        let client = client_address(&exchange.request.headers, &self.settings.trusted_forwarded_for);
        let mut head = Response::new(());
        head.headers_mut().insert(CONTENT_TYPE, GRPC);
        let mut trailers = HeaderMap::with_capacity(2);
        trailers.insert(STATUS, 0.into());
        trailers.insert(MESSAGE, HeaderValue::from_static(""));
        let body = exchange.accept(head, Some(trailers));
        let stream = Stream::new(Box::new(Messages::server(body, kind)), Traffic::default());
        let mut accepted = (self.like)(stream);
        accepted.forwarded_for(client);
        accepted
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

/// The client's address, as a server in front tells it, if one of `trusted` is present.
fn client_address(headers: &HeaderMap, trusted: &[String]) -> Option<IpAddr> {
    if !trusted.iter().any(|name| headers.contains_key(name.as_str())) {
        return None;
    }
    let first = headers.get("x-forwarded-for")?.to_str().ok()?;
    first.split(',').next()?.trim().parse().ok()
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
