//! Session ids.

use super::settings::Table;

/// Longest session id that a server reads, bytes.
pub const MAX_ID: usize = 128;
/// Random bytes that an id takes.
pub const RANDOM: usize = 2 * MAX_ID;

/// The predefined alphabets, by their names.
pub const TABLES: &[(&str, &str)] = &[
    ("ALPHABET", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("Alphabet", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    ("BASE36", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    (
        "Base62",
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    ),
    ("HEX", "0123456789ABCDEF"),
    ("alphabet", "abcdefghijklmnopqrstuvwxyz"),
    ("base36", "0123456789abcdefghijklmnopqrstuvwxyz"),
    ("hex", "0123456789abcdef"),
    ("number", "0123456789"),
];

/// A new id. `random` must be unguessable: whoever knows an id can disturb its session.
pub fn make(table: Option<&Table>, random: &[u8; RANDOM]) -> String {
    let Some(Table { alphabet, length }) = table.filter(|table| !table.alphabet.is_empty()) else {
        return uuid(random);
    };
    let [a, b, c, d, rest @ ..] = random;
    let count = length.pick(u32::from_be_bytes([*a, *b, *c, *d])) as usize;
    let letters = alphabet.as_bytes();
    let pairs = rest.as_chunks::<2>().0.iter().cycle().take(count.clamp(1, MAX_ID - 2));
    let drawn = pairs.map(|pair| letters[(usize::from(u16::from_be_bytes(*pair)) * letters.len()) >> 16]);
    drawn.map(char::from).collect()
}

/// A random UUID (RFC 9562 section 5.4).
fn uuid(random: &[u8; RANDOM]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in random[..16].iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let byte = match at {
            6 => byte & 0x0f | 0x40,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

/// Whether a server takes a text for an id.
pub fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_ID && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::super::settings::Span;
    use super::*;

    #[test]
    fn what_ids_look_like() {
        let random: [u8; RANDOM] = std::array::from_fn(|at| (at * 7) as u8);
        assert_eq!(make(None, &random), "00070e15-1c23-4a31-b83f-464d545b6269");
        let table = Table {
            alphabet: "ab".into(),
            length: Span::just(20),
        };
        let id = make(Some(&table), &random);
        assert!(id.len() == 20 && id.bytes().all(|b| b == b'a' || b == b'b') && id.contains('a') && id.contains('b'));
        assert!(is_id(&id) && is_id(&make(None, &random)));
        assert!(!is_id("") && !is_id("a b") && !is_id("ä") && !is_id(&"a".repeat(MAX_ID + 1)));
        let long = Table {
            alphabet: "x".into(),
            length: Span::just(u32::MAX),
        };
        assert!(is_id(&make(Some(&long), &random)));
    }
}
