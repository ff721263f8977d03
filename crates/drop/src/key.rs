//! Keys as text: 52 characters of base32 (RFC 4648 section 6, lower case, no padding).
//!
//! Short enough to be read out, marked by a double click, and without letters that differ only in case.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

/// Length of a key as text.
pub const TEXT_LEN: usize = 52;

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A static public key, by which an end is known.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        PublicKey(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        decode(text).map(|bytes| PublicKey(*bytes))
    }
}

/// Why a text is no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyTextError {
    /// It has another length than [`TEXT_LEN`].
    Length {
        /// Its length, characters.
        got: usize,
    },
    /// It has a character that keys do not have.
    Character {
        /// Where, from 1.
        position: usize,
        /// What stands there.
        found: char,
    },
    /// Its last character is one that no key ends with.
    Ending,
}

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTextError::Length { got } => write!(f, "a key has {TEXT_LEN} characters, not {got}"),
            KeyTextError::Character { position, found } => {
                write!(
                    f,
                    "character {position} of a key is {found:?}, not one of a to z and 2 to 7"
                )
            }
            KeyTextError::Ending => write!(f, "no key ends with this character: it was cut or mistyped"),
        }
    }
}

impl std::error::Error for KeyTextError {}

/// 32 bytes as text. Which characters are looked up depends on the bytes; keys are written and read on their owner's machine
/// only, once a run.
pub(crate) fn encode(bytes: &[u8; 32]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(TEXT_LEN));
    let (mut bits, mut have) = (0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        have += 8;
        while have >= 5 {
            have -= 5;
            text.push(char::from(ALPHABET[(bits >> have & 31) as usize]));
        }
    }
    // 256 bits leave one over.
    text.push(char::from(ALPHABET[(bits << (5 - have) & 31) as usize]));
    text
}

/// The bytes of a text, capital letters allowed.
pub(crate) fn decode(text: &str) -> Result<Zeroizing<[u8; 32]>, KeyTextError> {
    let mut bytes = Zeroizing::new([0; 32]);
    let (mut bits, mut have, mut at) = (0u32, 0, 0);
    let got = text.chars().count();
    if got != TEXT_LEN {
        return Err(KeyTextError::Length { got });
    }
    for (index, found) in text.chars().enumerate() {
        let value = match found {
            'a'..='z' => found as u32 - 'a' as u32,
            'A'..='Z' => found as u32 - 'A' as u32,
            '2'..='7' => found as u32 - '2' as u32 + 26,
            _ => {
                return Err(KeyTextError::Character {
                    position: index + 1,
                    found,
                });
            }
        };
        bits = bits << 5 | value;
        have += 5;
        if have >= 8 {
            have -= 8;
            bytes[at] = (bits >> have & 0xff) as u8;
            at += 1;
        }
    }
    match bits & ((1 << have) - 1) {
        0 => Ok(bytes),
        _ => Err(KeyTextError::Ending),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_base32_of_the_rfc() {
        // RFC 4648 section 10: "foobar" is MZXW6YTBOI; 32 bytes end in one bit and four zeros.
        let mut bytes = [0; 32];
        bytes[..6].copy_from_slice(b"foobar");
        let text = PublicKey::new(bytes).to_string();
        assert!(text.starts_with("mzxw6ytboi"), "{text}");
        assert_eq!(text.len(), TEXT_LEN);
        assert_eq!(PublicKey::new([0xff; 32]).to_string(), format!("{}q", "7".repeat(51)));
        assert_eq!(text.to_uppercase().parse(), Ok(PublicKey::new(bytes)));
    }

    #[test]
    fn errors_say_where() {
        let text = PublicKey::new([5; 32]).to_string();
        let parse = |text: &str| text.parse::<PublicKey>().unwrap_err();
        assert_eq!(parse(""), KeyTextError::Length { got: 0 });
        assert_eq!(parse(&text[1..]), KeyTextError::Length { got: 51 });
        let wrong = format!("{}1{}", &text[..6], &text[7..]);
        assert_eq!(
            parse(&wrong).to_string(),
            "character 7 of a key is '1', not one of a to z and 2 to 7"
        );
        assert_eq!(
            parse(&text.replace(&text[..1], "é")),
            KeyTextError::Character {
                position: 1,
                found: 'é'
            }
        );
        assert_eq!(parse(&format!("{}b", "a".repeat(51))), KeyTextError::Ending);
    }

    proptest! {
        #[test]
        fn keys_come_back(bytes in any::<[u8; 32]>()) {
            prop_assert_eq!(PublicKey::new(bytes).to_string().parse(), Ok(PublicKey::new(bytes)));
        }

        #[test]
        fn what_parses_is_written_alike(text in "[a-z2-7]{51}[aqAQb]|.{0,60}") {
            if let Ok(key) = text.parse::<PublicKey>() {
                prop_assert_eq!(key.to_string(), text.to_ascii_lowercase());
            }
        }
    }
}
