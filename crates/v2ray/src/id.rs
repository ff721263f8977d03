//! User ids of VLESS and VMess.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

use crate::Error;

/// Lengths of the five groups of an id's text, in hexadecimal digits.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// A user's id: 16 bytes that are also the user's secret. Comparison takes the same time wherever the bytes differ.
#[derive(Clone, Copy, Eq)]
pub struct UserId([u8; 16]);

impl UserId {
    /// An id of these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        UserId(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The number in bytes 6 and 7, which routing rules may ask for.
    pub const fn route(&self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// A random id (RFC 9562 version 4) made of 16 random bytes.
    pub const fn random(mut random: [u8; 16]) -> Self {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        UserId(random)
    }

    /// Reads the text of an id.
    ///
    /// 32 to 36 characters are 32 hexadecimal digits, with or without a dash after the 8th, 12th, 16th and 20th. 1 to 30
    /// bytes of anything are a name; its id is the first 16 bytes of the SHA-1 of 16 zero bytes and the name, marked as
    /// version 5, as the peers do it.
    ///
    /// # Errors
    /// [`Error::UserIdLength`] and [`Error::UserIdText`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        match text.len() {
            1..=30 => Ok(Self::of_name(text)),
            32..=36 => Self::of_digits(text.as_bytes()),
            got => Err(Error::UserIdLength { got }),
        }
    }

    fn of_name(name: &str) -> Self {
        let digest = Sha1::new().chain_update([0; 16]).chain_update(name).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        id[6] = id[6] & 0x0f | 0x50;
        id[8] = id[8] & 0x3f | 0x80;
        UserId(id)
    }

    fn of_digits(text: &[u8]) -> Result<Self, Error> {
        let mut id = [0; 16];
        let mut nibbles = 0;
        let mut at = 0;
        for (i, group) in GROUPS.iter().enumerate() {
            if i > 0 && text.get(at) == Some(&b'-') {
                at += 1;
            }
            for _ in 0..*group {
                let digit = text.get(at).and_then(|c| char::from(*c).to_digit(16));
                let digit = digit.ok_or(Error::UserIdText { at })?;
                id[nibbles / 2] = id[nibbles / 2] << 4 | digit as u8;
                nibbles += 1;
                at += 1;
            }
        }
        if at == text.len() {
            Ok(UserId(id))
        } else {
            Err(Error::UserIdText { at })
        }
    }
}

/// Whether two secrets are the same, in a time that does not depend on where they differ. Their lengths may show.
pub fn same_secret(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

impl PartialEq for UserId {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Hash for UserId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl FromStr for UserId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Shows only the first four bytes: the id is a secret.
impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "UserId({a:02x}{b:02x}{c:02x}{d:02x}-…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_map_by_sha1() {
        let id = UserId::parse("example").unwrap();
        assert_eq!(id.to_string(), "feb54431-301b-52bb-a6dd-e1e93e81bb9e");
    }

    #[test]
    fn digits_with_and_without_dashes() {
        let want = UserId::parse("b831381d-6324-4d53-ad4f-8cda48b30811").unwrap();
        assert_eq!(UserId::parse("b831381d63244d53ad4f8cda48b30811").unwrap(), want);
        assert_eq!(UserId::parse("B831381D63244d53-ad4f8cda48b30811").unwrap(), want);
        assert_eq!(want.to_string(), "b831381d-6324-4d53-ad4f-8cda48b30811");
        assert_eq!(want.as_bytes()[0], 0xb8);
    }

    #[test]
    fn wrong_texts() {
        for got in [0, 31, 37, 100] {
            let text = "a".repeat(got);
            assert_eq!(UserId::parse(&text), Err(Error::UserIdLength { got }));
        }
        assert_eq!(
            UserId::parse("b831381-d6324-4d53-ad4f-8cda48b30811"),
            Err(Error::UserIdText { at: 7 })
        );
        assert_eq!(
            UserId::parse("b831381d63244d53ad4f8cda48b308110000"),
            Err(Error::UserIdText { at: 32 })
        );
        assert!(UserId::parse("------------------------------------").is_err());
        assert!(UserId::parse("ééééééééééééééééé").is_err());
    }

    /// 32 characters of which some are dashes are short of digits; reading on beyond the end was a crash.
    #[test]
    fn bug_user_id_of_32_characters_with_misplaced_dashes() {
        for (text, at) in [
            ("b831381d-63244d53ad4f8cda48b3081", 32),
            ("-b831381d63244d53ad4f8cda48b3081", 0),
            ("b831381d63244d53ad4f8cda48b3081-", 31),
            ("b831381d63-244d53ad4f8cda48b3081", 10),
            ("b831381d--63244d53ad4f8cda48b308", 9),
            ("--------------------------------", 0),
        ] {
            assert_eq!(UserId::parse(text), Err(Error::UserIdText { at }), "{text}");
        }
    }

    #[test]
    fn random_ids_are_version_4() {
        assert_eq!(
            UserId::random([0xff; 16]).to_string(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(
            UserId::random([0; 16]).to_string(),
            "00000000-0000-4000-8000-000000000000"
        );
    }

    #[test]
    fn secrets() {
        assert!(same_secret(b"abc", b"abc") && same_secret(b"", b""));
        assert!(!same_secret(b"abc", b"abd") && !same_secret(b"abc", b"ab") && !same_secret(b"", b"a"));
    }

    #[test]
    fn debug_keeps_the_secret() {
        assert_eq!(format!("{:?}", UserId::from_bytes([0xab; 16])), "UserId(abababab-…)");
    }
}
