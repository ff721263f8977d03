//! Headers: who may ask, whether a copy is fresh, and what a file is called.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use crate::path::encoded;
use crate::range::{Wanted, wanted};

/// Whether a `Host` (RFC 9110 section 7.2) is one under which this server may be asked: an address, or one of `names`. A page of a
/// stranger whose name was made to lead here is none (DNS rebinding).
pub fn is_ours(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else {
            return false;
        };
        return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        Some(_) => return false,
        None => host,
    };
    let plain = name.strip_suffix('.').unwrap_or(name);
    name.parse::<Ipv4Addr>().is_ok() || names.iter().any(|known| known.eq_ignore_ascii_case(plain))
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether something that changes files here comes from a page of ours, or from a program that is no browser: by `Origin` (RFC 6454)
/// and `Sec-Fetch-Site`. A form of a page without referrer has the origin `null`; that it is ours is then said by the other one.
pub fn is_from_here(origin: Option<&[u8]>, site: Option<&[u8]>, scheme: &str, host: &[u8]) -> bool {
    let same = match site {
        None => false,
        Some(b"same-origin" | b"none") => true,
        Some(_) => return false,
    };
    match origin {
        None => true,
        Some(b"null") => same,
        Some(origin) => {
            let rest = origin
                .strip_prefix(scheme.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"://"));
            rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
        }
    }
}

/// Which state of a file is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Version {
    /// The entity tag (RFC 9110 section 8.8.3), weak while another change could have the same.
    pub tag: String,
    /// `Last-Modified`, as it is sent.
    pub date: String,
    /// Whether that date can tell this state from every other.
    pub dated: bool,
}

/// Conditions of a request, as its headers say them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'a> {
    /// `If-None-Match`.
    pub none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`.
    pub modified_since: Option<&'a [u8]>,
    /// `If-Range`.
    pub if_range: Option<&'a [u8]>,
    /// `Range`.
    pub range: Option<&'a [u8]>,
}

/// What is answered.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// 304: what the client has is right.
    Fresh,
    /// 200.
    Whole,
    /// 206.
    Part(Range<u64>),
    /// 416.
    Nothing,
}

/// Decides in the order of RFC 9110 section 13.2.2.
pub fn answer(conditions: Conditions<'_>, version: &Version, size: u64) -> Answer {
    let fresh = match (conditions.none_match, conditions.modified_since) {
        (Some(tags), _) => matches_weakly(tags, &version.tag),
        // Only the very date that was given out: a file that was put back has an older one.
        (None, Some(date)) => date == version.date.as_bytes(),
        (None, None) => false,
    };
    if fresh {
        return Answer::Fresh;
    }
    let range = match conditions.if_range {
        Some(state) if !is_same(state, version) => None,
        _ => conditions.range,
    };
    match wanted(range, size) {
        Wanted::Whole => Answer::Whole,
        Wanted::Part(range) => Answer::Part(range),
        Wanted::Nothing => Answer::Nothing,
    }
}

fn matches_weakly(tags: &[u8], own: &str) -> bool {
    let strong = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let own = strong(own.as_bytes());
    tags.trim_ascii() == b"*"
        || tags
            .split(|byte| *byte == b',')
            .any(|tag| strong(tag.trim_ascii()) == own)
}

/// The comparison of section 13.1.5: strong, by tag or by date.
fn is_same(state: &[u8], version: &Version) -> bool {
    match state.starts_with(b"\"") || state.starts_with(b"W/") {
        true => state == version.tag.as_bytes() && !version.tag.starts_with("W/"),
        false => version.dated && state == version.date.as_bytes(),
    }
}

/// `Content-Disposition` (RFC 6266): to be shown or stored, and the name, also for those who read no `filename*`.
pub fn disposition(name: &[u8], shown: bool) -> String {
    let text = String::from_utf8_lossy(name);
    let plain: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' | '%' | '/' => '_',
            ' '..='~' => c,
            _ => '_',
        })
        .collect();
    let kind = if shown { "inline" } else { "attachment" };
    format!(
        "{kind}; filename=\"{plain}\"; filename*=UTF-8''{}",
        encoded(text.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_listed_name() {
        let names = ["localhost".to_owned(), "files.example".to_owned()];
        for host in [
            "127.0.0.1",
            "192.0.2.7:8000",
            "[::1]",
            "[2001:db8::7]:8000",
            "localhost:1",
            "LocalHost",
            "files.example.:443",
        ] {
            assert!(is_ours(host.as_bytes(), &names), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8000",
            "files.example.evil.example",
            "127.0.0.1.evil.example",
            "2130706433",
            "0x7f.1",
            "127.1",
            "127.0.0.1:x",
            "127.0.0.1:+1",
            "127.0.0.1:99999",
            "[::1",
            "[::1]x",
            "[evil]",
            "::1",
            "localhost@evil.example",
            "localhost/",
        ] {
            assert!(!is_ours(host.as_bytes(), &names), "{host}");
        }
        assert!(!is_ours(b"\xff", &names));
    }

    #[test]
    fn pages_of_others_change_nothing() {
        let from = |origin: Option<&str>, site: Option<&str>| {
            let bytes = |text: Option<&'static str>| text.map(str::as_bytes);
            let leak = |text: Option<&str>| text.map(|text| &*Box::leak(text.to_owned().into_boxed_str()));
            is_from_here(bytes(leak(origin)), bytes(leak(site)), "https", b"192.0.2.7:8000")
        };
        assert!(from(None, None), "curl");
        assert!(from(Some("https://192.0.2.7:8000"), Some("same-origin")));
        assert!(from(Some("https://192.0.2.7:8000"), None));
        assert!(from(Some("null"), Some("same-origin")), "a form of ours");
        for (origin, site) in [
            (Some("https://evil.example"), None),
            (Some("https://192.0.2.7"), None),
            (Some("http://192.0.2.7:8000"), None),
            (Some("null"), None),
            (Some("null"), Some("cross-site")),
            (Some("https://192.0.2.7:8000"), Some("cross-site")),
            (None, Some("same-site")),
        ] {
            assert!(!from(origin, site), "{origin:?} {site:?}");
        }
    }

    fn version(tag: &str, dated: bool) -> Version {
        Version {
            tag: tag.into(),
            date: "Sun, 06 Nov 1994 08:49:37 GMT".into(),
            dated,
        }
    }

    #[test]
    fn a_changed_file_is_sent_whole() {
        let range = Some(&b"bytes=10-"[..]);
        let asked = |if_range: &'static str, version: &Version| {
            let conditions = Conditions {
                if_range: Some(if_range.as_bytes()),
                range,
                ..Conditions::default()
            };
            answer(conditions, version, 100)
        };
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let (strong, weak, young) = (
            version("\"a\"", true),
            version("W/\"a\"", true),
            version("\"a\"", false),
        );
        assert_eq!(asked("\"a\"", &strong), Answer::Part(10..100));
        assert_eq!(asked("\"b\"", &strong), Answer::Whole);
        assert_eq!(asked("W/\"a\"", &strong), Answer::Whole);
        assert_eq!(asked("W/\"a\"", &weak), Answer::Whole);
        assert_eq!(asked(date, &strong), Answer::Part(10..100));
        assert_eq!(asked(date, &young), Answer::Whole);
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:38 GMT", &strong), Answer::Whole);
        let none = Conditions {
            range: Some(b"bytes=100-"),
            ..Conditions::default()
        };
        assert_eq!(answer(none, &strong, 100), Answer::Nothing);
    }

    #[test]
    fn what_is_fresh_is_not_sent_again() {
        let strong = version("\"a\"", true);
        let asked = |none_match: Option<&'static [u8]>, modified_since: Option<&'static [u8]>| {
            let conditions = Conditions {
                none_match,
                modified_since,
                ..Conditions::default()
            };
            answer(conditions, &strong, 100)
        };
        for tags in [&b"\"a\""[..], b"W/\"a\"", b"\"b\", \"a\"", b"*"] {
            assert_eq!(asked(Some(tags), None), Answer::Fresh);
        }
        assert_eq!(
            asked(Some(b"\"b\""), Some(b"Sun, 06 Nov 1994 08:49:37 GMT")),
            Answer::Whole
        );
        assert_eq!(asked(None, Some(b"Sun, 06 Nov 1994 08:49:37 GMT")), Answer::Fresh);
        assert_eq!(asked(None, Some(b"Mon, 07 Nov 1994 08:49:37 GMT")), Answer::Whole);
    }

    #[test]
    fn names_forge_no_headers() {
        assert_eq!(
            disposition("a \"b\"\r\nX: y\\你.txt".as_bytes(), false),
            "attachment; filename=\"a _b___X: y__.txt\"; filename*=UTF-8''a%20%22b%22%0D%0AX%3A%20y%5C%E4%BD%A0.txt"
        );
        assert_eq!(
            disposition(b"\xff", true),
            "inline; filename=\"_\"; filename*=UTF-8''%EF%BF%BD"
        );
    }
}
