//! What the page carries inside: its policy, and the result itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    STANDARD.encode(Sha256::digest(text))
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
    let without = RunResult {
        windows: Vec::new(),
        ..run.clone()
    };
    (encode(&without), false)
}
