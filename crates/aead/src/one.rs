//! Seal and open one message.
//!
//! Lengths run from 0 to [`Suite::max_message_len`]. In-place calls work on a buffer that holds the message and give or
//! take the tag on its own; out-of-place calls read one buffer and write another, with the tag after the ciphertext.

use core::fmt;

use zeroize::Zeroize;

use crate::low::{Text, Use};
use crate::{Error, Nonce, OpeningKey, SealingKey, Suite};

/// An authentication tag. Compared in constant time.
///
/// Aligned, so that it is passed on in two words; in odd pieces it would cost a small message a twentieth of its time.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub struct Tag(pub [u8; Suite::TAG_LEN]);

impl Tag {
    /// A tag from the wire.
    ///
    /// # Errors
    /// [`Error::TooShort`] unless there are 16 bytes.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, Error> {
        bytes
            .try_into()
            .map(Tag)
            .map_err(|_| Error::TooShort { got: bytes.len() })
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; Suite::TAG_LEN] {
        &self.0
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        tags_match(&self.0, &other.0)
    }
}

impl Eq for Tag {}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tag(")?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Compares all 16 bytes at once: it takes as long wherever a difference is.
#[inline]
pub(crate) fn tags_match(a: &[u8; Suite::TAG_LEN], b: &[u8; Suite::TAG_LEN]) -> bool {
    core::hint::black_box(u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)) == 0
}

/// Refuses messages that one nonce may not seal.
fn check_len(suite: Suite, len: usize) -> Result<(), Error> {
    let len = len as u64;
    if len > suite.max_message_len() {
        Err(Error::TooLong { suite, len })
    } else {
        Ok(())
    }
}

/// Compares the tag that should be with the one that came; zeroes what was opened if they differ.
#[inline]
fn verify(made: &[u8; Suite::TAG_LEN], sent: &[u8; Suite::TAG_LEN], opened: &mut [u8]) -> Result<(), Error> {
    if tags_match(made, sent) {
        return Ok(());
    }
    opened.fill(0);
    Err(Error::Unauthentic)
}

impl SealingKey {
    /// Seals `in_out` in place and returns the tag.
    ///
    /// # Errors
    /// [`Error::NonceLength`] for a nonce of another suite, [`Error::TooLong`] above the suite's limit; the buffer is
    /// then untouched. [`Error::Backend`] if memory ran out; the buffer is then zeroed.
    #[inline(always)]
    pub fn seal_in_place(&self, nonce: Nonce, aad: &[u8], in_out: &mut [u8]) -> Result<Tag, Error> {
        check_len(self.suite(), in_out.len())?;
        let (nonce, len) = (nonce.to_bytes(), in_out.len());
        if let Some(made) = self
            .0
            .run_own(&nonce, aad, len, || Text::in_place(&mut *in_out), Use::Seal)
        {
            return made.map(Tag);
        }
        self.0.with(&nonce, |key, nonce| {
            let made = key.seal_in_place(nonce, aad, in_out);
            made.map(Tag).inspect_err(|_| in_out.zeroize())
        })
    }

    /// Seals `plaintext` into `sealed`: the ciphertext, then the tag.
    ///
    /// # Errors
    /// [`Error::OutputLength`] unless `sealed` is exactly 16 bytes longer than `plaintext`; otherwise as
    /// [`SealingKey::seal_in_place`].
    #[inline]
    pub fn seal_to(&self, nonce: Nonce, aad: &[u8], plaintext: &[u8], sealed: &mut [u8]) -> Result<(), Error> {
        check_len(self.suite(), plaintext.len())?;
        let need = plaintext.len().saturating_add(Suite::TAG_LEN);
        if sealed.len() != need {
            return Err(Error::OutputLength {
                need,
                got: sealed.len(),
            });
        }
        let nonce = nonce.to_bytes();
        let (ciphertext, tag) = sealed.split_at_mut(plaintext.len());
        if let Some(made) = self.0.run_own(
            &nonce,
            aad,
            plaintext.len(),
            || Text::separate(plaintext, ciphertext),
            Use::Seal,
        ) {
            tag.copy_from_slice(&made?);
            return Ok(());
        }
        self.0.with(&nonce, |key, nonce| {
            let (ciphertext, tag) = sealed.split_at_mut(plaintext.len());
            key.seal_to(nonce, aad, plaintext, ciphertext, tag)
                .inspect_err(|_| sealed.zeroize())
        })
    }
}

impl OpeningKey {
    /// Opens `in_out` in place.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if the message is not what was sealed: `in_out` is then zeroed. [`Error::NonceLength`] for
    /// a nonce of another suite and [`Error::TooLong`] above the suite's limit: the buffer is then untouched.
    #[inline(always)]
    pub fn open_in_place(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &Tag) -> Result<(), Error> {
        check_len(self.suite(), in_out.len())?;
        let len = in_out.len();
        if let Some(made) = self
            .0
            .run_own(nonce, aad, len, || Text::in_place(&mut *in_out), Use::Open)
        {
            return verify(&made?, &tag.0, in_out);
        }
        self.0.with(nonce, |key, nonce| {
            key.open_in_place(nonce, aad, in_out, &tag.0)
                .inspect_err(|_| in_out.zeroize())
        })
    }

    /// Opens `sealed`, a ciphertext with its tag after it, into `plaintext`.
    ///
    /// # Errors
    /// [`Error::TooShort`] if `sealed` cannot hold a tag, [`Error::OutputLength`] unless `plaintext` is exactly 16 bytes
    /// shorter than `sealed`; otherwise as [`OpeningKey::open_in_place`], with `plaintext` zeroed on failure.
    #[inline]
    pub fn open_to(&self, nonce: &[u8], aad: &[u8], sealed: &[u8], plaintext: &mut [u8]) -> Result<(), Error> {
        let (ciphertext, tag) = sealed
            .split_last_chunk::<{ Suite::TAG_LEN }>()
            .ok_or(Error::TooShort { got: sealed.len() })?;
        check_len(self.suite(), ciphertext.len())?;
        if plaintext.len() != ciphertext.len() {
            return Err(Error::OutputLength {
                need: ciphertext.len(),
                got: plaintext.len(),
            });
        }
        let len = plaintext.len();
        if let Some(made) = self.0.run_own(
            nonce,
            aad,
            len,
            || Text::separate(ciphertext, &mut *plaintext),
            Use::Open,
        ) {
            return verify(&made?, tag, plaintext);
        }
        self.0.with(nonce, |key, nonce| {
            key.open_to(nonce, aad, ciphertext, tag, plaintext)
                .inspect_err(|_| plaintext.zeroize())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits cannot be reached with real buffers, so the check itself is tested.
    #[test]
    fn lengths_up_to_the_limit_and_no_further() {
        for suite in Suite::ALL {
            let max = usize::try_from(suite.max_message_len()).unwrap();
            assert_eq!(check_len(suite, 0), Ok(()));
            assert_eq!(check_len(suite, max), Ok(()));
            assert_eq!(
                check_len(suite, max + 1),
                Err(Error::TooLong {
                    suite,
                    len: max as u64 + 1
                })
            );
            assert!(check_len(suite, usize::MAX).is_err());
        }
    }

    #[test]
    fn tags_compare_by_value() {
        let tag = Tag([7; 16]);
        assert_eq!(tag, Tag::from_slice(&[7; 16]).unwrap());
        for bit in 0..128 {
            let mut other = tag;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(tag, other);
        }
        assert_eq!(Tag::from_slice(&[7; 15]), Err(Error::TooShort { got: 15 }));
    }
}
