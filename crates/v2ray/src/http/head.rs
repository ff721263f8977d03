//! Request and response heads (RFC 9112).
//!
//! Strict where leniency has been a way to smuggle requests: lines end in CR LF, names and values hold what the grammar
//! allows, and folded lines are refused.

use crate::{Error, Protocol, Step};

/// Most header lines a head may have.
pub const MAX_HEADERS: usize = 128;

/// The head of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestHead<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The target: a path, an absolute URI, host and port, or `*`.
    pub target: &'a str,
    /// The minor version: 0 or 1.
    pub minor: u8,
    /// The header lines.
    pub headers: Headers<'a>,
}

/// The head of a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResponseHead<'a> {
    /// The minor version: 0 or 1.
    pub minor: u8,
    /// The status, 100 to 999.
    pub status: u16,
    /// The reason, for people.
    pub reason: &'a str,
    /// The header lines.
    pub headers: Headers<'a>,
}

/// Header lines in the order they came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Headers<'a> {
    lines: Vec<(&'a str, &'a str)>,
}

impl<'a> Headers<'a> {
    /// All lines: names as sent, values without the white space around them.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        self.lines.iter().copied()
    }

    /// The values of a header, whose name is compared without case.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a str> + 's {
        self.iter()
            .filter(move |(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The first value of a header.
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Whether a header that is a list of words holds this one, without case.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|w| w.eq_ignore_ascii_case(word))
    }

    /// The words of a header that is a list, over all its lines.
    pub fn words<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a str> + 's {
        self.all(name)
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|word| !word.is_empty())
    }
}

/// Reads the head of a request from the front of `bytes`, which may be at most `limit` bytes long.
///
/// # Errors
/// [`Error::TooLong`] and [`Error::Malformed`]; a server answers 431 and 400.
pub fn parse_request(bytes: &[u8], limit: usize, protocol: Protocol) -> Result<Step<RequestHead<'_>>, Error> {
    let text = match find(bytes, limit, protocol)? {
        Step::More(n) => return Ok(Step::More(n)),
        Step::Done { value, .. } => value,
    };
    let wrong = |problem| protocol.malformed(problem);
    let (line, rest) = text.split_once("\r\n").unwrap_or((text, ""));
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong("the request line is not method, target and version"));
    };
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(wrong("the method is not a word"));
    }
    if target.is_empty() || !target.bytes().all(|b| b.is_ascii_graphic() || b >= 0x80) {
        return Err(wrong("the target is empty or holds a control character"));
    }
    let minor = minor(version).ok_or(wrong("the version is neither HTTP/1.0 nor HTTP/1.1"))?;
    let headers = headers(rest, protocol)?;
    Ok(Step::Done {
        value: RequestHead {
            method,
            target,
            minor,
            headers,
        },
        used: text.len() + 2,
    })
}

/// Reads the head of a response from the front of `bytes`, which may be at most `limit` bytes long.
///
/// # Errors
/// [`Error::TooLong`] and [`Error::Malformed`].
pub fn parse_response(bytes: &[u8], limit: usize, protocol: Protocol) -> Result<Step<ResponseHead<'_>>, Error> {
    let text = match find(bytes, limit, protocol)? {
        Step::More(n) => return Ok(Step::More(n)),
        Step::Done { value, .. } => value,
    };
    let wrong = |problem| protocol.malformed(problem);
    let (line, rest) = text.split_once("\r\n").unwrap_or((text, ""));
    let (version, after) = line.split_once(' ').unwrap_or((line, ""));
    let (status, reason) = after.split_once(' ').unwrap_or((after, ""));
    let minor = minor(version).ok_or(wrong("the version is neither HTTP/1.0 nor HTTP/1.1"))?;
    let digits = status.len() == 3 && status.bytes().all(|b| b.is_ascii_digit());
    let status = match status.parse::<u16>() {
        Ok(status) if digits && status >= 100 => status,
        _ => return Err(wrong("the status is not a number of three digits")),
    };
    // Passed on as it is: what could be read as the end of the line would be.
    if !is_value(reason) {
        return Err(wrong("the reason holds a control character"));
    }
    let headers = headers(rest, protocol)?;
    Ok(Step::Done {
        value: ResponseHead {
            minor,
            status,
            reason,
            headers,
        },
        used: text.len() + 2,
    })
}

/// Finds the head: everything up to the empty line, whose own CR LF is not part of the text.
fn find(bytes: &[u8], limit: usize, protocol: Protocol) -> Result<Step<&str>, Error> {
    let window = &bytes[..bytes.len().min(limit)];
    let end = end(window);
    match end {
        // Some would take this for the end of a line; whoever waits for the end of the head would wait for ever.
        _ if has_bare_lf(end.map_or(window, |end| &bytes[..end])) => Err(protocol.malformed("a line ends without CR")),
        Some(end) => {
            let text =
                std::str::from_utf8(&bytes[..end + 2]).map_err(|_| protocol.malformed("the head is not text"))?;
            let used = end + 4;
            Ok(Step::Done { value: text, used })
        }
        None if bytes.len() >= limit => Err(protocol.too_long("the head", limit)),
        None => Ok(Step::More(1)),
    }
}

fn has_bare_lf(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'\n') || bytes.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r')
}

/// Offset of the first CR LF CR LF. Looks at every fourth byte where it can: a head that comes byte by byte is searched
/// again each time.
fn end(bytes: &[u8]) -> Option<usize> {
    let mut at = 3;
    loop {
        match bytes.get(at)? {
            b'\n' if bytes[at - 3..at] == *b"\r\n\r" => return Some(at - 3),
            b'\n' | b'\r' => at += 1,
            _ => at += 4,
        }
    }
}

fn headers(text: &str, protocol: Protocol) -> Result<Headers<'_>, Error> {
    let wrong = |problem| protocol.malformed(problem);
    let mut lines = Vec::new();
    for line in text.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or(wrong("a header line has no colon"))?;
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(wrong("a header name is not a word"));
        }
        if value.bytes().any(|b| b != b'\t' && b.is_ascii_control()) {
            return Err(wrong("a header value holds a control character"));
        }
        if lines.len() == MAX_HEADERS {
            return Err(wrong("the head has more than 128 lines"));
        }
        lines.push((name, value.trim_matches([' ', '\t'])));
    }
    Ok(Headers { lines })
}

fn minor(version: &str) -> Option<u8> {
    match version {
        "HTTP/1.1" => Some(1),
        "HTTP/1.0" => Some(0),
        _ => None,
    }
}

/// The characters of a token (RFC 9110 section 5.6.2).
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a text may be written as a header value.
pub(crate) fn is_value(text: &str) -> bool {
    !text.bytes().any(|b| b != b'\t' && b.is_ascii_control())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(bytes: &[u8]) -> Result<Step<RequestHead<'_>>, Error> {
        parse_request(bytes, 1024, Protocol::Http)
    }

    #[test]
    fn every_boundary() {
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: x.example\r\nConnection: a, Upgrade\r\nconnection: b\r\n\r\nbody";
        let whole = bytes.len() - 4;
        for n in 0..whole {
            assert_eq!(request(&bytes[..n]), Ok(Step::More(1)), "{n}");
        }
        let Ok(Step::Done { value, used }) = request(bytes) else {
            panic!()
        };
        assert_eq!(used, whole);
        assert_eq!((value.method, value.target, value.minor), ("GET", "/a?b", 1));
        assert_eq!(value.headers.get("HOST"), Some("x.example"));
        assert!(value.headers.has_word("Connection", "upgrade") && value.headers.has_word("Connection", "b"));
        assert!(!value.headers.has_word("Connection", "c"));
        let bytes = b"HTTP/1.1 101 Switching Protocols\r\n\r\n";
        for n in 0..bytes.len() {
            assert_eq!(parse_response(&bytes[..n], 99, Protocol::Http), Ok(Step::More(1)));
        }
        let head = parse_response(bytes, 99, Protocol::Http).unwrap().done().unwrap();
        assert_eq!((head.status, head.reason), (101, "Switching Protocols"));
        assert!(
            parse_response(b"HTTP/1.1 200\r\n\r\n", 99, Protocol::Http)
                .unwrap()
                .done()
                .is_some()
        );
    }

    #[test]
    fn limits() {
        let long = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 2000]].concat();
        assert!(matches!(request(&long), Err(Error::TooLong { limit: 1024, .. })));
        assert!(matches!(request(&long[..1023]), Ok(Step::More(1))));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(129));
        assert!(request(many.as_bytes()).is_err());
        let enough = format!("GET / HTTP/1.1\r\n{}\r\n", "a:b\r\n".repeat(128));
        assert!(request(enough.as_bytes()).is_ok());
    }

    #[test]
    fn wrong_heads() {
        for head in [
            "GET /\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            " GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1 \r\n\r\n",
            "GET / HTTP/2.0\r\n\r\n",
            "G(T / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
            "GET / HTTP/1.1\r\nA : b\r\n\r\n",
            "GET / HTTP/1.1\r\n folded\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            "GET / HTTP/1.1\r\nA: \0\r\n\r\n",
            "GET /\t HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert!(request(head.as_bytes()).is_err(), "{head:?}");
        }
        assert!(request(b"GET /\xff HTTP/1.1\r\n\r\n").is_err());
        // These have no end that we would accept, and are not waited for.
        for head in ["GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nA: b\nC:", "\n"] {
            assert!(request(head.as_bytes()).is_err(), "{head:?}");
        }
        for head in [
            "HTTP/1.1 99 x\r\n\r\n",
            "HTTP/1.1 1000 x\r\n\r\n",
            "HTTP/1.1 +20 x\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
            // Would be passed on, and read by some as the end of the line.
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\rA: b\r\n\r\n",
        ] {
            assert!(parse_response(head.as_bytes(), 99, Protocol::Http).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn the_end_is_where_a_plain_search_finds_it(bytes in prop::collection::vec(prop::sample::select(&b"\r\na"[..]), 0..40)) {
            prop_assert_eq!(end(&bytes), bytes.windows(4).position(|w| w == b"\r\n\r\n"));
        }
    }
}
