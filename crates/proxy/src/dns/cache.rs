//! Answers that are kept.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::message::{Answer, Family};

/// Parts that are locked one at a time.
const SHARDS: usize = 16;
/// Answers that are kept in all.
pub(crate) const MAX_ENTRIES: usize = 65_536;
/// Bytes that they take in all.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// What an answer takes besides its name and addresses, about.
const ENTRY: usize = 200;
/// The longest that an answer is kept: a day.
const MAX_TTL: u32 = 86_400;
/// The longest that is remembered that there is nothing (RFC 2308 section 5): three hours.
const MAX_NOTHING: u32 = 10_800;

/// Which server said it, about what.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key(Arc<[u8]>);

impl Key {
    pub(crate) fn new(server: usize, family: Family, name: &str) -> Key {
        let mut key = Vec::with_capacity(name.len() + 3);
        key.extend_from_slice(&(server as u16).to_be_bytes());
        key.push(family as u8);
        key.extend_from_slice(name.as_bytes());
        Key(key.into())
    }
}

/// What is known of a name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Found {
    /// Its addresses of one family, or of both.
    pub(crate) ips: Arc<[IpAddr]>,
    /// The response code: 0, or 3 for a name that does not exist, or what the configuration says.
    pub(crate) code: u16,
    /// How long it holds, seconds; at least 1.
    pub(crate) ttl: u32,
}

impl Found {
    /// How long an answer is kept, if it is.
    pub(crate) fn of(answer: Answer) -> (Found, Option<Duration>) {
        let most = if answer.ips.is_empty() { MAX_NOTHING } else { MAX_TTL };
        let ttl = answer.ttl.map(|ttl| ttl.clamp(1, most));
        let found = Found {
            ips: answer.ips.into(),
            code: answer.code,
            ttl: ttl.unwrap_or(1),
        };
        (found, ttl.map(|ttl| Duration::from_secs(ttl.into())))
    }
}

struct Entry {
    found: Found,
    until: Instant,
    /// It was asked for since its turn to go came last.
    used: AtomicBool,
    bytes: usize,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<Key, Entry>,
    /// Whose turn it is to go.
    turns: VecDeque<Key>,
    bytes: usize,
}

/// Answers that are kept, bounded in number and bytes. Those that nobody asked for go first.
pub(crate) struct Cache {
    shards: [RwLock<Shard>; SHARDS],
    hasher: RandomState,
    max_entries: usize,
    max_bytes: usize,
}

/// What the cache has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Kept {
    /// It holds.
    Fresh(Found),
    /// It has been out of date for this long.
    Stale(Found, Duration),
}

impl Default for Cache {
    fn default() -> Self {
        Cache::with_room(MAX_ENTRIES, MAX_BYTES)
    }
}

impl Cache {
    fn with_room(entries: usize, bytes: usize) -> Cache {
        Cache {
            shards: Default::default(),
            hasher: RandomState::new(),
            max_entries: entries / SHARDS,
            max_bytes: bytes / SHARDS,
        }
    }

    fn shard(&self, key: &Key) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    pub(crate) fn get(&self, key: &Key, now: Instant) -> Option<Kept> {
        let shard = self.shard(key).read().unwrap_or_else(PoisonError::into_inner);
        let entry = shard.entries.get(key)?;
        entry.used.store(true, Ordering::Relaxed);
        let mut found = entry.found.clone();
        match entry.until.checked_duration_since(now) {
            Some(left) if !left.is_zero() => {
                found.ttl = u32::try_from(left.as_millis().div_ceil(1000)).unwrap_or(MAX_TTL).max(1);
                Some(Kept::Fresh(found))
            }
            _ => {
                found.ttl = 1;
                Some(Kept::Stale(found, now.duration_since(entry.until)))
            }
        }
    }

    pub(crate) fn put(&self, key: Key, found: Found, holds: Duration, now: Instant) {
        let bytes = ENTRY + key.0.len() + found.ips.len() * size_of::<IpAddr>();
        let mut shard = self.shard(&key).write().unwrap_or_else(PoisonError::into_inner);
        let shard = &mut *shard;
        let entry = Entry {
            found,
            until: now + holds,
            used: AtomicBool::new(false),
            bytes,
        };
        shard.bytes += bytes;
        match shard.entries.insert(key.clone(), entry) {
            Some(old) => shard.bytes -= old.bytes,
            None => shard.turns.push_back(key),
        }
        while shard.entries.len() > self.max_entries || shard.bytes > self.max_bytes {
            let Some(turn) = shard.turns.pop_front() else { break };
            let used = shard
                .entries
                .get(&turn)
                .is_some_and(|entry| entry.used.swap(false, Ordering::Relaxed));
            if used {
                shard.turns.push_back(turn);
            } else if let Some(gone) = shard.entries.remove(&turn) {
                shard.bytes -= gone.bytes;
            }
        }
    }

    /// Answers and bytes that are kept.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        let shards = self.shards.iter().map(|shard| shard.read().unwrap());
        shards.fold((0, 0), |(n, bytes), shard| {
            (n + shard.entries.len(), bytes + shard.bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(n: u8) -> Found {
        Found {
            ips: Arc::from([IpAddr::from([192, 0, 2, n])]),
            code: 0,
            ttl: 60,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_its_time_and_counts_down() {
        let cache = Cache::default();
        let key = Key::new(0, Family::V4, "a.example");
        let begin = Instant::now();
        cache.put(key.clone(), found(1), Duration::from_secs(60), begin);
        assert_eq!(cache.get(&Key::new(1, Family::V4, "a.example"), begin), None);
        assert_eq!(cache.get(&Key::new(0, Family::V6, "a.example"), begin), None);
        assert_eq!(cache.get(&key, begin), Some(Kept::Fresh(found(1))));
        let later = cache.get(&key, begin + Duration::from_millis(40_500));
        assert_eq!(later, Some(Kept::Fresh(Found { ttl: 20, ..found(1) })));
        let stale = cache.get(&key, begin + Duration::from_secs(61));
        assert_eq!(
            stale,
            Some(Kept::Stale(Found { ttl: 1, ..found(1) }, Duration::from_secs(1)))
        );
    }

    #[tokio::test]
    async fn neither_names_nor_bytes_grow_without_end() {
        let now = Instant::now();
        let cache = Cache::with_room(160, 1 << 20);
        let liked = Key::new(0, Family::V4, "liked.example");
        cache.put(liked.clone(), found(1), Duration::from_secs(60), now);
        for n in 0..20_000 {
            assert!(
                cache.get(&liked, now).is_some(),
                "what is asked for was forgotten after {n}"
            );
            cache.put(
                Key::new(0, Family::V4, &format!("{n}.example")),
                found(2),
                Duration::from_secs(60),
                now,
            );
        }
        let (entries, _) = cache.size();
        assert!(entries <= 160 && entries > 120, "{entries}");
        let cache = Cache::with_room(1 << 20, 160 << 10);
        for n in 0..5000 {
            let long = format!("{}.{n}.example", "x".repeat(200));
            cache.put(Key::new(0, Family::V4, &long), found(2), Duration::from_secs(60), now);
        }
        let (entries, bytes) = cache.size();
        assert!(bytes <= 160 << 10 && entries > 200, "{entries} in {bytes} bytes");
        assert!(cache.shards.iter().all(|shard| {
            let shard = shard.read().unwrap();
            shard.turns.len() == shard.entries.len()
        }));
    }

    #[test]
    fn times_are_clamped() {
        let of = |ips: &[u8], ttl| {
            let ips = ips.iter().map(|n| IpAddr::from([192, 0, 2, *n])).collect();
            let (found, holds) = Found::of(Answer { ips, ttl, code: 0 });
            (found.ttl, holds.map(|holds| holds.as_secs()))
        };
        assert_eq!(of(&[1], Some(0)), (1, Some(1)));
        assert_eq!(of(&[1], Some(60)), (60, Some(60)));
        assert_eq!(of(&[1], Some(u32::MAX)), (86_400, Some(86_400)));
        assert_eq!(of(&[], Some(u32::MAX)), (10_800, Some(10_800)));
        assert_eq!(of(&[], None), (1, None));
    }
}
