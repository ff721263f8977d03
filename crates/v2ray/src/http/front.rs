//! A made-up HTTP request and response in front of a raw connection (the `http` header of the transport raw).
//!
//! A client writes a request before its first bytes, a server a response before its own; everything after them is the
//! connection itself. Neither head says anything: what counts of the request is that its path is one of those agreed on,
//! and of the response nothing at all. A server answers any other request with an error, as a web server would.

use crate::{Error, Protocol, Step};

/// Longest head that is read, bytes.
pub const MAX_HEAD: usize = 8 << 10;
/// Longest method, bytes.
const MAX_METHOD: usize = 20;

/// Headers, each with the values that one is drawn from.
pub type Headers = Vec<(String, Vec<String>)>;

/// Draws a number below the one given, which is at least 1.
pub type Draw<'a> = &'a mut dyn FnMut(usize) -> usize;

/// What requests are made of, and know each other by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The version, as `1.1`.
    pub version: String,
    /// The method.
    pub method: String,
    /// Paths, of which one is drawn. A query goes out with them and does not count when a request comes in.
    pub paths: Vec<String>,
    /// Headers.
    pub headers: Headers,
}

/// What responses are made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response {
    /// The version, as `1.1`.
    pub version: String,
    /// The status.
    pub status: String,
    /// What it is called.
    pub reason: String,
    /// Headers. The date is added to them.
    pub headers: Headers,
}

/// Why a request is none of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// It is for another path.
    NotFound,
    /// It is no request, or too long a one.
    BadRequest,
}

impl Refusal {
    /// What it is answered with. `time` is the Unix time, seconds.
    pub fn reply(self, time: i64) -> Vec<u8> {
        let status = match self {
            Refusal::NotFound => "404 Not Found",
            Refusal::BadRequest => "400 Bad Request",
        };
        let date = date(time);
        format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nCache-Control: private\r\nContent-Length: 0\r\nDate: {date}\r\n\r\n"
        )
        .into_bytes()
    }
}

fn listed(headers: &[(&str, &[&str])]) -> Headers {
    let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    let headers = headers.iter().map(|(name, values)| ((*name).to_owned(), owned(values)));
    headers.collect()
}

impl Default for Request {
    /// A browser's request for a search engine.
    fn default() -> Self {
        Request {
            version: "1.1".to_owned(),
            method: "GET".to_owned(),
            paths: vec!["/".to_owned()],
            headers: listed(&[
                ("Host", &["www.baidu.com", "www.bing.com"]),
                (
                    "User-Agent",
                    &[
                        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/152.0.0.0 \
                         Safari/537.36",
                        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) \
                         Chrome/152.0.0.0 Safari/537.36",
                    ],
                ),
                ("Accept-Encoding", &["gzip, deflate"]),
                ("Connection", &["keep-alive"]),
                ("Pragma", &["no-cache"]),
            ]),
        }
    }
}

impl Default for Response {
    /// A stream of data that does not end.
    fn default() -> Self {
        Response {
            version: "1.1".to_owned(),
            status: "200".to_owned(),
            reason: "OK".to_owned(),
            headers: listed(&[
                ("Content-Type", &["application/octet-stream", "video/mpeg"]),
                ("Transfer-Encoding", &["chunked"]),
                ("Connection", &["keep-alive"]),
                ("Pragma", &["no-cache"]),
                ("Cache-Control", &["private, no-cache"]),
            ]),
        }
    }
}

fn draw<'a>(values: &'a [String], draw: Draw<'_>) -> &'a str {
    match values.len() {
        0 => "",
        n => values.get(draw(n)).map_or("", String::as_str),
    }
}

fn push_headers(headers: &Headers, draw_one: Draw<'_>, out: &mut String) {
    for (name, values) in headers.iter().filter(|(_, values)| !values.is_empty()) {
        out.push_str(&format!("{name}: {}\r\n", draw(values, draw_one)));
    }
}

impl Request {
    /// One request.
    pub fn write(&self, draw_one: Draw<'_>) -> Vec<u8> {
        let path = draw(&self.paths, draw_one);
        let mut out = format!("{} {path} HTTP/{}\r\n", self.method, self.version);
        push_headers(&self.headers, draw_one, &mut out);
        out.push_str("\r\n");
        out.into_bytes()
    }

    /// Reads a client's request from the front of `bytes`. Its method and its headers may be any.
    ///
    /// # Errors
    /// A [`Refusal`], as soon as it shows.
    pub fn accept(&self, bytes: &[u8]) -> Result<Step<()>, Refusal> {
        let Some(target) = target(bytes)? else {
            return Ok(Step::More(1));
        };
        let Step::Done { used, .. } = end_of_head(bytes).ok_or(Refusal::BadRequest)? else {
            return Ok(Step::More(1));
        };
        let same = |path: &String| without_query(path.as_bytes()) == without_query(target);
        match self.paths.iter().any(same) {
            true => Ok(Step::Done { value: (), used }),
            false => Err(Refusal::NotFound),
        }
    }
}

impl Response {
    /// One response. `time` is the Unix time, seconds.
    pub fn write(&self, time: i64, draw_one: Draw<'_>) -> Vec<u8> {
        let mut out = format!("HTTP/{} {} {}\r\n", self.version, self.status, self.reason);
        push_headers(&self.headers, draw_one, &mut out);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("date")) {
            out.push_str(&format!("Date: {}\r\n", date(time)));
        }
        out.push_str("\r\n");
        out.into_bytes()
    }
}

/// Reads a server's response, whatever it says, from the front of `bytes`.
///
/// # Errors
/// [`Error::TooLong`] above [`MAX_HEAD`].
pub fn skip_response(bytes: &[u8]) -> Result<Step<()>, Error> {
    end_of_head(bytes).ok_or(Protocol::Http.too_long("the response in front of a connection", MAX_HEAD))
}

/// Where the head ends. `None`: nowhere that it may.
fn end_of_head(bytes: &[u8]) -> Option<Step<()>> {
    let looked = &bytes[..bytes.len().min(MAX_HEAD)];
    match looked.windows(4).position(|four| four == b"\r\n\r\n") {
        Some(at) => Some(Step::Done {
            value: (),
            used: at + 4,
        }),
        None if bytes.len() < MAX_HEAD => Some(Step::More(1)),
        None => None,
    }
}

/// The target of a request, once its line is whole.
fn target(bytes: &[u8]) -> Result<Option<&[u8]>, Refusal> {
    let method = bytes.iter().take_while(|b| is_token(**b)).count();
    if method > MAX_METHOD {
        return Err(Refusal::BadRequest);
    }
    let rest = match bytes.get(method) {
        None => return Ok(None),
        Some(b' ') if method > 0 => &bytes[method + 1..],
        Some(_) => return Err(Refusal::BadRequest),
    };
    let len = rest.iter().take_while(|b| b.is_ascii_graphic() || **b >= 0x80).count();
    let version = match rest.get(len) {
        None if bytes.len() < MAX_HEAD => return Ok(None),
        Some(b' ') if len > 0 => &rest[len + 1..],
        _ => return Err(Refusal::BadRequest),
    };
    let as_wanted = |(byte, wanted): (&u8, &u8)| match wanted {
        b'0' => byte.is_ascii_digit(),
        _ => byte == wanted,
    };
    const VERSION: &[u8] = b"HTTP/0.0\r\n";
    if !version.iter().zip(VERSION).all(as_wanted) {
        return Err(Refusal::BadRequest);
    }
    Ok((version.len() >= VERSION.len()).then_some(&rest[..len]))
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn without_query(target: &[u8]) -> &[u8] {
    target.split(|b| *b == b'?').next().unwrap_or(target)
}

/// A Unix time, seconds, as HTTP has it (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(time: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    // Until the end of the year 9999.
    let time = time.clamp(0, 253_402_300_799);
    let (days, second) = (time / 86_400, time % 86_400);
    let weekday = DAYS[(days % 7) as usize];
    // Years that begin in March end with the leap day.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 2 } else { month - 10 };
    let year = era * 400 + year_of_era + i64::from(month < 2);
    let month = MONTHS[month as usize];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests;
