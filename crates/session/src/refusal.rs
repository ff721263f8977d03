//! What an end says when it refuses a handshake: why, and nothing else.
//!
//! Nobody vouches for it. It is for the person who must change something at one of the ends, and no decision may follow from it:
//! whoever can write to the connection can end it anyway.

use std::fmt;

/// First bytes of a refusal: protocol, refusal, version.
pub(crate) const MAGIC_REFUSAL: [u8; 4] = *b"SWX\x01";

/// Why an end refuses a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// It was told to use a code phrase, the other end to use keys.
    WantsCode,
    /// It was told to use keys, the other end to use a code phrase.
    WantsKeys,
    /// It accepts ML-KEM-1024 only.
    WantsStrong,
    /// No cipher suite is in both offers.
    NoCommonSuite,
    /// The static key of the other end is not one that it accepts.
    UnknownKey,
}

impl Refusal {
    /// Length of a refusal, bytes: as long as the header of a record, in the place of which it may come.
    pub const LEN: usize = 8;

    const ALL: [Self; 5] = [
        Self::WantsCode,
        Self::WantsKeys,
        Self::WantsStrong,
        Self::NoCommonSuite,
        Self::UnknownKey,
    ];

    /// Its bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&MAGIC_REFUSAL);
        bytes[4] = self.id();
        bytes
    }

    /// The refusal of these bytes; `None` if they are none, or one of another version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.encode() == *bytes)
    }

    const fn id(self) -> u8 {
        match self {
            Self::WantsCode => 1,
            Self::WantsKeys => 2,
            Self::WantsStrong => 3,
            Self::NoCommonSuite => 4,
            Self::UnknownKey => 5,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WantsCode => "it wants a code phrase, this end uses keys; give both the same",
            Self::WantsKeys => "it uses keys, this end wants a code phrase; give both the same",
            Self::WantsStrong => "it accepts ml-kem-1024 only, and this end proposed ml-kem-768",
            Self::NoCommonSuite => "the two offers have no cipher suite that both ends may use",
            Self::UnknownKey => "it does not accept the key of this end",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::record::HEADER_LEN;

    #[test]
    fn refusals_come_back_and_nothing_else_is_one() {
        const { assert!(Refusal::LEN == HEADER_LEN) };
        for refusal in Refusal::ALL {
            let bytes = refusal.encode();
            assert_eq!(Refusal::parse(&bytes), Some(refusal));
            // No record begins like that.
            assert_eq!(bytes[0] & 0x40, 0x40);
            for len in 0..bytes.len() {
                assert_eq!(Refusal::parse(&bytes[..len]), None);
            }
            for at in [0, 2, 3, 5, 7] {
                let mut other = bytes;
                other[at] ^= 0x80;
                assert_eq!(Refusal::parse(&other), None);
            }
        }
        assert_eq!(Refusal::of(&Error::Unauthentic), None);
    }
}
