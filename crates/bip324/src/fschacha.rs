//! The two forward-secret ciphers as what they are before anything is sealed: chains of keys, nonces and masks.
//!
//! Nothing here depends on what a packet contains, so numbers can be given out, masks taken and keys derived ahead of the
//! sealing, which may then be done in any order, many at once. A packet number once given is never given again: there is no
//! way back, also after an error.
//!
//! Every 224 packets both ciphers go over to their next key, and the one before is overwritten.

mod chain;
mod contents;
mod lengths;

#[cfg(feature = "std")]
pub(crate) use chain::length_bytes;
pub use chain::{RecvChain, SendChain};
pub use contents::ContentChain;
pub use lengths::{LengthCipher, MASKS_LEN};

/// Packets that one key seals.
pub const REKEY_INTERVAL: u8 = 224;

/// Which packet of one direction: packet i is in slot i mod 224 of epoch i div 224.
///
/// Both are kept rather than i, which would need more than 64 bits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PacketNumber {
    epoch: u64,
    slot: u8,
}

impl PacketNumber {
    /// Packet 0.
    pub const FIRST: PacketNumber = PacketNumber { epoch: 0, slot: 0 };

    /// The packet in a slot of an epoch; `None` unless the slot is below [`REKEY_INTERVAL`].
    pub const fn new(epoch: u64, slot: u8) -> Option<Self> {
        if slot < REKEY_INTERVAL {
            Some(PacketNumber { epoch, slot })
        } else {
            None
        }
    }

    /// Packet `index`, counted from 0.
    pub const fn from_index(index: u64) -> Self {
        PacketNumber {
            epoch: index / REKEY_INTERVAL as u64,
            slot: (index % REKEY_INTERVAL as u64) as u8,
        }
    }

    /// How many packets came before it.
    pub const fn index(self) -> u128 {
        self.epoch as u128 * REKEY_INTERVAL as u128 + self.slot as u128
    }

    /// How often the key was changed before it.
    pub const fn epoch(self) -> u64 {
        self.epoch
    }

    /// Which packet of its key it is, 0 to 223.
    pub const fn slot(self) -> u8 {
        self.slot
    }

    /// The nonce of its contents: the slot in four bytes and the epoch in eight, little-endian.
    #[inline(always)]
    pub const fn nonce(self) -> [u8; 12] {
        nonce(self.slot as u32, self.epoch)
    }
}

/// The nonce of the rekeying, which no packet has: there is no such slot.
const REKEY_SLOT: u32 = u32::MAX;

#[inline(always)]
const fn nonce(slot: u32, epoch: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    // Two stores; single bytes would stay single bytes.
    let (head, rest) = bytes.split_at_mut(4);
    head.copy_from_slice(&slot.to_le_bytes());
    rest.copy_from_slice(&epoch.to_le_bytes());
    bytes
}

/// Where a cipher stands: the slot is [`REKEY_INTERVAL`] when the key has done all it may.
#[derive(Clone, Copy)]
struct Position {
    epoch: u64,
    slot: u8,
}

impl Position {
    const fn at(number: PacketNumber) -> Self {
        Position {
            epoch: number.epoch,
            slot: number.slot,
        }
    }

    /// The epoch to rekey for, if the one there is has ended and there is another.
    #[inline]
    const fn following(self) -> Option<u64> {
        if self.slot < REKEY_INTERVAL {
            None
        } else {
            self.epoch.checked_add(1)
        }
    }

    /// The packet that is next if nothing has to happen before.
    #[inline]
    const fn number(self) -> Option<PacketNumber> {
        PacketNumber::new(self.epoch, self.slot)
    }
}

#[cfg(test)]
mod tests;
