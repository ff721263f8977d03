//! Padding: bytes that every request has, so that their lengths say nothing.

use super::settings::{Padding, PaddingMethod, Span};

/// Letters and digits, for padding of the method `tokenish`.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// By how many bytes the length of `tokenish` padding may be outside of its range.
pub const TOLERANCE: u32 = 2;

/// Most padding that is made or looked for, bytes. It has to fit into a head.
pub const MAX_PADDING: u32 = 64 << 10;

/// Numbers for padding and choices, out of one seed. Nothing secret depends on them.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Begins with 64 random bits.
    pub fn new(seed: u64) -> Self {
        Dice(seed)
    }

    /// The next number (SplitMix64).
    pub fn roll(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 32) as u32
    }
}

/// Padding of a length out of the range.
pub fn make(padding: &Padding, dice: &mut Dice) -> String {
    let len = padding.bytes.pick(dice.roll()).min(MAX_PADDING);
    match method(padding) {
        PaddingMethod::Repeat => "X".repeat(len as usize),
        PaddingMethod::Tokenish => tokenish(len, dice),
    }
}

/// Whether padding is as long as it must be.
pub fn is_valid(padding: &Padding, value: &str) -> bool {
    let Span { from, to } = padding.bytes;
    let len = value.len().try_into().unwrap_or(u32::MAX);
    match method(padding) {
        PaddingMethod::Repeat => (from..=to).contains(&len),
        PaddingMethod::Tokenish => {
            let len = huffman_len(value);
            (from.saturating_sub(TOLERANCE)..=to.saturating_add(TOLERANCE)).contains(&len)
        }
    }
}

fn method(padding: &Padding) -> PaddingMethod {
    padding.obfuscation.as_ref().map_or(PaddingMethod::Repeat, |o| o.method)
}

/// Random letters and digits that HPACK writes in `len` bytes.
fn tokenish(len: u32, dice: &mut Dice) -> String {
    let (mut text, mut bits) = (String::new(), 0);
    while bits < len * 8 {
        let byte = BASE62[((u64::from(dice.roll()) * 62) >> 32) as usize];
        let more = bits_of(byte);
        if bits + more > len * 8 {
            break;
        }
        bits += more;
        text.push(char::from(byte));
    }
    text
}

/// Bytes that HPACK's Huffman code takes for a text (RFC 7541 section 5.2).
pub fn huffman_len(text: &str) -> u32 {
    let bits: u64 = text.bytes().map(|byte| u64::from(bits_of(byte))).sum();
    bits.div_ceil(8).try_into().unwrap_or(u32::MAX)
}

/// Bits of a character's code (RFC 7541 appendix B). What no header value should hold counts with the longest.
fn bits_of(byte: u8) -> u32 {
    #[rustfmt::skip]
    const BITS: [u8; 95] = [
        6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, // space to /
        5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, // 0 to ?
        13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, // @ to O
        7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, // P to _
        15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, // ` to o
        6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, // p to ~
    ];
    let at = usize::from(byte).checked_sub(32);
    at.and_then(|at| BITS.get(at)).map_or(30, |bits| u32::from(*bits))
}

/// Padding for tests of other modules.
#[cfg(test)]
pub(super) fn tests_padding(bytes: Span, obfuscation: Option<super::settings::Obfuscation>) -> Padding {
    Padding { bytes, obfuscation }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::{Obfuscation, PaddingPlace};
    use super::*;

    fn padding(method: PaddingMethod, bytes: Span) -> Padding {
        Padding {
            bytes,
            obfuscation: Some(Obfuscation {
                place: PaddingPlace::Header,
                key: "x_padding".into(),
                header: "X-Padding".into(),
                method,
            }),
        }
    }

    /// The examples of RFC 7541 appendix C.4 and C.6.
    #[test]
    fn lengths_of_the_rfc() {
        for (text, len) in [
            ("www.example.com", 12),
            ("no-cache", 6),
            ("custom-key", 8),
            ("custom-value", 9),
            ("302", 2),
            ("private", 5),
            ("Mon, 21 Oct 2013 20:13:21 GMT", 22),
            ("https://www.example.com", 17),
            ("foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1", 45),
        ] {
            assert_eq!(huffman_len(text), len, "{text}");
        }
    }

    #[test]
    fn lengths_at_the_borders() {
        let plain = Padding {
            bytes: Span::new(3, 5),
            obfuscation: None,
        };
        let good: Vec<bool> = (0..8).map(|n| is_valid(&plain, &"X".repeat(n))).collect();
        assert_eq!(good, [false, false, false, true, true, true, false, false]);
        // Zeros take five bits: 8 of them 5 bytes.
        let token = padding(PaddingMethod::Tokenish, Span::just(5));
        for (n, valid) in [(3, false), (4, true), (8, true), (11, true), (12, false)] {
            assert_eq!(is_valid(&token, &"0".repeat(n)), valid, "{n}");
        }
    }

    proptest! {
        #[test]
        fn what_is_made_is_valid(seed: u64, from in 1u32..2000, more in 0u32..500, repeat: bool) {
            let method = if repeat { PaddingMethod::Repeat } else { PaddingMethod::Tokenish };
            let padding = padding(method, Span::new(from, from + more));
            let made = make(&padding, &mut Dice::new(seed));
            prop_assert!(is_valid(&padding, &made), "{} {}", made.len(), huffman_len(&made));
        }
    }
}
