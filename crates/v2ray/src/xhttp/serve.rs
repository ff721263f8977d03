//! Requests, as the server: what they ask for, and what every answer says.

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;

use super::padding::{self, Dice};
use super::settings::{Mode, PaddingPlace, Place, Placed, Settings};
use super::{data, ids, place};
use crate::http::same_host;

/// A request, whichever version of HTTP it came in.
#[derive(Clone, Debug)]
pub struct Incoming<'a> {
    /// The method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The host, with or without a port; empty if the request names none.
    pub host: &'a str,
    /// The headers.
    pub headers: Vec<(&'a str, &'a str)>,
}

/// What a request is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ask {
    /// A browser asks whether it may.
    Options,
    /// What comes down, of a session.
    Down {
        /// The session id.
        session: String,
    },
    /// Both directions.
    One,
    /// All that goes up, of a session.
    Up {
        /// The session id.
        session: String,
        /// The client reads padding that is sent down to it.
        padded: bool,
    },
    /// A part of what goes up, of a session.
    Post(Post),
}

/// A part of what goes up, of a session. What does not stand here is the body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Post {
    /// The session id.
    pub session: String,
    /// Its number.
    pub seq: u64,
    /// What of it stands in the head.
    pub in_head: Vec<u8>,
    /// The body is not part of it.
    pub no_body: bool,
}

/// A request that is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The status of the answer.
    pub status: u16,
    /// Why, for the log.
    pub problem: &'static str,
}

const fn refuse(status: u16, problem: &'static str) -> Refusal {
    Refusal { status, problem }
}

/// Says what a request is for. The order of the checks is that of the other servers, so that a probe sees no difference.
///
/// # Errors
/// [`Refusal`] with the status 404, 400, 405 or 500.
pub fn judge(settings: &Settings, request: &Incoming<'_>) -> Result<Ask, Refusal> {
    if !settings.host.is_empty() && !same_host(request.host, &settings.host) {
        return Err(refuse(404, "the host is not ours"));
    }
    let path = path_of(request.target);
    let rest = below(&path, settings).ok_or(refuse(404, "the path is not ours"))?;
    if request.method == "OPTIONS" {
        return Ok(Ask::Options);
    }
    let (padding, elsewhere) = padding_of(settings, request);
    if !padding::is_valid(&settings.padding, &padding) {
        return Err(refuse(400, "the padding has a wrong length"));
    }
    let mut segments = rest.split('/').filter(|segment| !segment.is_empty());
    let mut meta = |placed: &Placed| match placed.place {
        Place::Path => segments.next().map(str::to_owned),
        Place::Query => place::query(place::query_of(request.target), &placed.key).map(Cow::into_owned),
        Place::Header => place::header(&request.headers, &placed.key).map(str::to_owned),
        Place::Cookie => place::cookie(&request.headers, &placed.key).map(str::to_owned),
    };
    let session = meta(&settings.session).filter(|session| !session.is_empty());
    let seq = meta(&settings.seq).filter(|seq| !seq.is_empty());
    let up = request.method == settings.uplink_method;
    let allows = |modes: &[Mode]| settings.mode == Mode::Auto || modes.contains(&settings.mode);
    let Some(session) = session else {
        return match up {
            _ if !allows(&[Mode::StreamOne, Mode::StreamUp]) => Err(refuse(400, "the session id is missing")),
            true => Ok(Ask::One),
            false => Err(refuse(405, "the method is not ours")),
        };
    };
    if !ids::is_id(&session) {
        return Err(refuse(400, "the session id is no id"));
    }
    if !allows(&[Mode::PacketUp, Mode::StreamUp]) {
        return Err(refuse(400, "there are no sessions here"));
    }
    match seq {
        // Where both have the method GET, only what goes up has a number.
        Some(seq) if up => {
            if !allows(&[Mode::PacketUp]) {
                return Err(refuse(400, "numbered requests are not taken here"));
            }
            let number = seq.bytes().all(|byte| byte.is_ascii_digit());
            let seq = seq.parse().ok().filter(|_| number);
            Ok(Ask::Post(Post {
                session,
                seq: seq.ok_or(refuse(500, "the number of the request is none"))?,
                in_head: data::collect(&settings.data, &request.headers)
                    .ok_or(refuse(400, "the payload in the head is not base64"))?,
                no_body: super::request::is_in_head(&settings.data),
            }))
        }
        None if up && request.method != "GET" => {
            if !allows(&[Mode::StreamUp]) {
                return Err(refuse(400, "endless requests are not taken here"));
            }
            Ok(Ask::Up {
                session,
                padded: elsewhere,
            })
        }
        _ if request.method == "GET" => Ok(Ask::Down { session }),
        _ => Err(refuse(405, "the method is not ours")),
    }
}

/// The path of a target, which may be a whole URL, without percent-encoding.
fn path_of(target: &str) -> Cow<'_, str> {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    percent_decode_str(path).decode_utf8_lossy()
}

/// What of a path stands below ours.
fn below<'a>(path: &'a str, settings: &Settings) -> Option<&'a str> {
    let base = percent_decode_str(&settings.path).decode_utf8_lossy();
    let rest = path.strip_prefix(base.as_ref())?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The padding of a request, and whether it stands elsewhere than in the target's query: only clients of older versions put
/// it there, who read no padding.
fn padding_of(settings: &Settings, request: &Incoming<'_>) -> (String, bool) {
    let own = |key: &str| {
        let value = place::query(place::query_of(request.target), key);
        value.map(Cow::into_owned).unwrap_or_default()
    };
    let header = |name: &str| place::header(&request.headers, name);
    let in_url = |url: &str, key: &str| {
        let value = place::query(place::query_of(url), key);
        value.map(Cow::into_owned).unwrap_or_default()
    };
    match &settings.padding.obfuscation {
        None => match header("referer").filter(|referer| !referer.is_empty()) {
            Some(referer) => (in_url(referer, "x_padding"), true),
            None => (own("x_padding"), false),
        },
        Some(wanted) => {
            let value = match wanted.place {
                PaddingPlace::QueryInHeader => in_url(header(&wanted.header).unwrap_or_default(), &wanted.key),
                PaddingPlace::Header => header(&wanted.header).unwrap_or_default().to_owned(),
                PaddingPlace::Cookie => place::cookie(&request.headers, &wanted.key)
                    .unwrap_or_default()
                    .to_owned(),
                PaddingPlace::Query => own(&wanted.key),
            };
            (value, true)
        }
    }
}

/// The client's address as a server in front gives it, if one of the headers `trusted` is there: anyone can write
/// `X-Forwarded-For`, so without a header that only the front server adds it says nothing.
pub fn client_address(request: &Incoming<'_>, trusted: &[String]) -> Option<IpAddr> {
    if !trusted
        .iter()
        .any(|name| place::header(&request.headers, name).is_some())
    {
        return None;
    }
    let told = place::header(&request.headers, "x-forwarded-for")?;
    told.split(',').next()?.trim().parse().ok()
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answered {
    /// A request whose answer is what comes down.
    Down,
    /// A request without an end that carries something up.
    Up,
    /// Any other.
    Other,
}

/// The headers of an answer but for those of its length. `seed`: 64 random bits.
pub fn answer_headers(
    settings: &Settings,
    request: Option<&Incoming<'_>>,
    to: Answered,
    seed: u64,
) -> Vec<(String, String)> {
    let of = |name: &str| request.and_then(|request| place::header(&request.headers, name));
    let mut headers = Vec::new();
    let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
    add("Access-Control-Allow-Origin", of("origin").unwrap_or("*"));
    if request.is_some_and(|request| request.method == "OPTIONS") {
        let method = of("access-control-request-method");
        add("Access-Control-Allow-Methods", method.unwrap_or("GET, POST"));
        add(
            "Access-Control-Allow-Headers",
            of("access-control-request-headers").unwrap_or("*"),
        );
    }
    let padding = padding::make(&settings.padding, &mut Dice::new(seed));
    match &settings.padding.obfuscation {
        Some(wanted) if wanted.place == PaddingPlace::Cookie => {
            add("Set-Cookie", &format!("{}={padding}; Path=/", wanted.key));
        }
        Some(wanted) => add(&wanted.header, &padding),
        None => add("X-Padding", &padding),
    }
    if to != Answered::Other {
        add("X-Accel-Buffering", "no");
        add("Cache-Control", "no-store");
    }
    if to == Answered::Down && !settings.no_sse_header {
        add("Content-Type", "text/event-stream");
    }
    headers
}

#[cfg(test)]
mod tests;
