//! Queries of requests, decoded as a form: `+` is a space. Apps do not encode what they write there, so anything may come.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Pairs that are looked at.
const PAIRS: usize = 16;

/// All but what RFC 3986 leaves as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What a request asks with. The first of two equal keys counts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Query {
    /// The session.
    pub session: Option<String>,
    /// The file.
    pub file: Option<String>,
    /// What shows that the file was accepted.
    pub token: Option<String>,
    /// The PIN.
    pub pin: Option<String>,
    /// The fingerprint of whoever asks.
    pub fingerprint: Option<String>,
}

impl Query {
    /// Reads what stands behind the `?`. Whatever makes no sense is left out.
    pub fn read(text: &str) -> Query {
        let mut query = Query::default();
        for pair in text.split('&').take(PAIRS) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let place = match &*decoded(key) {
                "sessionId" => &mut query.session,
                "fileId" => &mut query.file,
                "token" => &mut query.token,
                "pin" => &mut query.pin,
                "fingerprint" => &mut query.fingerprint,
                _ => continue,
            };
            place.get_or_insert_with(|| decoded(value));
        }
        query
    }
}

fn decoded(text: &str) -> String {
    let text: Cow<'_, str> = match text.contains('+') {
        true => text.replace('+', " ").into(),
        false => text.into(),
    };
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// A path with pairs behind it.
pub fn target(path: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let mut target = path.to_owned();
    let mut mark = '?';
    for (key, value) in pairs {
        if let Some(value) = value {
            target.push(mark);
            target.push_str(key);
            target.push('=');
            target.extend(utf8_percent_encode(value, ENCODED));
            mark = '&';
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_decoded_and_the_first_of_two_counts() {
        let query = Query::read("sessionId=a+b%2Bc&fileId=1&fileId=2&token=%ff&%70in=123&x&=&sessionId=");
        assert_eq!(query.session.as_deref(), Some("a b+c"));
        assert_eq!(query.file.as_deref(), Some("1"));
        assert_eq!(query.token.as_deref(), Some("\u{fffd}"));
        assert_eq!(query.pin.as_deref(), Some("123"));
        assert_eq!(Query::read(""), Query::default());
        assert_eq!(Query::read("pin").pin.as_deref(), Some(""));
        assert_eq!(
            Query::read(&"x&".repeat(16)),
            Query::read(&format!("{}pin=1", "x&".repeat(16)))
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let odd = "a b&c=d?é/#%";
        let text = target("/x", &[("sessionId", Some(odd)), ("token", None), ("pin", Some("12"))]);
        let (_, query) = text.split_once('?').unwrap();
        assert_eq!(Query::read(query).session.as_deref(), Some(odd));
        assert_eq!(Query::read(query).pin.as_deref(), Some("12"));
        assert_eq!(target("/x", &[("token", None)]), "/x");
    }
}
