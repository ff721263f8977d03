//! What one message of a batch asks for, and what became of it.

use core::ops::Range;

use crate::{Error, Nonce, Suite};

use super::Slot;

/// One message to seal or to open.
///
/// Offsets are bytes into the arenas given to [`super::Engine::run`]; an arena of jobs thus ends at 4 GiB. A longer message
/// goes through [`crate::SealingKey`].
#[derive(Debug)]
pub struct Job {
    pub(super) nonce: [u8; Suite::MAX_NONCE_LEN],
    pub(super) nonce_len: u8,
    pub(super) opens: bool,
    pub(super) slot: Slot,
    pub(super) src: u32,
    pub(super) dst: u32,
    /// Bytes of the message, without the tag.
    pub(super) len: u32,
    pub(super) aad: u32,
    pub(super) aad_len: u32,
}

impl Job {
    /// Seals the plaintext at `src` into `dst`: as many bytes of ciphertext, then the tag of 16.
    ///
    /// A job may be run again only to give the same bytes again: its nonce is spent on this message. A range that ends
    /// before it starts is empty.
    #[inline]
    pub fn seal(slot: Slot, nonce: Nonce, src: Range<u32>, dst: u32) -> Self {
        Self::new(
            slot,
            &nonce.to_bytes(),
            src.start,
            src.end.saturating_sub(src.start),
            dst,
            false,
        )
    }

    /// Opens the ciphertext and tag at `src` into `dst`, which takes 16 bytes less.
    ///
    /// # Errors
    /// [`Error::TooShort`] if `src` cannot hold a tag, [`Error::NonceLength`] for a nonce longer than any suite's.
    #[inline]
    pub fn open(slot: Slot, nonce: &[u8], src: Range<u32>, dst: u32) -> Result<Self, Error> {
        let got = src.end.saturating_sub(src.start);
        let len = got
            .checked_sub(Suite::TAG_LEN as u32)
            .ok_or(Error::TooShort { got: got as usize })?;
        if nonce.len() > Suite::MAX_NONCE_LEN {
            return Err(Error::NonceLength {
                need: Suite::MAX_NONCE_LEN,
                got: nonce.len(),
            });
        }
        Ok(Self::new(slot, nonce, src.start, len, dst, true))
    }

    #[inline(always)]
    fn new(slot: Slot, bytes: &[u8], src: u32, len: u32, dst: u32, opens: bool) -> Self {
        let mut nonce = [0; Suite::MAX_NONCE_LEN];
        if let Ok(short) = <&[u8; 12]>::try_from(bytes) {
            nonce[..12].copy_from_slice(short);
        } else {
            nonce[..bytes.len()].copy_from_slice(bytes);
        }
        Job {
            nonce,
            nonce_len: bytes.len() as u8,
            opens,
            slot,
            src,
            dst,
            len,
            aad: 0,
            aad_len: 0,
        }
    }

    /// The same job with associated data, an offset range of the arena for those. Without this there are none.
    #[must_use]
    #[inline]
    pub fn with_aad(mut self, range: Range<u32>) -> Self {
        self.aad = range.start;
        self.aad_len = range.end.saturating_sub(range.start);
        self
    }

    /// A copy of the job for another table of keys, which has the same key in `slot`.
    ///
    /// The copy spends the nonce. So the original must not be run any more, except to give the same bytes: the same plaintext and
    /// associated data. Under another key in `slot` it would be another job, whose nonce nobody vouches for.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn moved_to(&self, slot: Slot) -> Self {
        Job { slot, ..*self }
    }

    /// The slot of its key.
    #[inline]
    pub const fn slot(&self) -> Slot {
        self.slot
    }

    /// Its nonce.
    #[inline]
    pub fn nonce(&self) -> &[u8] {
        &self.nonce[..usize::from(self.nonce_len)]
    }

    /// Where its input starts.
    #[inline]
    pub const fn input_offset(&self) -> usize {
        self.src as usize
    }

    /// Where its output starts.
    #[inline]
    pub const fn output_offset(&self) -> usize {
        self.dst as usize
    }

    /// Bytes of the message, without the tag.
    pub const fn message_len(&self) -> usize {
        self.len as usize
    }

    /// Bytes that the job reads from `src`, tag included.
    pub const fn input_len(&self) -> usize {
        self.len as usize + if self.opens { Suite::TAG_LEN } else { 0 }
    }

    /// Bytes that the job writes at `dst`, tag included.
    pub const fn output_len(&self) -> usize {
        self.len as usize + if self.opens { 0 } else { Suite::TAG_LEN }
    }

    /// Where its associated data lie in their arena; `0..0` if it has none.
    #[inline(always)]
    pub const fn aad(&self) -> Range<usize> {
        if self.aad_len == 0 {
            return 0..0;
        }
        self.aad as usize..self.aad as usize + self.aad_len as usize
    }

    /// Its associated data in their arena.
    #[inline(always)]
    pub(super) fn associated<'a>(&self, aad: &'a [u8]) -> &'a [u8] {
        &aad[self.aad()]
    }

    /// True if the job opens, false if it seals.
    pub const fn opens(&self) -> bool {
        self.opens
    }
}

/// What became of a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Status {
    /// Sealed, or opened and authentic.
    Done,
    /// The message is not what was sealed: wrong key, nonce, associated data, tag or ciphertext. Its output is zeroed.
    Unauthentic,
    /// The library underneath refused; on a healthy machine this means memory ran out. The output is zeroed.
    Failed,
}
