//! What the page carries inside: its policy, and the result itself.

use sha2::{Digest as _, Sha256};

use crate::result::RunResult;

/// Bytes of the embedded result above which single windows are left out of it.
const EMBED_LIMIT: usize = 600_000;

/// The content security policy for exactly this style and this script.
pub(super) fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(style),
        hash(script)
    )
}

fn hash(text: &str) -> String {
    base64(&Sha256::digest(text.as_bytes()))
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut word = [0u8; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, word[0], word[1], word[2]]);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

/// The result as JSON that cannot end the element it stands in, and whether all windows are in it.
///
/// The characters that HTML cares for are written as JSON escapes, so the text stays the same JSON value.
pub(super) fn result(run: &RunResult) -> (String, bool) {
    let encode = |run: &RunResult| {
        let text = serde_json::to_string(run).unwrap_or_else(|_| "null".to_owned());
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '<' => safe.push_str("\\u003c"),
                '>' => safe.push_str("\\u003e"),
                '&' => safe.push_str("\\u0026"),
                '\u{2028}' => safe.push_str("\\u2028"),
                '\u{2029}' => safe.push_str("\\u2029"),
                c => safe.push(c),
            }
        }
        safe
    };
    let whole = encode(run);
    if whole.len() <= EMBED_LIMIT || run.windows.is_empty() {
        return (whole, true);
    }
    (
        encode(&RunResult {
            windows: Vec::new(),
            ..run.clone()
        }),
        false,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
