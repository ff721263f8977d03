//! Numbers and masks of the next few packets of a connection, at hand.

use zeroize::Zeroize;

use crate::fschacha::{PacketNumber, REKEY_INTERVAL};
use crate::{Error, LENGTH_LEN};

/// Masks taken at a time: as many as leave the state of a connection in one cache line.
pub(super) const MASKS: usize = 12;

/// The masks of a stock.
pub(super) type Masks = [[u8; LENGTH_LEN]; MASKS];

/// Packet numbers of one epoch that a chain has given, and their masks.
///
/// The masks of an epoch fill eleven cache lines, and a thousand connections do not keep theirs in the first-level cache.
/// Here they lie beside what is looked at for each packet anyway. Wiped as they are used, and when dropped.
pub(super) struct Stock {
    epoch: u64,
    /// Slot of the packet that is next, or whose length was opened.
    slot: u8,
    next: u8,
    count: u8,
    masks: Masks,
}

/// Makes room for one more of what holds stocks, by `move_out`: a vector that grows by itself would leave copies of masks.
pub(super) fn make_room<S>(states: &mut Vec<S>, move_out: impl FnMut(&mut S) -> S) {
    if states.len() == states.capacity() {
        let mut larger = Vec::with_capacity(2 * states.len() + 1);
        larger.extend(states.iter_mut().map(move_out));
        *states = larger;
    }
}

impl Stock {
    /// Nothing.
    pub(super) const EMPTY: Stock = Stock {
        epoch: 0,
        slot: REKEY_INTERVAL,
        next: 0,
        count: 0,
        masks: [[0; LENGTH_LEN]; MASKS],
    };

    /// True if there is no mask.
    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.next == self.count
    }

    /// Puts in what a chain gives, in place of the nothing that is there.
    pub(super) fn refill(
        &mut self,
        chain: impl FnOnce(&mut Masks) -> Result<(PacketNumber, u8), Error>,
    ) -> Result<(), Error> {
        let (first, count) = chain(&mut self.masks)?;
        (self.epoch, self.slot) = (first.epoch(), first.slot());
        (self.next, self.count) = (0, count);
        Ok(())
    }

    /// The number of the packet that is next, or whose length was opened; `None` from the end of the epoch until it is
    /// refilled.
    #[inline(always)]
    pub(super) const fn number(&self) -> Option<PacketNumber> {
        PacketNumber::new(self.epoch, self.slot)
    }

    /// Takes the mask of the next packet.
    #[inline(always)]
    pub(super) fn take_mask(&mut self) -> Option<[u8; LENGTH_LEN]> {
        if self.is_empty() {
            return None;
        }
        let mask = self.masks.get_mut(usize::from(self.next))?;
        self.next += 1;
        Some(std::mem::take(mask))
    }

    /// Goes on to the packet after.
    #[inline(always)]
    pub(super) const fn advance(&mut self) {
        self.slot += 1;
    }

    /// Moves it without leaving a copy.
    pub(super) fn move_out(&mut self) -> Stock {
        let moved = Stock {
            masks: self.masks,
            ..*self
        };
        self.masks.zeroize();
        (self.next, self.count) = (0, 0);
        moved
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        self.masks.zeroize();
    }
}
