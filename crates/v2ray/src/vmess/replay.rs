//! What was seen before.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::UserId;

/// Something that must not come twice.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Seen {
    /// An authentication id.
    AuthId([u8; 16]),
    /// A digest of a user and the key and IV of a body.
    Session([u8; 16]),
}

impl Seen {
    pub(super) fn session(id: &UserId, key: &[u8; 16], iv: &[u8; 16]) -> Self {
        let digest = Sha256::new()
            .chain_update(id.as_bytes())
            .chain_update(key)
            .chain_update(iv)
            .finalize();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        Seen::Session(short)
    }
}

/// Remembers for a time what was seen, in bounded memory.
///
/// Entries live in two generations. When the younger one is old or full, the older one is forgotten. So each entry is
/// remembered for at least the window, unless so many come that a generation fills up before its time: then the window
/// shrinks rather than the memory growing, and [`ReplayFilter::shortened`] counts it. Only headers that a user's key has
/// sealed get here, so strangers cannot fill it.
///
/// Of each entry eight bytes are kept. They come out of a cipher or a hash, so that even among a million entries a new one
/// is taken for a known one less than once in ten million million times.
#[derive(Debug)]
pub struct ReplayFilter {
    window: u64,
    capacity: usize,
    young: HashSet<u64>,
    old: HashSet<u64>,
    /// When the young generation began, seconds of the clock the caller reads.
    since: u64,
    shortened: u64,
}

impl ReplayFilter {
    /// A filter that remembers for `window` seconds and holds at most twice `capacity` entries, which take 10 to
    /// 20 bytes each.
    pub fn new(window: u64, capacity: usize) -> Self {
        ReplayFilter {
            window,
            capacity: capacity.max(1),
            young: HashSet::new(),
            old: HashSet::new(),
            since: 0,
            shortened: 0,
        }
    }

    /// Remembers an entry. False if it is remembered already. `now` is in seconds and does not go backwards; a `now` that
    /// does is taken for the latest one seen.
    pub fn insert(&mut self, entry: [u8; 16], now: u64) -> bool {
        let [a, b, c, d, e, f, g, h, ..] = entry;
        let entry = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        let age = now.saturating_sub(self.since);
        if age > self.window.saturating_mul(2) {
            self.old.clear();
            self.young.clear();
            self.since = now;
        } else if age > self.window {
            self.turn(now);
        }
        if self.old.contains(&entry) || self.young.contains(&entry) {
            return false;
        }
        if self.young.len() >= self.capacity {
            self.shortened += 1;
            self.turn(now.max(self.since));
        }
        self.young.insert(entry)
    }

    fn turn(&mut self, now: u64) {
        std::mem::swap(&mut self.old, &mut self.young);
        // `clear` keeps the allocation, which a busy server needs again; a quiet one gives most of it back.
        let was = self.young.len();
        self.young.clear();
        self.young.shrink_to(was);
        self.since = now;
    }

    /// How many entries are remembered.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a generation had to end early because it was full.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }
}

/// Both filters of a VMess inbound.
#[derive(Debug)]
pub struct ReplayGuard {
    auth_ids: ReplayFilter,
    sessions: ReplayFilter,
}

impl ReplayGuard {
    /// An authentication id is good from 120 seconds before its time to 120 seconds after it.
    const AUTH_ID_WINDOW: u64 = 2 * super::auth_id::MAX_SKEW;
    /// The peers remember a session for three minutes; ours lives as long as its authentication id.
    const SESSION_WINDOW: u64 = 240;

    /// Filters that hold at most twice `capacity` entries each.
    pub fn new(capacity: usize) -> Self {
        ReplayGuard {
            auth_ids: ReplayFilter::new(Self::AUTH_ID_WINDOW, capacity),
            sessions: ReplayFilter::new(Self::SESSION_WINDOW, capacity),
        }
    }

    /// Remembers what was seen; false if it was seen before. `now` is in seconds, of any clock that does not go backwards.
    pub fn insert(&mut self, seen: Seen, now: u64) -> bool {
        match seen {
            Seen::AuthId(bytes) => self.auth_ids.insert(bytes, now),
            Seen::Session(bytes) => self.sessions.insert(bytes, now),
        }
    }

    /// How often the window of either filter had to shrink for want of room.
    pub fn shortened(&self) -> u64 {
        self.auth_ids.shortened() + self.sessions.shortened()
    }
}

/// Room for half a million connections in four minutes, which then take at most 40 MiB.
impl Default for ReplayGuard {
    fn default() -> Self {
        Self::new(1 << 19)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u64) -> [u8; 16] {
        let mut entry = [0; 16];
        entry[..8].copy_from_slice(&n.to_be_bytes());
        entry
    }

    #[test]
    fn remembers_at_least_the_window_and_at_most_twice() {
        for start in [0, 5, 100, 239] {
            let mut filter = ReplayFilter::new(240, 1000);
            filter.insert(entry(0), 1000);
            assert!(filter.insert(entry(1), 1000 + start));
            for later in [0, 1, 120, 240] {
                assert!(!filter.insert(entry(1), 1000 + start + later), "{start} {later}");
            }
            assert!(filter.insert(entry(1), 1000 + start + 481), "{start}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_shrinking_counted() {
        let mut filter = ReplayFilter::new(240, 100);
        for n in 0..10_000 {
            assert!(filter.insert(entry(n), 50));
            assert!(filter.len() <= 200);
            assert!(!filter.insert(entry(n), 50));
        }
        assert_eq!(filter.shortened(), 99);
        // The latest hundred at least are still known.
        for n in 9_900..10_000 {
            assert!(!filter.insert(entry(n), 51));
        }
    }

    #[test]
    fn a_clock_that_jumps_back_forgets_nothing() {
        let mut filter = ReplayFilter::new(240, 100);
        assert!(filter.insert(entry(1), 10_000));
        assert!(!filter.insert(entry(1), 5));
        assert!(!filter.insert(entry(1), 10_001));
    }

    #[test]
    fn the_two_kinds_do_not_meet() {
        let mut guard = ReplayGuard::default();
        assert!(guard.insert(Seen::AuthId([1; 16]), 0));
        assert!(guard.insert(Seen::Session([1; 16]), 0));
        assert!(!guard.insert(Seen::AuthId([1; 16]), 240));
        assert!(!guard.insert(Seen::Session([1; 16]), 240));
        assert_eq!(guard.shortened(), 0);
    }
}
