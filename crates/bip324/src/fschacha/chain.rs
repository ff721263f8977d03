//! Both ciphers of one direction, kept in step.

use super::{ContentChain, LengthCipher, PacketNumber};
use crate::{CONTENTS_MAX, Error, LENGTH_LEN};

/// What sending needs to know before it seals: packet numbers, masks of lengths, keys.
///
/// ```
/// use sealway_bip324::fschacha::SendChain;
/// # let (length_key, content_key) = ([1; 32], [2; 32]);
/// let mut chain = SendChain::new(&length_key, &content_key)?;
/// let (number, sealed_length) = chain.reserve(100)?;
/// assert_eq!(number.nonce(), [0; 12]);
/// // Write `sealed_length`; seal a header byte and 100 bytes of contents with this key and nonce behind it.
/// let key = chain.key_of(number);
/// # assert!(key.is_some());
/// # let _ = sealed_length;
/// # Ok::<(), sealway_bip324::Error>(())
/// ```
///
/// Not `Clone`: two of them would seal two packets under one nonce.
#[derive(Debug)]
pub struct SendChain {
    lengths: LengthCipher,
    contents: ContentChain,
}

/// What receiving needs to know before it opens: packet numbers, lengths, keys.
#[derive(Debug)]
pub struct RecvChain {
    lengths: LengthCipher,
    contents: ContentChain,
}

/// The length of contents as it stands on the wire before it is masked.
#[inline]
pub(crate) fn length_bytes(contents_len: usize) -> Result<[u8; LENGTH_LEN], Error> {
    if contents_len > CONTENTS_MAX {
        return Err(Error::ContentsTooLong {
            got: contents_len,
            limit: CONTENTS_MAX,
        });
    }
    let [a, b, c, ..] = contents_len.to_le_bytes();
    Ok([a, b, c])
}

#[inline]
fn xor(a: [u8; LENGTH_LEN], b: [u8; LENGTH_LEN]) -> [u8; LENGTH_LEN] {
    core::array::from_fn(|i| a[i] ^ b[i])
}

macro_rules! both {
    () => {
        /// The chain before its first packet, from the two keys of a direction. The caller wipes the bytes passed in.
        ///
        /// # Errors
        /// [`Error::Aead`] never happens with a working machine.
        pub fn new(length_key: &[u8; 32], content_key: &[u8; 32]) -> Result<Self, Error> {
            Self::resume(length_key, content_key, PacketNumber::FIRST)
        }

        /// The chain before packet `next`, from the two keys of its epoch. See [`ContentChain::resume`].
        ///
        /// # Errors
        /// [`Error::Aead`] never happens with a working machine.
        pub fn resume(length_key: &[u8; 32], content_key: &[u8; 32], next: PacketNumber) -> Result<Self, Error> {
            Ok(Self {
                lengths: LengthCipher::resume(length_key, next)?,
                contents: ContentChain::resume(content_key, next),
            })
        }

        /// The number of the next packet; `None` when all are used up.
        pub const fn next_number(&self) -> Option<PacketNumber> {
            self.contents.next_number()
        }

        /// The key of a packet's contents, if the packet is of the epoch the chain is in: from when its number was given
        /// until a number of the next epoch is, or [`Self::end_epoch`] is called.
        #[inline]
        pub fn key_of(&self, number: PacketNumber) -> Option<&[u8; 32]> {
            self.contents.key_of(number)
        }

        /// Gives the numbers of several packets of one epoch, the first and how many, at least one, and their masks.
        #[cfg(feature = "std")]
        pub(crate) fn reserve_masks(&mut self, masks: &mut [[u8; LENGTH_LEN]]) -> Result<(PacketNumber, u8), Error> {
            let first = self.contents.reserve()?;
            let count = self.lengths.next_masks(masks)?;
            self.contents.reserve_more(count - 1);
            Ok((first, count))
        }

        /// Forgets the keys of the epoch if all its packets have been given; otherwise nothing happens. To be called once
        /// the last packet has been worked on or its key is kept elsewhere.
        ///
        /// # Errors
        /// [`Error::Aead`] never happens with a working machine.
        #[inline]
        pub fn end_epoch(&mut self) -> Result<(), Error> {
            self.contents.end_epoch()?;
            self.lengths.end_epoch()
        }
    };
}

impl SendChain {
    both!();

    /// Gives the next packet's number and its sealed length, for contents of this many bytes. Neither is given again,
    /// whatever becomes of the packet: one that is not sent ends the connection.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] above 2^24 - 1 bytes: no number is used up then. [`Error::Exhausted`] after the last
    /// packet of epoch 2^64 - 1.
    #[inline]
    pub fn reserve(&mut self, contents_len: usize) -> Result<(PacketNumber, [u8; LENGTH_LEN]), Error> {
        let length = length_bytes(contents_len)?;
        let number = self.contents.reserve()?;
        Ok((number, xor(length, self.lengths.next_mask()?)))
    }
}

impl RecvChain {
    both!();

    /// Opens the length of the next packet: gives its number and how many bytes of contents it claims to have, neither to
    /// be had again. The claim is not authentic until the packet is: see that it is below a limit, and reserve nothing by it.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after the last packet of epoch 2^64 - 1.
    #[inline]
    pub fn open_length(&mut self, sealed: [u8; LENGTH_LEN]) -> Result<(PacketNumber, usize), Error> {
        let number = self.contents.reserve()?;
        let [a, b, c] = xor(sealed, self.lengths.next_mask()?);
        Ok((number, usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16))
    }

    /// Takes back the number given last, of a packet whose length was opened and that has not come whole.
    pub(crate) fn take_back(&mut self, sealed: [u8; LENGTH_LEN], contents_len: usize) {
        if let Ok(length) = length_bytes(contents_len) {
            self.lengths.take_back(xor(sealed, length));
            self.contents.take_back();
        }
    }
}
