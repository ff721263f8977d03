//! V2Ray's HTTP/2: each stream is a request, whose body goes up and whose answer comes down.
//!
//! Many streams share a connection, in both roles, as those of gRPC do; here they have no messages.

use std::io;
use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, HOST, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};

use super::http2::{Exchange, Options, Pings};
use super::requests::{self, Pool, Requests};
use super::{Accepted, Arrival, Dial, Transport};
use crate::error::{Error, Pending};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::{random, settings};

/// The transport, for either side.
pub(super) struct Http {
    site: Arc<Site>,
    pool: Pool,
}

/// What is asked for, or answers.
struct Site(settings::Http);

impl Http {
    pub(super) fn new(settings: settings::Http) -> Self {
        let pings = Pings {
            idle: settings.http.idle,
            answer: settings.http.answer,
            without_streams: false,
        };
        Http {
            pool: Pool::new(Options::default(), pings),
            site: Arc::new(Site(settings)),
        }
    }

    async fn ask(&self, dial: Dial<'_>) -> Result<Stream, Error> {
        let hosts = self.site.0.http.settings.hosts.len();
        let request = self.site.request(dial.line.has_tls(), random::below(hosts)?);
        let request = request.map_err(|error| {
            let what = format!("no request can be made of these: {error}");
            Error::config("streamSettings.httpSettings", what)
        })?;
        let body = self.pool.request(dial, request, check, None).await?;
        Ok(Stream::new(Box::new(body), Traffic::default()))
    }
}

impl Site {
    /// The head of a request, to the host of this number.
    fn request(&self, tls: bool, host: usize) -> Result<Request<()>, http::Error> {
        let own = &self.0.http.settings;
        let uri = Uri::builder()
            .scheme(if tls { "https" } else { "http" })
            .authority(own.host(host))
            .path_and_query(own.target())
            .build()?;
        let mut request = Request::builder().method(own.method.as_str()).uri(uri);
        for (name, value) in &own.headers {
            if !name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()) {
                request = request.header(name, value);
            }
        }
        // Whoever is between is to compress nothing.
        request.header(ACCEPT_ENCODING, "identity").body(())
    }

    fn is_for_us(&self, request: &Parts) -> bool {
        let named = || request.headers.get(HOST)?.to_str().ok();
        let authority = request.uri.authority().map(|authority| authority.as_str());
        let host = authority.or_else(named).unwrap_or_default();
        self.0.http.settings.is_ours(host, request.uri.path())
    }

    /// The head of the answer to a request for us.
    fn head(&self) -> Response<()> {
        let mut head = Response::new(());
        let headers = head.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for (name, value) in &self.0.http.settings.headers {
            // Names and values that are no headers do not come so far.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        head
    }
}

impl Transport for Http {
    fn alpn(&self) -> &'static str {
        "h2"
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn accept<'a>(&'a self, accepted: Accepted) -> Pending<'a, Arrival> {
        let site = Arc::clone(&self.site);
        Box::pin(requests::accept(site, accepted, Options::default()))
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move { Ok((self.ask(dial).await?, 0)) })
    }
}

impl Requests for Site {
    fn trusted(&self) -> &[String] {
        &self.0.trusted_forwarded_for
    }

    fn serve(&self, exchange: Exchange) -> Option<Stream> {
        if !self.is_for_us(&exchange.request) {
            let mut head = Response::new(());
            *head.status_mut() = StatusCode::NOT_FOUND;
            exchange.refuse(head);
            return None;
        }
        let mut body = exchange.accept(self.head(), None);
        // Most clients send nothing before they have the head.
        body.begin().ok()?;
        Some(Stream::new(Box::new(body), Traffic::default()))
    }
}

/// What a client thinks of the head of an answer.
fn check(head: &Response<()>) -> io::Result<()> {
    match head.status() {
        StatusCode::OK => Ok(()),
        status => {
            let status = status.as_u16();
            let what =
                format!("the HTTP/2 server answers with status {status}; compare `host` and `path` on both ends");
            // Nothing that was sent has come to anybody.
            Err(io::Error::new(io::ErrorKind::ConnectionReset, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::config;
    use sealway_v2ray::h2::Settings;

    use super::*;

    fn site(headers: &[(&str, &str)]) -> Site {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Site(settings::Http {
            http: config::Http {
                settings: Settings {
                    hosts: vec!["a.example".into(), "b.example:8443".into()],
                    path: "/my way".into(),
                    method: "POST".into(),
                    headers: headers.iter().map(owned).collect(),
                },
                ..config::Http::default()
            },
            trusted_forwarded_for: Vec::new(),
        })
    }

    #[test]
    fn what_a_client_asks_for_a_server_takes() {
        let own = site(&[("X-A", "b"), ("accept-encoding", "gzip")]);
        for (number, host) in ["a.example", "b.example:8443"].into_iter().enumerate() {
            let request = own.request(true, number).unwrap();
            assert_eq!(request.method(), "POST");
            assert_eq!(request.uri().to_string(), format!("https://{host}/my%20way"));
            assert_eq!(request.headers()["x-a"], "b");
            let coded: Vec<_> = request.headers().get_all(ACCEPT_ENCODING).into_iter().collect();
            assert_eq!(coded, ["identity"]);
            assert!(own.is_for_us(&request.into_parts().0));
        }
        assert_eq!(own.request(false, 0).unwrap().uri().scheme_str(), Some("http"));
    }

    #[test]
    fn a_server_knows_a_request_by_host_and_path_alone() {
        let own = site(&[]);
        let is_ours = |request: http::request::Builder| own.is_for_us(&request.body(()).unwrap().into_parts().0);
        for method in ["GET", "PUT", "OPTIONS"] {
            let request = Request::builder()
                .method(method)
                .uri("https://A.example:9/my%20way/on?x=y");
            assert!(is_ours(request), "{method}");
        }
        assert!(is_ours(Request::builder().uri("/my%20way").header("host", "b.example")));
        assert!(!is_ours(Request::builder().uri("/my%20way")));
        assert!(!is_ours(
            Request::builder().uri("/my%20way").header("host", "c.example")
        ));
        assert!(!is_ours(Request::builder().uri("https://a.example/my")));
        assert!(!is_ours(Request::connect("a.example:443")));
    }

    #[test]
    fn heads_of_answers() {
        let head = site(&[("Server", "nginx"), ("cache-control", "private"), ("x", "a\nb")]).head();
        let headers = head.headers();
        assert_eq!(headers.len(), 2);
        assert_eq!(headers["server"], "nginx");
        assert_eq!(headers[CACHE_CONTROL], "private");
        let mut answer = Response::new(());
        assert!(check(&answer).is_ok());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        let error = check(&answer).unwrap_err();
        assert!(error.to_string().contains("status 404"), "{error}");
    }
}
