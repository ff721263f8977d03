//! HTTP/1.1 as far as a proxy needs it: heads, bodies' borders, the proxy's two ways of working.

pub mod body;
pub mod client;
pub mod front;
pub mod head;
pub mod proxy;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Standard alphabet; padding is written, and accepted or not when reading.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The value of `Authorization` or `Proxy-Authorization` for a user name and password (RFC 7617).
pub fn basic_credentials(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{password}")))
}

/// User name and password of a header value, if it is of the Basic scheme and well formed.
pub fn parse_basic_credentials(value: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (scheme, rest) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut user = BASE64.decode(rest.trim()).ok()?;
    let colon = user.iter().position(|b| *b == b':')?;
    let password = user.split_off(colon + 1);
    user.pop();
    Some((user, password))
}

/// The host of `host:port`; brackets stay.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((front, port))
            if port.bytes().all(|b| b.is_ascii_digit()) && (!front.contains(':') || front.ends_with(']')) =>
        {
            front
        }
        _ => host,
    }
}

/// Whether two hosts are the same, whatever ports are named with them.
pub(crate) fn same_host(a: &str, b: &str) -> bool {
    without_port(a).eq_ignore_ascii_case(without_port(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_credentials_both_ways() {
        assert_eq!(
            basic_credentials("Aladdin", "open sesame"),
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
        );
        for value in ["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "basic QWxhZGRpbjpvcGVuIHNlc2FtZQ"] {
            let (user, password) = parse_basic_credentials(value).unwrap();
            assert_eq!((&user[..], &password[..]), (&b"Aladdin"[..], &b"open sesame"[..]));
        }
        assert_eq!(
            parse_basic_credentials(&basic_credentials("a", ":b:")).unwrap().1,
            b":b:"
        );
        for wrong in ["Basic", "Bearer abc", "Basic !!!!", "Basic YWJj", ""] {
            assert_eq!(parse_basic_credentials(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_host_is_the_same_whatever_its_port() {
        for (a, b) in [("[::1]:80", "[::1]"), ("::1", "::1"), ("A:80", "a"), ("a:x", "a:x")] {
            assert!(same_host(a, b) && same_host(b, a), "{a} {b}");
        }
        for (a, b) in [("[::1]:80", "::1"), ("::1", ":"), ("a:x", "a"), ("a.b", "a"), ("", "a")] {
            assert!(!same_host(a, b) && !same_host(b, a), "{a} {b}");
        }
    }
}
