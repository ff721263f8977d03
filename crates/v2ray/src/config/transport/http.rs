//! HTTP/2 as V2Ray has it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Carrier, Transport};
use crate::config::context::{Cx, quoted};
use crate::config::scalar::{Texts, is_header};
use crate::config::table::object;
use crate::h2::{MAX_PATH, Settings};
use crate::problem::At;

/// HTTP/2, as its keys say it.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// What both ends agree on.
    pub settings: Settings,
    /// Ping after this much silence.
    pub idle: Option<Duration>,
    /// Time for the answer to a ping.
    pub answer: Duration,
    /// `X-Forwarded-For` says who the client is.
    pub parse_forwarded_for: bool,
}

/// Time for the answer to a ping where none is set, seconds.
const ANSWER: u64 = 15;

impl Default for Http {
    fn default() -> Self {
        Http {
            settings: Settings::default(),
            idle: None,
            answer: Duration::from_secs(ANSWER),
            parse_forwarded_for: false,
        }
    }
}

/// Headers that HTTP/2 has no use for, or that it has elsewhere. Other programs leave them out as well.
const NOT_SENT: [&str; 8] = [
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

object! {
    /// HTTP/2 as V2Ray has it: each stream is a request, whose body goes up and whose answer comes down. An outbound needs tls or
    /// reality. An inbound without them speaks HTTP/2 in the clear (h2c), to a server in front.
    pub(crate) struct HttpSettings: "streamSettings.httpSettings" {
        /// Hosts. Clients name one of them (`:authority`), drawn for each request, or www.example.com where there are none.
        /// Servers answer requests for any other host with 404, and take all hosts where there are none.
        host: At<Texts> = "host", default "[]";
        /// The path. Servers answer requests whose path does not begin with it with 404.
        path: At<String> = "path", default "\"/\"";
        /// The method of clients. Servers take all methods.
        method: At<String> = "method", default "\"PUT\"";
        /// More headers: clients send them with requests, servers with answers. Of several values of one the last is sent.
        headers: At<BTreeMap<String, Texts>> = "headers", default "{}";
        /// Clients: seconds of silence before a ping. 0: no pings. After a ping that brought no data, the next one follows 5
        /// minutes later, for servers close connections that ping them more often.
        read_idle_timeout: i32 = "read_idle_timeout", default "0";
        /// Clients: seconds that the answer to a ping may take. 0: 15.
        health_check_timeout: i32 = "health_check_timeout", default "0";
        /// Servers: the first address of X-Forwarded-For is the client's, whoever says so. `trustedXForwardedFor` in `sockopt` asks for a
        /// header besides.
        parse_x_forwarded_for: bool = "parseXForwardedFor", default "false";
    }
}

impl Carrier for HttpSettings {
    fn transport(self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
        let before = cx.errors();
        self.check(cx);
        let seconds = |value: i32| u64::try_from(value).ok().filter(|value| *value > 0);
        let path = self.path.value;
        let method = self.method.value;
        let headers = self.headers.value.into_iter();
        let headers = headers.filter(|(name, _)| !NOT_SENT.iter().any(|not| not.eq_ignore_ascii_case(name)));
        let settings = Settings {
            hosts: self
                .host
                .iter()
                .filter(|host| !host.is_empty())
                .map(str::to_owned)
                .collect(),
            path: if path.starts_with('/') {
                path
            } else {
                format!("/{path}")
            },
            method: if method.is_empty() {
                Settings::default().method
            } else {
                method
            },
            headers: headers
                .filter_map(|(name, values)| Some((name, values.0.last()?.value.clone())))
                .collect(),
        };
        let http = Http {
            settings,
            idle: seconds(self.read_idle_timeout).map(Duration::from_secs),
            answer: Duration::from_secs(seconds(self.health_check_timeout).unwrap_or(ANSWER)),
            parse_forwarded_for: self.parse_x_forwarded_for,
        };
        (cx.errors() == before).then_some((Transport::Http(http), false))
    }
}

impl HttpSettings {
    /// Tells of what no request could say.
    fn check(&self, cx: &mut Cx<'_>) {
        let is_value = |text: &str| text.is_ascii() && is_header("x", text);
        for host in &self.host.0 {
            if !is_value(host) || host.contains([' ', '/', '?', '#', '@']) {
                let text = format!("{} is no host that a request could name", quoted(host));
                cx.error_in(
                    "host",
                    host.at,
                    text,
                    "write a name or an address, without https:// in front of it",
                );
            }
        }
        if self.path.len() > MAX_PATH {
            let text = format!(
                "a path of {} bytes does not fit a request, {MAX_PATH} do",
                self.path.len()
            );
            cx.error_in("path", self.path.at, text, "");
        }
        let method = &self.method;
        if !method.is_empty() && (!is_header(method, "") || method.eq_ignore_ascii_case("connect")) {
            let text = format!("{} is no method of a request with a path", quoted(method));
            cx.error_in("method", method.at, text, "PUT is usual");
        }
        for (name, values) in &self.headers.value {
            if !is_header(name, "") || !values.iter().all(is_value) {
                let text = format!("{} is no header a request could have", quoted(name));
                cx.error_in("headers", self.headers.at, text, "");
            }
        }
    }
}
