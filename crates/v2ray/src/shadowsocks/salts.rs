//! Salts of 2017, which carry no time: the last ones are remembered.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use super::Key;

/// Salts that came, as many as there is room for.
///
/// Only salts of requests that a user's key has sealed get here, so strangers cannot fill it. Nothing in such a request says
/// when it was made: what was forgotten can be replayed, which the methods of 2022 do not allow.
#[derive(Debug)]
pub struct Salts {
    /// Those that came last, and those before them.
    young: HashSet<u64>,
    old: HashSet<u64>,
    half: usize,
    /// Nobody outside knows which salts are taken for each other.
    hasher: RandomState,
}

impl Salts {
    /// Most salts that are remembered by [`Salts::default`], of which at least half are.
    pub const CAPACITY: usize = 200_000;

    /// Room for at most `capacity` salts, some 18 bytes each.
    pub fn new(capacity: usize) -> Self {
        Salts {
            young: HashSet::new(),
            old: HashSet::new(),
            half: (capacity / 2).max(1),
            hasher: RandomState::new(),
        }
    }

    /// Takes a salt of a user with this key. False if it came before.
    pub fn take(&mut self, key: &Key, salt: &[u8]) -> bool {
        let entry = self.hasher.hash_one((key.as_bytes(), salt));
        if self.old.contains(&entry) || !self.young.insert(entry) {
            return false;
        }
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        true
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Salts {
    fn default() -> Self {
        Salts::new(Self::CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadowsocks::Method;

    #[test]
    fn half_of_them_at_least_are_known_again() {
        let key = |password| Key::new(Method::Aes128Gcm, password).unwrap();
        let (key, other) = (key("one"), key("other"));
        let mut salts = Salts::new(100);
        for n in 0..1000u32 {
            assert!(salts.take(&key, &n.to_be_bytes()), "{n}");
            assert!(!salts.take(&key, &n.to_be_bytes()), "{n}");
            assert!(salts.len() <= 100, "{}", salts.len());
            let before = n.saturating_sub(49);
            assert!(!salts.take(&key, &before.to_be_bytes()), "{before} after {n}");
        }
        assert!(salts.take(&other, &999u32.to_be_bytes()));
    }
}
