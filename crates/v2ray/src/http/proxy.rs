//! The proxy's side: CONNECT, and plain requests whose target is an absolute URI.
//!
//! A plain request is sent on in origin form with `Connection: close`; the connection to the client is kept unless it asked
//! otherwise (HTTP/1.0: when it asked for that) and if the response has a border ([`Response::keep_alive`]).

use super::body::Body;
use super::client::host_and_port;
use super::head::{Headers, RequestHead, parse_request, parse_response};
use super::parse_basic_credentials;
use crate::{Address, Destination, Error, Protocol, Step};

/// Longest head of a request or response, bytes.
pub const MAX_HEAD: usize = 16 * 1024;

/// The answer to CONNECT.
pub const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// The answer to a request without right credentials.
pub const LOGIN_REQUIRED: &[u8] =
    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"proxy\"\r\n\
    Content-Length: 0\r\nConnection: close\r\n\r\n";
/// The answer to what is no request we can serve.
pub const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// The answer when the server behind cannot be reached.
pub const UNAVAILABLE: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\nProxy-Connection: close\r\n\r\n";

/// Headers that speak of one connection only (RFC 9110 section 7.6.1), besides those that `Connection` names. What frames the
/// body, `Transfer-Encoding` and `Trailer`, stays, for the body passes as it is.
const HOP_BY_HOP: [&str; 5] = ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];

/// A request to the proxy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// User name and password, if any were sent.
    pub login: Option<(Vec<u8>, Vec<u8>)>,
    /// What routing rules can ask for: `:method`, `:path`, and the headers by name in lower case.
    pub attributes: Vec<(String, String)>,
}

/// What a client asks a proxy for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A tunnel: answer [`CONNECTED`], then pass bytes both ways.
    Connect(Destination),
    /// One request to be sent on.
    Forward(Forward),
}

/// A plain request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Forward {
    /// Where it goes.
    pub to: Destination,
    /// Its method.
    pub method: String,
    /// The minor version the client speaks. Before HTTP/1.1 there were neither chunks nor responses of the class 1xx.
    pub minor: u8,
    /// The head to send.
    pub head: Vec<u8>,
    /// The body that follows.
    pub body: Body,
    /// Whether the client would like to send another request on this connection.
    pub keep_alive: bool,
}

fn wrong(problem: &'static str) -> Error {
    Protocol::Http.malformed(problem)
}

/// Reads a request. `transparent` allows plain requests with a path instead of a URI, which then go to what `Host` says.
///
/// # Errors
/// [`Error::Malformed`], [`Error::TooLong`] and those of addresses: answer [`BAD_REQUEST`].
pub fn decode(bytes: &[u8], transparent: bool) -> Result<Step<Request>, Error> {
    match parse_request(bytes, MAX_HEAD, Protocol::Http)? {
        Step::More(n) => Ok(Step::More(n)),
        Step::Done { value: head, used } => {
            let command = if head.method == "CONNECT" {
                Command::Connect(authority(head.target, 443)?)
            } else {
                Command::Forward(forward(&head, transparent)?)
            };
            let mut attributes = vec![
                (":method".to_owned(), head.method.to_owned()),
                (":path".to_owned(), head.target.to_owned()),
            ];
            attributes.extend(head.headers.iter().map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned())));
            let login = head
                .headers
                .get("proxy-authorization")
                .and_then(parse_basic_credentials);
            Ok(Step::Done {
                value: Request {
                    command,
                    login,
                    attributes,
                },
                used,
            })
        }
    }
}

/// Reads `host:port` or `host`.
fn authority(text: &str, default_port: u16) -> Result<Destination, Error> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').ok_or(wrong("the host is wrong"))?)),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None | Some("") => default_port,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => {
            port.parse().map_err(|_| wrong("the port is above 65535"))?
        }
        Some(_) => return Err(wrong("the port is not a number")),
    };
    Ok(Destination::tcp(Address::parse(host)?, port))
}

fn forward(head: &RequestHead<'_>, transparent: bool) -> Result<Forward, Error> {
    let scheme = "http://";
    let is_http = head
        .target
        .get(..scheme.len())
        .is_some_and(|s| s.eq_ignore_ascii_case(scheme));
    let (host, path) = if is_http {
        let rest = &head.target[scheme.len()..];
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        // Credentials in a URI are for the client's eyes only.
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        (host, path.split('#').next().unwrap_or_default())
    } else if transparent && head.target.starts_with('/') {
        (head.headers.get("host").ok_or(wrong("there is no host"))?, head.target)
    } else {
        return Err(wrong("a plain request to a proxy needs an absolute http URI"));
    };
    // RFC 9112 section 3.2: who reads the one and who the other would not mean the same server.
    if head.headers.all("host").count() > 1 {
        return Err(wrong("there is more than one host"));
    }
    let to = authority(host, 80)?;
    let body = Body::of_request(head)?;
    let path = match path.as_bytes().first() {
        // RFC 9112 section 3.2.4.
        None if head.method == "OPTIONS" => "*".to_owned(),
        None => "/".to_owned(),
        Some(b'/') => path.to_owned(),
        Some(_) => format!("/{path}"),
    };
    let mut out = format!(
        "{} {path} HTTP/1.{}\r\nHost: {}\r\n",
        head.method,
        head.minor,
        host_of(&to)
    );
    copy_headers(&head.headers, &["host"], &mut out);
    out.push_str("Connection: close\r\n\r\n");
    let headers = &head.headers;
    let asked = headers.has_word("proxy-connection", "keep-alive") || headers.has_word("connection", "keep-alive");
    let refused = headers.has_word("proxy-connection", "close") || headers.has_word("connection", "close");
    Ok(Forward {
        to,
        method: head.method.to_owned(),
        minor: head.minor,
        head: out.into_bytes(),
        body,
        keep_alive: (asked || head.minor > 0) && !refused,
    })
}

/// The value of `Host`: without the port if it is the usual one.
fn host_of(to: &Destination) -> String {
    match (&to.address, to.port) {
        (Address::Ipv6(ip), 80) => format!("[{ip}]"),
        (address, 80) => address.to_string(),
        (address, port) => host_and_port(address, port),
    }
}

/// Copies the headers that are for the other end, without those in `but`.
fn copy_headers(headers: &Headers<'_>, but: &[&str], out: &mut String) {
    for (name, value) in headers.iter() {
        let lower = name.to_ascii_lowercase();
        let dropped = HOP_BY_HOP.contains(&lower.as_str())
            || lower.starts_with("proxy-")
            || but.contains(&lower.as_str())
            // A header that frames the body cannot be named away.
            || (headers.has_word("connection", name) && !matches!(&*lower, "content-length" | "transfer-encoding" | "host"));
        if !dropped {
            out.push_str(name);
            out.push_str(": ");
            out.push_str(value);
            out.push_str("\r\n");
        }
    }
}

/// A response on its way back to the client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response {
    /// The head to send to the client.
    pub head: Vec<u8>,
    /// The body that follows.
    pub body: Body,
    /// Whether another response follows: this one is of the class 1xx.
    pub interim: bool,
    /// Whether the client's connection is kept for another request.
    pub keep_alive: bool,
}

/// Reads the head of the server's response to a request and rewrites it for the client.
///
/// # Errors
/// [`Error::Malformed`] and [`Error::TooLong`]: answer [`UNAVAILABLE`] if nothing was sent yet.
pub fn decode_response(bytes: &[u8], request: &Forward) -> Result<Step<Response>, Error> {
    match parse_response(bytes, MAX_HEAD, Protocol::Http)? {
        Step::More(n) => Ok(Step::More(n)),
        Step::Done { value: head, used } => {
            if head.status == 101 {
                return Err(wrong("the server switches protocols, which was not asked for"));
            }
            let body = Body::of_response(&head, &request.method)?;
            if request.minor == 0 && body.is_chunked() {
                return Err(wrong("chunks for a client of HTTP/1.0, which cannot read them"));
            }
            let interim = (100..200).contains(&head.status);
            let keep_alive = request.keep_alive && !body.is_until_close();
            let mut out = format!("HTTP/1.1 {:03} {}\r\n", head.status, head.reason);
            copy_headers(&head.headers, &[], &mut out);
            if !interim {
                let word = if keep_alive { "keep-alive" } else { "close" };
                out.push_str(&format!("Connection: {word}\r\nProxy-Connection: {word}\r\n"));
            }
            out.push_str("\r\n");
            Ok(Step::Done {
                value: Response {
                    head: out.into_bytes(),
                    body,
                    interim,
                    keep_alive,
                },
                used,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Request, Error> {
        for n in 0..text.len() {
            assert_eq!(decode(&text.as_bytes()[..n], false)?, Step::More(1));
        }
        Ok(decode(text.as_bytes(), false)?.done().unwrap())
    }

    fn forwarded(text: &str) -> Forward {
        match one(text).unwrap().command {
            Command::Forward(forward) => forward,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn connect() {
        for (target, to) in [
            ("example.com:8443", "tcp:example.com:8443"),
            ("example.com", "tcp:example.com:443"),
            ("[2001:db8::1]:1", "tcp:[2001:db8::1]:1"),
            ("[2001:db8::1]", "tcp:[2001:db8::1]:443"),
            ("192.0.2.1:80", "tcp:192.0.2.1:80"),
        ] {
            let request = one(&format!(
                "CONNECT {target} HTTP/1.1\r\nProxy-Authorization: Basic YTpi\r\n\r\n"
            ))
            .unwrap();
            match request.command {
                Command::Connect(got) => assert_eq!(got.to_string(), to),
                other => panic!("{other:?}"),
            }
            assert_eq!(request.login, Some((b"a".to_vec(), b"b".to_vec())));
        }
        for target in [
            "example.com:x",
            "example.com:99999",
            ":443",
            "a b",
            "[::1]x",
            "exa/mple:1",
        ] {
            assert!(
                decode(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes(), false).is_err(),
                "{target}"
            );
        }
    }

    #[test]
    fn plain_requests_are_rewritten() {
        let got = forwarded(
            "POST http://user:pw@Example.com:8080/a?b#c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic YTpi\r\n\
             Proxy-Connection: keep-alive\r\nConnection: X-Mine, Content-Length\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\
             Keep-Alive: 5\r\nContent-Length: 3\r\nAccept: */*\r\n\r\n",
        );
        assert_eq!(
            String::from_utf8(got.head).unwrap(),
            "POST /a?b HTTP/1.1\r\nHost: Example.com:8080\r\nContent-Length: 3\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(got.to.to_string(), "tcp:Example.com:8080");
        assert!(got.keep_alive);
        assert!(!got.body.is_over());
        let got = forwarded("GET http://[2001:db8::1] HTTP/1.0\r\n\r\n");
        assert!(got.head.starts_with(b"GET / HTTP/1.0\r\nHost: [2001:db8::1]\r\n"));
        assert!(!got.keep_alive);
        assert!(forwarded("GET http://a.example HTTP/1.0\r\nProxy-Connection: Keep-Alive\r\n\r\n").keep_alive);
        assert!(forwarded("GET http://a.example HTTP/1.1\r\n\r\n").keep_alive);
        assert!(!forwarded("GET http://a.example HTTP/1.1\r\nConnection: Close\r\n\r\n").keep_alive);
        let got = forwarded("GET HTTP://a.example?q HTTP/1.1\r\n\r\n");
        assert!(got.head.starts_with(b"GET /?q HTTP/1.1\r\nHost: a.example\r\n"));
        assert!(
            forwarded("OPTIONS http://a.example HTTP/1.1\r\n\r\n")
                .head
                .starts_with(b"OPTIONS * ")
        );
    }

    #[test]
    fn what_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET https://a/ HTTP/1.1\r\n\r\n",
            "GET http:/// HTTP/1.1\r\n\r\n",
        ] {
            assert!(decode(head.as_bytes(), false).is_err(), "{head}");
        }
        let hosts = "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
        assert!(decode(hosts.as_bytes(), false).is_err());
        let smuggled = "POST http://a/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(decode(smuggled.as_bytes(), false).is_err());
        let got = decode(b"GET /x HTTP/1.1\r\nHost: a.example:81\r\n\r\n", true)
            .unwrap()
            .done()
            .unwrap();
        assert!(matches!(got.command, Command::Forward(f) if f.to.port == 81 && f.head.starts_with(b"GET /x ")));
        assert!(decode(b"GET /x HTTP/1.1\r\n\r\n", true).is_err());
    }

    #[test]
    fn attributes_for_routing() {
        let request = one("GET http://a.example/x HTTP/1.1\r\nUser-Agent: curl\r\n\r\n").unwrap();
        let get = |name: &str| {
            request
                .attributes
                .iter()
                .find(|(n, _)| n == name)
                .map(|(_, v)| v.as_str())
        };
        assert_eq!(get(":method"), Some("GET"));
        assert_eq!(get(":path"), Some("http://a.example/x"));
        assert_eq!(get("user-agent"), Some("curl"));
    }

    #[test]
    fn responses() {
        let request = forwarded("GET http://a.example/ HTTP/1.1\r\nProxy-Connection: Keep-Alive\r\n\r\n");
        let got = |text: &str| decode_response(text.as_bytes(), &request).map(|s| s.done().unwrap());
        let r =
            got("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: close, X-Y\r\nX-Y: 1\r\nA: b\r\n\r\n").unwrap();
        assert_eq!(
            String::from_utf8(r.head).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\nConnection: keep-alive\r\nProxy-Connection: keep-alive\r\n\r\n"
        );
        assert!(r.keep_alive && !r.interim);
        let r = got("HTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert!(!r.keep_alive && r.body.is_until_close());
        let r = got("HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        assert!(r.interim && r.body.is_over());
        assert_eq!(r.head, b"HTTP/1.1 100 Continue\r\n\r\n");
        assert!(got("HTTP/1.1 101 x\r\n\r\n").is_err());
        let old = forwarded("GET http://a.example/ HTTP/1.0\r\n\r\n");
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(decode_response(chunked, &old).is_err());
        assert!(decode_response(chunked, &request).is_ok());
    }
}
