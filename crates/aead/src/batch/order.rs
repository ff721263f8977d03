//! The order in which messages go through the authenticator: neighbours of like length, so that its lanes end together.
//!
//! A counting sort. Messages are counted as they come, when their length is at hand anyway.

use alloc::vec::Vec;

/// Messages of fewer blocks than this have a bin each; above, bins get wider.
const FINE: usize = 64;

/// Bins in all: 64 fine ones, then 8 for each doubling.
const BINS: usize = FINE + 8 * 26;

/// Messages of one direction, counted by length.
pub(super) struct Bins {
    /// Messages of each bin while counting; where the next of each bin goes while placing.
    places: [u32; BINS],
    lowest: usize,
    highest: usize,
}

impl Bins {
    /// Counts a message of so many blocks of 16 bytes; gives its bin.
    #[inline(always)]
    pub(super) fn count(&mut self, blocks: usize) -> u16 {
        let bin = bin(blocks);
        self.places[bin] += 1;
        self.lowest = self.lowest.min(bin);
        self.highest = self.highest.max(bin);
        bin as u16
    }

    /// Lists messages, given as their numbers and bins in the order in which they were counted, longest first and
    /// otherwise in that order; forgets them. False if there are none.
    pub(super) fn sort(&mut self, counted: impl Iterator<Item = (usize, u16)>, order: &mut Vec<u32>) -> bool {
        order.clear();
        if self.lowest > self.highest {
            return false;
        }
        let used = self.lowest..=self.highest;
        let mut sum = 0;
        for place in self.places[used.clone()].iter_mut().rev() {
            sum += core::mem::replace(place, sum);
        }
        order.resize(sum as usize, 0);
        for (number, bin) in counted {
            let place = &mut self.places[usize::from(bin)];
            order[*place as usize] = number as u32;
            *place += 1;
        }
        self.places[used].fill(0);
        (self.lowest, self.highest) = (BINS, 0);
        true
    }
}

impl Default for Bins {
    fn default() -> Self {
        Bins {
            places: [0; BINS],
            lowest: BINS,
            highest: 0,
        }
    }
}

/// The bin of a length: its blocks, or above 63 three significant bits after the first.
#[inline(always)]
fn bin(blocks: usize) -> usize {
    if blocks < FINE {
        return blocks;
    }
    let top = blocks.ilog2() as usize;
    FINE + (top - 6) * 8 + (blocks >> (top - 3) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_first_and_stable() {
        let mut bins = Bins::default();
        let mut order = vec![7; 3];
        assert!(!bins.sort(core::iter::empty(), &mut order));
        assert!(order.is_empty());
        // The last two share a bin; twice, since a sort must leave nothing behind.
        for _ in 0..2 {
            let lens = [3, 0, 64, 3, 1 << 28, 63, 1000, 1001];
            let counted: Vec<u16> = lens.iter().map(|&len| bins.count(len)).collect();
            assert!(bins.sort(counted.into_iter().enumerate(), &mut order));
            assert_eq!(order, [4, 6, 7, 2, 5, 0, 3, 1]);
        }
    }
}
