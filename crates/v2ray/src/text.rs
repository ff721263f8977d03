//! Characters that do not show as themselves, and would let a text forge lines or reorder what a reader sees.

use std::borrow::Cow;
use std::fmt::Write;

/// True for control characters, the separators of lines and paragraphs, and marks that turn the direction of what
/// follows them.
///
/// Marks that names need, such as those that join emoji or Persian letters, are none of these.
pub fn is_hidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with hidden characters written out, such as `\n` or `\u{1b}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '\t' | '\r' | '\n' => write!(out, "{}", c.escape_default()),
            c if is_hidden(c) => write!(out, "{}", c.escape_unicode()),
            c => out.write_char(c),
        };
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_forge_a_line_is_written_out() {
        for (text, shown) in [
            ("a@b.example", "a@b.example"),
            (
                "名前 \u{1f468}\u{200d}\u{1f467} نیم\u{200c}فاصله",
                "名前 \u{1f468}\u{200d}\u{1f467} نیم\u{200c}فاصله",
            ),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[2J\0\u{7f}", "\\u{1b}[2J\\u{0}\\u{7f}"),
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            (
                "gpj.\u{202e}exe\u{2028}x\u{2066}",
                "gpj.\\u{202e}exe\\u{2028}x\\u{2066}",
            ),
        ] {
            assert_eq!(escape(text), shown);
        }
    }
}
