//! Characters that do not show as themselves, and would let a text forge lines or reorder what a reader sees; and bytes as digits.

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

/// Two lower-case hexadecimal digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// The bytes of hexadecimal digits. Nothing else counts.
#[cfg(test)]
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let two = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(two).collect()
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

    #[test]
    fn digits_of_bytes() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0x00, 0x0f, 0xf0, 0xa9, 0xff]), "000ff0a9ff");
    }
}
