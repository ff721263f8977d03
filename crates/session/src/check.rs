//! The short string that two people compare.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::words::WORDS;

/// Words of a check string.
pub const CHECK_WORDS: usize = 5;

/// Five words that are the same at both ends if, and but for one chance in 2^40 only if, nobody is in between.
///
/// The initiator commits to its part before it sees the responder's, so whoever is in between has one guess, however fast.
/// Worth comparing when the other end's static key is not known yet; with a code phrase or a pinned key it adds nothing.
#[derive(Clone, Copy)]
pub struct CheckString([u8; CHECK_WORDS]);

impl CheckString {
    pub(crate) const fn new(bytes: [u8; CHECK_WORDS]) -> Self {
        CheckString(bytes)
    }

    /// The words.
    pub fn words(&self) -> [&'static str; CHECK_WORDS] {
        self.0.map(|byte| WORDS[usize::from(byte)])
    }

    /// The five bytes that the words stand for.
    pub const fn as_bytes(&self) -> &[u8; CHECK_WORDS] {
        &self.0
    }
}

impl PartialEq for CheckString {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for CheckString {}

/// The words with spaces in between.
impl fmt::Display for CheckString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.words().join(" "))
    }
}

/// As it is shown: it is made to be seen.
impl fmt::Debug for CheckString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckString({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_one_word_a_byte() {
        let check = CheckString::new([0, 255, 1, 254, 2]);
        assert_eq!(check.to_string(), "acorn zigzag adult zenith album");
        assert_eq!(check, CheckString::new([0, 255, 1, 254, 2]));
        assert_ne!(check, CheckString::new([0, 255, 1, 254, 3]));
    }
}
