//! VLESS: requests, answers, packets, and the choice of a fallback.

use super::whole;
use crate::vless::fallback::{Fallback, Fallbacks};
use crate::{Step, UserId, vless};

pub(super) fn vless_request(data: &[u8]) {
    whole(data, vless::Request::decode);
    if let Ok(Step::Done { value, .. }) = vless::Request::decode(data) {
        let mut again = Vec::new();
        value.encode(&mut again);
        let used = again.len();
        assert_eq!(vless::Request::decode(&again), Ok(Step::Done { value, used }));
    }
}

pub(super) fn vless_response(data: &[u8]) {
    whole(data, vless::decode_response);
}

pub(super) fn vless_packet(data: &[u8]) {
    whole(data, |bytes| Ok(vless::packet::decode(bytes)));
}

pub(super) fn vless_fallback(data: &[u8]) {
    let entry = |name: &str, alpn: &str, path: &str, target: u8| Fallback {
        name: name.into(),
        alpn: alpn.into(),
        path: path.into(),
        target,
    };
    let fallbacks = Fallbacks::new([
        entry("", "", "", 1),
        entry("", "", "/a", 2),
        entry("a.example", "h2", "/b", 3),
    ]);
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (name, alpn) = (text(), text());
    let first = parts.next().unwrap_or_default();
    let choice = fallbacks.choose(&name, &alpn, first);
    assert!(
        choice.is_ok() || alpn.eq_ignore_ascii_case("h2"),
        "there is a default entry for all but one ALPN"
    );
    // Nothing is waited for once 64 bytes have come.
    assert!(first.len() < 64 || !fallbacks.wants_more(&name, &alpn, first));
    let mut users = vless::Users::new();
    assert!(users.insert(UserId::from_bytes([7; 16]), ()).is_ok());
    let _ = vless::first::inspect(first, &users);
}
