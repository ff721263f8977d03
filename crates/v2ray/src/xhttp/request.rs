//! Requests, as the client.

use super::padding::{self, Dice};
use super::place::push_query;
use super::settings::{Data, DataPlace, PaddingPlace, Place, Placed, Settings};
use super::{PROTOCOL, data};
use crate::Error;
use crate::http::client::push;

/// Longest head of a request, bytes.
pub const MAX_HEAD: usize = 64 << 10;

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Asked<'a> {
    /// What comes down, of a session.
    Down {
        /// The session id.
        session: &'a str,
    },
    /// Both directions.
    One,
    /// All that goes up, of a session.
    Up {
        /// The session id.
        session: &'a str,
    },
    /// A part of what goes up, of a session.
    Post {
        /// The session id.
        session: &'a str,
        /// Its number.
        seq: u64,
        /// The part, unless it is the body.
        in_head: &'a [u8],
    },
}

/// A request without its body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outgoing {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The host.
    pub host: String,
    /// All other headers.
    pub headers: Vec<(String, String)>,
}

/// The length of a body in HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// There is no body.
    None,
    /// So many bytes.
    Bytes(usize),
    /// It comes in chunks.
    Chunked,
}

/// Whether the payload of numbered requests stands in their heads.
pub fn is_in_head(data: &Data) -> bool {
    matches!(data.place, DataPlace::Header | DataPlace::Cookie)
}

/// Writes a request. `host` is the one to send where the settings name none, `seed` 64 random bits.
pub fn request(settings: &Settings, tls: bool, host: &str, asked: &Asked<'_>, seed: u64) -> Outgoing {
    let mut dice = Dice::new(seed);
    let host = if settings.host.is_empty() { host } else { &settings.host };
    let base = format!("{}/", settings.path);
    let mut parts = Parts {
        target: base.clone(),
        query: settings.query.clone(),
        headers: Vec::new(),
        cookies: Vec::new(),
    };
    let method = match asked {
        Asked::Down { .. } => "GET",
        _ => settings.uplink_method.as_str(),
    };
    let streams_up = matches!(asked, Asked::One | Asked::Up { .. });
    if streams_up && !settings.no_grpc_header {
        parts.headers.push(("Content-Type".into(), "application/grpc".into()));
    }
    if let Asked::Down { session } | Asked::Up { session } | Asked::Post { session, .. } = asked {
        parts.put(&settings.session, session);
    }
    if let Asked::Post { seq, in_head, .. } = asked {
        parts.put(&settings.seq, &seq.to_string());
        let pieces = data::pieces(&settings.data, in_head, &mut dice);
        match settings.data.place {
            DataPlace::Cookie => parts.cookies.extend(pieces),
            _ => parts.headers.extend(pieces),
        }
    }
    let padding = padding::make(&settings.padding, &mut dice);
    let url = |key: &str| {
        let mut query = String::new();
        push_query(&mut query, key, &padding);
        format!("{}://{host}{base}?{query}", if tls { "https" } else { "http" })
    };
    match &settings.padding.obfuscation {
        None => parts.headers.push(("Referer".into(), url("x_padding"))),
        Some(wanted) => match wanted.place {
            PaddingPlace::QueryInHeader => parts.headers.push((wanted.header.clone(), url(&wanted.key))),
            PaddingPlace::Header => parts.headers.push((wanted.header.clone(), padding)),
            PaddingPlace::Cookie => parts.cookies.push((wanted.key.clone(), padding)),
            PaddingPlace::Query => push_query(&mut parts.query, &wanted.key, &padding),
        },
    }
    parts.finish(settings, method, host)
}

/// A request that is being made.
struct Parts {
    target: String,
    query: String,
    headers: Vec<(String, String)>,
    cookies: Vec<(String, String)>,
}

impl Parts {
    fn put(&mut self, placed: &Placed, value: &str) {
        let key = placed.key.clone();
        match placed.place {
            Place::Path => {
                if !self.target.ends_with('/') {
                    self.target.push('/');
                }
                self.target.push_str(value);
            }
            Place::Query => push_query(&mut self.query, &key, value),
            Place::Header => self.headers.push((key, value.to_owned())),
            Place::Cookie => self.cookies.push((key, value.to_owned())),
        }
    }

    fn finish(mut self, settings: &Settings, method: &str, host: &str) -> Outgoing {
        // The user's own headers stand first, but for those that the request cannot do without.
        let ours = |name: &str| self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let given = settings.headers.iter().filter(|(name, _)| !ours(name));
        let mut headers: Vec<(String, String)> = given.cloned().collect();
        headers.append(&mut self.headers);
        if !self.cookies.is_empty() {
            let cookies: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let cookies = cookies.join("; ");
            match headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
                Some((_, line)) => *line = format!("{line}; {cookies}"),
                None => headers.push(("Cookie".into(), cookies)),
            }
        }
        let mut target = self.target;
        if !self.query.is_empty() {
            target.push('?');
            target.push_str(&self.query);
        }
        Outgoing {
            method: method.to_owned(),
            target,
            host: host.to_owned(),
            headers,
        }
    }
}

impl Outgoing {
    /// The head in HTTP/1.1. Without a length of the body the connection is for this request alone.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] for a header that cannot be written as a line, or if the head would be above [`MAX_HEAD`].
    pub fn head(&self, length: Length) -> Result<Vec<u8>, Error> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        push(&mut head, "Host", &self.host)?;
        for (name, value) in &self.headers {
            push(&mut head, name, value)?;
        }
        match length {
            Length::None => {}
            Length::Bytes(n) => push(&mut head, "Content-Length", &n.to_string())?,
            Length::Chunked => push(&mut head, "Transfer-Encoding", "chunked")?,
        }
        if !matches!(length, Length::Bytes(_)) {
            // A server that means to keep the connection reads all of a request before it answers: net/http of Go does.
            push(&mut head, "Connection", "close")?;
        }
        head.push_str("\r\n");
        if head.len() > MAX_HEAD {
            return Err(PROTOCOL.does_not_fit("the head", MAX_HEAD, head.len()));
        }
        Ok(head.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{Obfuscation, PaddingMethod, Span};
    use super::*;

    fn settings() -> Settings {
        Settings {
            path: "/p".into(),
            query: "a=b".into(),
            headers: vec![("X-Own".into(), "1".into()), ("Referer".into(), "no".into())],
            padding: padding::tests_padding(Span::just(3), None),
            ..Settings::default()
        }
    }

    /// What xray 26.3.27 sends in the same case, but for the headers that make it look like a browser.
    #[test]
    fn as_xray_writes_them() {
        let ask = Asked::Post {
            session: "837e9727-0769-41a4-b10d-de981186c82c",
            seq: 7,
            in_head: b"",
        };
        let made = request(&settings(), false, "127.0.0.1", &ask, 1);
        let head = "POST /p/837e9727-0769-41a4-b10d-de981186c82c/7?a=b HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Own: 1\r\n\
            Referer: http://127.0.0.1/p/?x_padding=XXX\r\nContent-Length: 31\r\n\r\n";
        assert_eq!(String::from_utf8(made.head(Length::Bytes(31)).unwrap()).unwrap(), head);
        let one = request(&settings(), true, "h.example", &Asked::One, 1);
        let head = "POST /p/?a=b HTTP/1.1\r\nHost: h.example\r\nX-Own: 1\r\nContent-Type: application/grpc\r\n\
            Referer: https://h.example/p/?x_padding=XXX\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(one.head(Length::Chunked).unwrap()).unwrap(), head);
        let down = request(&settings(), true, "h", &Asked::Down { session: "s" }, 1);
        assert_eq!((down.method.as_str(), down.target.as_str()), ("GET", "/p/s?a=b"));
    }

    #[test]
    fn every_place() {
        let placed = |place, key: &str| Placed { place, key: key.into() };
        let obfuscated = |place| {
            let wanted = Obfuscation {
                place,
                key: "x_padding".into(),
                header: "X-Padding".into(),
                method: PaddingMethod::Repeat,
            };
            padding::tests_padding(Span::just(2), Some(wanted))
        };
        let ask = Asked::Post {
            session: "s",
            seq: 0,
            in_head: b"abc",
        };
        let line = |settings: &Settings| {
            let made = request(settings, false, "h", &ask, 5);
            let lines: Vec<String> = made
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            format!("{} {} {}", made.method, made.target, lines.join(" | "))
        };
        let plain = Settings {
            path: "/p".into(),
            ..Settings::default()
        };
        let header = Settings {
            session: placed(Place::Header, "X-Session"),
            seq: placed(Place::Query, "x_seq"),
            data: Data {
                place: DataPlace::Header,
                ..plain.data.clone()
            },
            padding: obfuscated(PaddingPlace::QueryInHeader),
            ..plain.clone()
        };
        assert_eq!(
            line(&header),
            "POST /p/?x_seq=0 X-Session: s | X-Data-0: YWJj | X-Padding: http://h/p/?x_padding=XX"
        );
        let cookie = Settings {
            session: placed(Place::Cookie, "x_session"),
            seq: placed(Place::Header, "X-Seq"),
            uplink_method: "GET".into(),
            headers: vec![("Cookie".into(), "own=1".into())],
            data: Data {
                place: DataPlace::Cookie,
                ..plain.data.clone()
            },
            padding: obfuscated(PaddingPlace::Cookie),
            ..plain.clone()
        };
        assert_eq!(
            line(&cookie),
            "GET /p/ Cookie: own=1; x_session=s; x_data_0=YWJj; x_padding=XX | X-Seq: 0"
        );
        let query = Settings {
            session: placed(Place::Query, "x_session"),
            padding: obfuscated(PaddingPlace::Query),
            ..plain.clone()
        };
        assert_eq!(line(&query), "POST /p/0?x_session=s&x_padding=XX X-Data-0: YWJj");
        let header = Settings {
            padding: obfuscated(PaddingPlace::Header),
            ..plain
        };
        assert_eq!(line(&header), "POST /p/s/0 X-Data-0: YWJj | X-Padding: XX");
    }
}
