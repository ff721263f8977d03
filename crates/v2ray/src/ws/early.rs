//! Early data: the first payload inside the handshake.
//!
//! In xray's style the path ends with `?ed=N`; a first payload of at most N bytes goes into `Sec-WebSocket-Protocol` as unpadded
//! base64url. In v2ray's style up to N bytes go into a header of any name, or behind the path if the name is empty.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Most bytes of early data that are accepted, decoded.
pub const MAX: usize = 8 * 1024;

/// The header that carries early data in xray's style.
pub const PROTOCOL_HEADER: &str = "Sec-WebSocket-Protocol";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Early data as text.
pub fn encode(data: &[u8]) -> String {
    BASE64.encode(data)
}

/// Early data of a text in either alphabet, padded or not. `None` if the text is none, or too much: that is no error, for
/// the header has other uses.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX.div_ceil(3) * 4 {
        return None;
    }
    let url: Vec<u8> = text
        .bytes()
        .map(|b| match b {
            b'+' => b'-',
            b'/' => b'_',
            b => b,
        })
        .collect();
    BASE64
        .decode(url)
        .ok()
        .filter(|data| !data.is_empty() && data.len() <= MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let data = [0xfb, 0xff, 0xbf, 1];
        assert_eq!(encode(&data), "-_-_AQ");
        for text in ["-_-_AQ", "-_-_AQ==", "+/+/AQ==", "+/+/AQ", " -_-_AQ "] {
            assert_eq!(decode(text).as_deref(), Some(&data[..]), "{text}");
        }
        for text in ["", "chat, superchat", "a", "==", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode(&encode(&vec![7; MAX])).map(|d| d.len()), Some(MAX));
        assert_eq!(decode(&encode(&vec![7; MAX + 1])), None);
    }
}
