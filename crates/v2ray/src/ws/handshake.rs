//! The opening handshake (RFC 6455 section 4).

use base64::Engine;
use sha1::{Digest, Sha1};

use super::early;
use crate::http::client::push;
use crate::http::head::{Headers, RequestHead, parse_request, parse_response};
use crate::http::{BASE64, same_host};
use crate::{Error, Protocol, Step};

/// Longest head of either side, bytes.
pub const MAX_HEAD: usize = 8 * 1024;

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a request for another path or host.
pub const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// The answer to what is no handshake.
pub const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Where early data may stand.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Early {
    /// In `Sec-WebSocket-Protocol`, which is echoed: xray's style. A server always looks there.
    #[default]
    Protocol,
    /// In this header: v2ray's style.
    Header(String),
    /// Behind the path: v2ray's style with an empty header name.
    Path,
}

/// What a server asks of a request.
#[derive(Clone, Debug, Default)]
pub struct Server {
    /// The path, with or without leading `/`; a query in it does not count. Empty means `/`.
    pub path: String,
    /// The host, compared without case and port. `None` takes any.
    pub host: Option<String>,
    /// Where early data may stand.
    pub early: Early,
    /// If one of these headers is present, the first address in `X-Forwarded-For` is the client's. Anyone can write that
    /// header, so without a header that only the front server adds it says nothing.
    pub trusted: Vec<String>,
}

/// A server's answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// The connection is upgraded.
    Upgrade {
        /// The head to send.
        reply: Vec<u8>,
        /// Early data: the first bytes of the stream. May be empty.
        early: Vec<u8>,
        /// The client's address as a trusted front server gives it.
        client: Option<std::net::IpAddr>,
    },
    /// Send this and close.
    Refuse {
        /// The head to send.
        reply: &'static [u8],
        /// Why, for the log.
        error: Error,
    },
}

/// Reads a handshake, as the server.
pub fn accept(bytes: &[u8], server: &Server) -> Step<Answer> {
    accept_by(bytes, MAX_HEAD, Protocol::WebSocket, |head| answer(head, server))
}

/// What to send to a request that is refused, and why.
type Refusal = (&'static [u8], Error);

/// Reads a request and answers it.
pub(crate) fn accept_by(
    bytes: &[u8],
    limit: usize,
    protocol: Protocol,
    answer: impl FnOnce(&RequestHead<'_>) -> Result<Answer, Refusal>,
) -> Step<Answer> {
    let (answer, used) = match parse_request(bytes, limit, protocol) {
        Ok(Step::More(n)) => return Step::More(n),
        Ok(Step::Done { value: head, used }) => (answer(&head), used),
        Err(error) => (Err((BAD_REQUEST, error)), bytes.len()),
    };
    let value = answer.unwrap_or_else(|(reply, error)| Answer::Refuse { reply, error });
    Step::Done { value, used }
}

/// Whether a request asks to leave HTTP, or an answer does so.
pub(crate) fn upgrades(headers: &Headers<'_>) -> bool {
    headers.has_word("upgrade", "websocket") && headers.has_word("connection", "upgrade")
}

/// The early data where the server was told to look for it.
pub(crate) fn early_data(server: &Server, headers: &Headers<'_>, in_path: Option<&str>) -> Option<Vec<u8>> {
    match &server.early {
        Early::Path => in_path.and_then(early::decode),
        Early::Header(name) => headers.get(name).and_then(early::decode),
        Early::Protocol => None,
    }
}

fn answer(head: &RequestHead<'_>, server: &Server) -> Result<Answer, Refusal> {
    let wrong = |problem| (BAD_REQUEST, Protocol::WebSocket.malformed(problem));
    let in_path = check_target(head, server, Protocol::WebSocket).map_err(|error| (NOT_FOUND, error))?;
    let headers = &head.headers;
    if head.method != "GET" || head.minor != 1 {
        return Err(wrong("the handshake is not a GET of HTTP/1.1"));
    }
    if !upgrades(headers) {
        return Err(wrong("the request asks for no upgrade to WebSocket"));
    }
    if headers.get("sec-websocket-version") != Some("13") {
        return Err(wrong("the version of WebSocket is not 13"));
    }
    let key = headers.get("sec-websocket-key").unwrap_or_default();
    if BASE64.decode(key).map(|key| key.len()) != Ok(16) {
        return Err(wrong("the key of the handshake is not 16 bytes"));
    }
    let mut reply = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n",
        accept_of(key)
    );
    let protocol = headers.get(early::PROTOCOL_HEADER).unwrap_or_default();
    // xray's clients use this header whatever the server is told. Text that is no early data is no error either.
    let early = early_data(server, headers, in_path)
        .or_else(|| early::decode(protocol))
        .unwrap_or_default();
    if !protocol.is_empty() {
        // Header values have no control characters here, so writing one back cannot fail.
        push(&mut reply, early::PROTOCOL_HEADER, protocol).map_err(|error| (BAD_REQUEST, error))?;
    }
    reply.push_str("\r\n");
    Ok(Answer::Upgrade {
        reply: reply.into_bytes(),
        early,
        client: client_address(headers, &server.trusted),
    })
}

/// Checks path and host; with early data in the path, returns its text.
pub(crate) fn check_target<'a>(
    head: &RequestHead<'a>,
    server: &Server,
    protocol: Protocol,
) -> Result<Option<&'a str>, Error> {
    let problem = |problem| Err(protocol.malformed(problem));
    let path = head.target.split('?').next().unwrap_or_default();
    let want = server.path.split('?').next().unwrap_or_default();
    let want = want.strip_prefix('/').unwrap_or(want);
    let Some(got) = path.strip_prefix('/') else {
        return problem("the path does not begin with a slash");
    };
    let rest = match server.early {
        Early::Path => got.strip_prefix(want),
        _ if got == want || percent_decode(got).as_deref() == Some(want.as_bytes()) => Some(""),
        _ => None,
    };
    let Some(rest) = rest else {
        return problem("the path is not ours");
    };
    if let Some(host) = &server.host
        && !same_host(head.headers.get("host").unwrap_or_default(), host)
    {
        return problem("the host is not ours");
    }
    Ok((!rest.is_empty()).then_some(rest))
}

/// A path without percent-encoding, or `None` if it has none or a wrong one.
fn percent_decode(path: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    let mut decoded = false;
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        out.push((digit()? << 4 | digit()?) as u8);
        decoded = true;
    }
    decoded.then_some(out)
}

/// The client's address, if a trusted header vouches for it.
pub(crate) fn client_address(headers: &Headers<'_>, trusted: &[String]) -> Option<std::net::IpAddr> {
    if !trusted.iter().any(|name| headers.get(name).is_some()) {
        return None;
    }
    headers.words("x-forwarded-for").next()?.parse().ok()
}

fn accept_of(key: &str) -> String {
    BASE64.encode(Sha1::new().chain_update(key).chain_update(GUID).finalize())
}

/// What a client asks for.
#[derive(Clone, Debug, Default)]
pub struct Client<'a> {
    /// The `Host` header.
    pub host: &'a str,
    /// The path, with its query if it has one.
    pub path: &'a str,
    /// More headers. Those the handshake itself needs are not to be among them.
    pub headers: &'a [(&'a str, &'a str)],
    /// Where early data goes.
    pub early: Early,
    /// Early data.
    pub early_data: &'a [u8],
}

/// The head of a handshake, as the client. `key` are 16 random bytes.
///
/// # Errors
/// [`Error::DoesNotFit`] for a path, host or header that cannot be written, or if the head would be above [`MAX_HEAD`].
pub fn request(client: &Client<'_>, key: &[u8; 16]) -> Result<Vec<u8>, Error> {
    let (mut head, early) = begin(client)?;
    head.push_str("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
    push(&mut head, "Sec-WebSocket-Key", &BASE64.encode(key))?;
    match &client.early {
        _ if early.is_empty() => {}
        Early::Protocol => push(&mut head, early::PROTOCOL_HEADER, &early)?,
        Early::Header(name) => push(&mut head, name, &early)?,
        Early::Path => {}
    }
    end(head, MAX_HEAD, Protocol::WebSocket)
}

/// A request as far as the headers that a client was told to send, and its early data as text. Where the path carries that,
/// it is there already.
pub(crate) fn begin(client: &Client<'_>) -> Result<(String, String), Error> {
    let mut path = path_of(client.path)?;
    // v2ray writes this text padded; both are read.
    let early = match client.early_data {
        [] => String::new(),
        data => early::encode(data),
    };
    if client.early == Early::Path {
        path.push_str(&early);
    }
    let mut head = format!("GET {path} HTTP/1.1\r\n");
    push(&mut head, "Host", client.host)?;
    for (name, value) in client.headers {
        push(&mut head, name, value)?;
    }
    Ok((head, early))
}

/// The whole of a head, with the empty line.
pub(crate) fn end(mut head: String, limit: usize, protocol: Protocol) -> Result<Vec<u8>, Error> {
    head.push_str("\r\n");
    if head.len() > limit {
        return Err(protocol.does_not_fit("the handshake", limit, head.len()));
    }
    Ok(head.into_bytes())
}

/// A configured path as it goes into a request line.
fn path_of(path: &str) -> Result<String, Error> {
    if !path.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
        return Err(Protocol::Http.does_not_fit("a path with a space or control character", 0, path.len()));
    }
    Ok(if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    })
}

/// Reads the server's answer. What follows are frames.
///
/// # Errors
/// [`Error::Refused`] for another status than 101, [`Error::Malformed`] for an answer that is not one to our `key`.
pub fn parse_answer(bytes: &[u8], key: &[u8; 16]) -> Result<Step<()>, Error> {
    let problem = "the server's answer is not one to our handshake";
    answered(bytes, MAX_HEAD, Protocol::WebSocket, problem, |headers| {
        headers.get("sec-websocket-accept") == Some(accept_of(&BASE64.encode(key)).as_str())
    })
}

/// Reads an answer that must upgrade, by headers that are `right`; `problem` says that they are not.
pub(crate) fn answered(
    bytes: &[u8],
    limit: usize,
    protocol: Protocol,
    problem: &'static str,
    right: impl FnOnce(&Headers<'_>) -> bool,
) -> Result<Step<()>, Error> {
    let (head, used) = match parse_response(bytes, limit, protocol)? {
        Step::More(n) => return Ok(Step::More(n)),
        Step::Done { value, used } => (value, used),
    };
    if head.status != 101 {
        let code = head.status;
        return Err(Error::Refused { protocol, code });
    }
    if !upgrades(&head.headers) || !right(&head.headers) {
        return Err(protocol.malformed(problem));
    }
    Ok(Step::Done { value: (), used })
}

#[cfg(test)]
mod tests;
