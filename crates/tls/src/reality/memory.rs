//! Hellos that were accepted, so that one that comes again is known.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Seconds for which a hello is remembered at least, unless more than [`MAX_HELD`] come in that time.
pub const KEPT: u64 = 24 * 3600;
/// Hellos that are remembered at once: 8 bytes each, in hash tables that are at least 7/16 full but for the youngest.
pub const MAX_HELD: usize = 1 << 20;

/// Remembers accepted hellos by their randoms, in two halves, of which the older one is forgotten when the younger is a day old,
/// or full.
#[derive(Debug)]
pub struct Memory {
    young: HashSet<u64>,
    old: HashSet<u64>,
    /// When the younger half began, seconds of a clock that is never set.
    since: u64,
    capacity: usize,
    shortened: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new(MAX_HELD)
    }
}

impl Memory {
    /// For at most so many hellos, at least 2.
    pub fn new(capacity: usize) -> Self {
        Memory {
            young: HashSet::new(),
            old: HashSet::new(),
            since: 0,
            capacity: capacity.max(2),
            shortened: 0,
        }
    }

    /// Remembers a hello. False: it came before. `now` counts seconds by a clock that is never set.
    ///
    /// Only hellos that a user's key has sealed may get here, so that strangers cannot fill it.
    pub fn insert(&mut self, random: &[u8; 32], now: u64) -> bool {
        let full = self.young.len() >= self.capacity / 2;
        if full || now.saturating_sub(self.since) >= KEPT {
            self.shortened += u64::from(full);
            self.old = std::mem::take(&mut self.young);
            if now.saturating_sub(self.since) >= 2 * KEPT {
                self.old = HashSet::new();
            }
            self.since = now;
        }
        let digest: [u8; 32] = Sha256::digest(random).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        let entry = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        !self.old.contains(&entry) && self.young.insert(entry)
    }

    /// How often hellos were forgotten before their time for want of room.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_known_for_a_day_at_least() {
        let mut memory = Memory::default();
        for begun in [0, 1, KEPT - 1, KEPT, 10 * KEPT] {
            let mut random = [7; 32];
            random[0] = (begun % 251) as u8;
            random[1] = (begun / KEPT) as u8;
            assert!(memory.insert(&random, begun), "{begun}");
            for after in [0, 1, KEPT / 2, KEPT - 1, KEPT] {
                assert!(!memory.insert(&random, begun + after), "{begun} {after}");
            }
        }
    }

    #[test]
    fn it_is_forgotten_in_the_end() {
        let mut memory = Memory::default();
        assert!(memory.insert(&[1; 32], 0));
        assert!(memory.insert(&[1; 32], 2 * KEPT));
        assert_eq!(memory.shortened(), 0);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_go_first() {
        let mut memory = Memory::new(100);
        let random = |n: u8| [n; 32];
        for n in 0..200 {
            assert!(memory.insert(&random(n), 1));
            assert!(memory.young.len() + memory.old.len() <= 100);
        }
        assert!(memory.shortened() > 0);
        for n in 150..200 {
            assert!(!memory.insert(&random(n), 1), "{n}");
        }
        assert!(memory.insert(&random(0), 1));
    }
}
