//! FSChaCha20: what masks the three length bytes of packets.

use alloc::boxed::Box;
use core::fmt;

use sealway_aead::keystream;
use zeroize::{Zeroize, Zeroizing};

use super::{PacketNumber, Position, REKEY_INTERVAL, nonce};
use crate::{Error, LENGTH_LEN};

/// Bytes of masks in an epoch; the 32 that follow are the next key.
pub const MASKS_LEN: usize = LENGTH_LEN * REKEY_INTERVAL as usize;

/// Bytes of keystream in an epoch: eleven blocks.
const EPOCH_LEN: usize = MASKS_LEN + 32;

/// The cipher of the lengths of one direction (BIP324, FSChaCha20).
///
/// An epoch's keystream is made at once, in one pass of the widest kernels; the key it was made with is then forgotten, and a
/// mask is overwritten when it has been given. Not `Clone`, wiped when dropped.
pub struct LengthCipher {
    /// The masks, then the key of the next epoch. Boxed, so that moving the cipher leaves no copy behind.
    stream: Box<Zeroizing<[u8; EPOCH_LEN]>>,
    at: Position,
}

impl LengthCipher {
    /// The cipher before its first packet. The caller wipes the bytes passed in.
    ///
    /// # Errors
    /// [`Error::Aead`] never happens with a working machine.
    pub fn new(key: &[u8; 32]) -> Result<Self, Error> {
        Self::resume(key, PacketNumber::FIRST)
    }

    /// The cipher before packet `next`, of whose epoch `key` is the key.
    ///
    /// For tests, and for a state that was kept elsewhere. Whoever seals with two ciphers at one number gives the
    /// difference of two lengths away.
    ///
    /// # Errors
    /// As [`LengthCipher::new`].
    pub fn resume(key: &[u8; 32], next: PacketNumber) -> Result<Self, Error> {
        let mut cipher = LengthCipher {
            stream: Box::new(Zeroizing::new([0; EPOCH_LEN])),
            at: Position::at(next),
        };
        keystream::fill(key, &nonce(0, next.epoch), 0, cipher.stream.as_mut_slice())?;
        cipher.stream[..LENGTH_LEN * usize::from(next.slot)].zeroize();
        Ok(cipher)
    }

    /// The number of the packet that the next mask is for; `None` when all numbers are used up.
    pub const fn next_number(&self) -> Option<PacketNumber> {
        match self.at.following() {
            Some(epoch) => PacketNumber::new(epoch, 0),
            None => self.at.number(),
        }
    }

    /// The mask of the next packet: XOR it into the three bytes of the length, little-endian, whichever way.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after the last packet of epoch 2^64 - 1.
    #[inline]
    pub fn next_mask(&mut self) -> Result<[u8; LENGTH_LEN], Error> {
        self.end_epoch()?;
        let masks = self.stream.as_chunks_mut::<LENGTH_LEN>().0;
        let slot = usize::from(self.at.slot);
        match masks.get_mut(slot) {
            Some(mask) if slot < usize::from(REKEY_INTERVAL) => {
                self.at.slot += 1;
                Ok(core::mem::take(mask))
            }
            _ => Err(Error::Exhausted),
        }
    }

    /// As [`LengthCipher::next_mask`] for several packets of one epoch; gives how many, at least one.
    #[cfg(feature = "std")]
    pub(crate) fn next_masks(&mut self, out: &mut [[u8; LENGTH_LEN]]) -> Result<u8, Error> {
        self.end_epoch()?;
        let (slot, end) = (usize::from(self.at.slot), usize::from(REKEY_INTERVAL));
        let masks = self.stream.as_chunks_mut::<LENGTH_LEN>().0;
        let Some(masks) = masks
            .get_mut(slot..end.min(slot + out.len()))
            .filter(|masks| !masks.is_empty())
        else {
            return Err(Error::Exhausted);
        };
        out[..masks.len()].copy_from_slice(masks);
        masks.as_flattened_mut().zeroize();
        let count = masks.len() as u8;
        self.at.slot += count;
        Ok(count)
    }

    /// Makes the masks of the next epoch and forgets this one, if this one has ended. Otherwise nothing happens.
    ///
    /// [`LengthCipher::next_mask`] does so when it has to; this does it before.
    ///
    /// # Errors
    /// [`Error::Aead`] never happens with a working machine.
    #[inline]
    pub fn end_epoch(&mut self) -> Result<(), Error> {
        match self.at.following() {
            Some(epoch) => self.start(epoch),
            None => Ok(()),
        }
    }

    #[cold]
    fn start(&mut self, epoch: u64) -> Result<(), Error> {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&self.stream[MASKS_LEN..]);
        keystream::fill(&key, &nonce(0, epoch), 0, self.stream.as_mut_slice())?;
        self.at = Position { epoch, slot: 0 };
        Ok(())
    }

    /// Takes back the mask given last, which was only read with. Not over the end of an epoch.
    pub(crate) fn take_back(&mut self, mask: [u8; LENGTH_LEN]) {
        if let Some(slot) = self.at.slot.checked_sub(1) {
            let at = LENGTH_LEN * usize::from(slot);
            self.stream[at..at + LENGTH_LEN].copy_from_slice(&mask);
            self.at.slot = slot;
        }
    }
}

impl fmt::Debug for LengthCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LengthCipher({:?})", self.next_number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_mask_is_overwritten() {
        let mut lengths = LengthCipher::new(&[7; 32]).unwrap();
        for slot in 0..4 {
            let ahead = lengths.stream[LENGTH_LEN * slot..][..LENGTH_LEN].to_vec();
            assert_eq!(lengths.next_mask().unwrap()[..], ahead);
            assert_eq!(
                lengths.stream[..LENGTH_LEN * (slot + 1)],
                [0; 12][..LENGTH_LEN * (slot + 1)]
            );
        }
        let third = PacketNumber::new(0, 3).unwrap_or(PacketNumber::FIRST);
        let resumed = LengthCipher::resume(&[7; 32], third).unwrap();
        assert_eq!(resumed.stream[..9], [0; 9]);
    }
}
