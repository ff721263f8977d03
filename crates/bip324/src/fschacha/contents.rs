//! FSChaCha20Poly1305 without the sealing: its keys and nonces.

use alloc::boxed::Box;
use core::fmt;

use sealway_aead::keystream;
use zeroize::Zeroizing;

use super::{PacketNumber, Position, REKEY_SLOT, nonce};
use crate::Error;

/// The keys and nonces of the contents of one direction (BIP324, FSChaCha20Poly1305).
///
/// Not `Clone`, wiped when dropped.
pub struct ContentChain {
    /// Boxed, so that moving the chain leaves no copy behind.
    key: Box<Zeroizing<[u8; 32]>>,
    at: Position,
}

impl ContentChain {
    /// The chain before its first packet. The caller wipes the bytes passed in.
    pub fn new(key: &[u8; 32]) -> Self {
        Self::resume(key, PacketNumber::FIRST)
    }

    /// The chain before packet `next`, of whose epoch `key` is the key.
    ///
    /// For tests, and for a state that was kept elsewhere. Whoever seals with two chains at one number gives everything
    /// away.
    pub fn resume(key: &[u8; 32], next: PacketNumber) -> Self {
        let mut kept = Box::new(Zeroizing::new([0; 32]));
        kept.copy_from_slice(key);
        ContentChain {
            key: kept,
            at: Position::at(next),
        }
    }

    /// The packet that [`ContentChain::reserve`] gives next; `None` when all are used up.
    pub const fn next_number(&self) -> Option<PacketNumber> {
        match self.at.following() {
            Some(epoch) => PacketNumber::new(epoch, 0),
            None => self.at.number(),
        }
    }

    /// Gives the next packet number, for one packet and never again. Its key is [`ContentChain::key_of`] until the next call
    /// of this or of [`ContentChain::end_epoch`].
    ///
    /// # Errors
    /// [`Error::Exhausted`] after the last packet of epoch 2^64 - 1.
    #[inline]
    pub fn reserve(&mut self) -> Result<PacketNumber, Error> {
        self.end_epoch()?;
        let number = self.at.number().ok_or(Error::Exhausted)?;
        self.at.slot += 1;
        Ok(number)
    }

    /// Gives the numbers after the one given last as well, of the same epoch, as [`ContentChain::reserve`] would.
    #[cfg(feature = "std")]
    pub(crate) fn reserve_more(&mut self, count: u8) {
        self.at.slot = self.at.slot.saturating_add(count).min(super::REKEY_INTERVAL);
    }

    /// The key of the epoch the chain is in.
    #[inline]
    pub fn key(&self) -> &[u8; 32] {
        &self.key
    }

    /// The key of a packet, if the chain is in the packet's epoch.
    #[inline]
    pub fn key_of(&self, number: PacketNumber) -> Option<&[u8; 32]> {
        (number.epoch == self.at.epoch).then_some(&**self.key)
    }

    /// Derives the next key over this one if all packets of this one have been given; otherwise nothing happens.
    ///
    /// [`ContentChain::reserve`] does so when it has to. Whoever has sealed the last packet of an epoch, or has put its key
    /// elsewhere, calls this at once, so that the key does not stay until there is another packet.
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
        // What an AEAD would encrypt zeros to: its keystream starts at block 1.
        let mut next = Zeroizing::new([0; 32]);
        keystream::fill(&self.key, &nonce(REKEY_SLOT, self.at.epoch), 1, next.as_mut_slice())?;
        self.key.copy_from_slice(next.as_slice());
        self.at = Position { epoch, slot: 0 };
        Ok(())
    }

    /// Takes back the number given last, which was only read with. Not over the end of an epoch.
    pub(crate) fn take_back(&mut self) {
        self.at.slot = self.at.slot.saturating_sub(1);
    }
}

impl fmt::Debug for ContentChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentChain({:?})", self.next_number())
    }
}
