//! What a request says beside its payload: in its path, its query, its headers or its cookies.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// Characters that stand for themselves in a query.
const QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'&')
    .add(b'+')
    .add(b'%')
    .add(b'=');

/// A header of a list, by its name without case.
pub fn header<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
    found.map(|(_, value)| *value)
}

/// A cookie of a list of headers.
pub fn cookie<'a>(headers: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    let lines = headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case("cookie"));
    let mut pairs = lines.flat_map(|(_, value)| value.split(';'));
    pairs.find_map(|pair| match pair.trim_matches([' ', '\t']).split_once('=') {
        Some((n, value)) if n == name => Some(value.trim_matches('"')),
        _ => None,
    })
}

/// A value of a query, without percent-encoding.
pub fn query<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    query.split('&').find_map(|pair| {
        let (n, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decode_str(n).decode_utf8().ok()? == name).then(|| percent_decode_str(value).decode_utf8_lossy())
    })
}

/// The query of a target or URL; empty if it has none.
pub fn query_of(url: &str) -> &str {
    let url = url.split('#').next().unwrap_or_default();
    url.split_once('?').map_or("", |(_, query)| query)
}

/// Adds a pair to a query.
pub(super) fn push_query(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.extend(utf8_percent_encode(name, QUERY));
    query.push('=');
    query.extend(utf8_percent_encode(value, QUERY));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values() {
        let headers = [("Cookie", "a=1; bc=\"2\""), ("X-Y", "v"), ("cookie", "d=e=f")];
        assert_eq!(header(&headers, "x-y"), Some("v"));
        assert_eq!(cookie(&headers, "bc"), Some("2"));
        assert_eq!(cookie(&headers, "d"), Some("e=f"));
        assert_eq!((cookie(&headers, "b"), header(&headers, "x")), (None, None));
        assert_eq!(query("a=b&c%20d=%41", "c d").as_deref(), Some("A"));
        assert_eq!(query("ab=1&b", "b").as_deref(), Some(""));
        assert_eq!(query("", "b"), None);
        assert_eq!((query_of("/a?b=c#d?e"), query_of("/a")), ("b=c", ""));
        let mut text = "a=b".to_owned();
        push_query(&mut text, "c&d", "e f=");
        assert_eq!(text, "a=b&c%26d=e%20f%3D");
        assert_eq!(query(&text, "c&d").as_deref(), Some("e f="));
    }
}
