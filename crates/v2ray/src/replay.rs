//! What was seen before.

use std::collections::{BTreeMap, HashSet};

use sha2::{Digest, Sha256};

use crate::{Error, Protocol, UserId};

/// Seconds for which things are remembered after their time: the longest of any protocol, that of VMess.
const MAX_SKEW: u64 = 120;

/// Seconds of authentication ids that are forgotten together.
const SLICE: i64 = 8;
/// However full the memory is, what was made in this many seconds before now is never forgotten to make room.
const KEPT: i64 = 30;

/// Something that must not come twice, with the time of the header that it came in.
///
/// Of each, eight bytes of a hash over the user's id and the bytes themselves are kept: the same user is known again at any
/// inbound, and even among a million entries a new one is taken for a known one less than once in ten million million times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seen {
    protocol: Protocol,
    time: i64,
    entry: u64,
}

impl Seen {
    /// An authentication id of a user, made at `time`.
    pub(crate) fn auth_id(user: &UserId, time: i64, auth_id: &[u8; 16]) -> Self {
        Self::of(Protocol::Vmess, b"auth", user.as_bytes(), time, &[auth_id])
    }

    /// The key and IV of a body, whose header had an authentication id made at `time`.
    pub(crate) fn session(user: &UserId, time: i64, key: &[u8; 16], iv: &[u8; 16]) -> Self {
        Self::of(Protocol::Vmess, b"body", user.as_bytes(), time, &[key, iv])
    }

    /// The salt of a Shadowsocks request, made at `time`.
    pub(crate) fn salt(time: i64, salt: &[u8]) -> Self {
        Self::of(Protocol::Shadowsocks, b"salt", &[], time, &[salt])
    }

    fn of(protocol: Protocol, kind: &[u8; 4], user: &[u8], time: i64, parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new().chain_update(kind).chain_update(user);
        for part in parts {
            hash.update(part);
        }
        let digest: [u8; 32] = hash.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Seen {
            protocol,
            time,
            entry: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        }
    }
}

/// Remembers what headers of VMess and of Shadowsocks 2022 brought, for as long as their times are good, in bounded memory.
///
/// One is enough for a process, whatever inbounds it has and however often its configuration is replaced: a header that was
/// used on one inbound is known on all others. Only headers that a user's key has sealed get here, so strangers cannot fill
/// it.
///
/// It never guesses. What it cannot know about is refused: ids made before it was there, and ids of times that it had to
/// forget for want of room.
///
/// # Memory
///
/// Two entries of 8 bytes a connection of VMess and one a connection of Shadowsocks, in hash tables that are at least 7/16 full but for the youngest. An id is good
/// for at most 120 seconds after its time, so 10,000 connections a second take 40 MB where clocks agree, and 73 MB where
/// all clients are as far ahead as they may be. The number of users adds nothing: 10,000 users with one connection a
/// second each are those 10,000 connections. It never takes more than 110 MB: see [`ReplayGuard::new`].
#[derive(Debug)]
pub struct ReplayGuard {
    /// What came under ids of `SLICE` seconds, by their number.
    slices: BTreeMap<i64, HashSet<u64>>,
    held: usize,
    capacity: usize,
    /// Ids made before this may have been used.
    forgotten: i64,
    shortened: u64,
}

impl ReplayGuard {
    /// A memory of at most `capacity` entries, two for each connection, which take 10 to 21 bytes each.
    ///
    /// If more come, the oldest are forgotten and ids as old as them refused from then on, so that clients whose clocks are
    /// behind are the first who have to wait. [`ReplayGuard::shortened`] counts how often that happened.
    pub fn new(capacity: usize) -> Self {
        ReplayGuard {
            slices: BTreeMap::new(),
            held: 0,
            capacity: capacity.max(1),
            forgotten: i64::MIN,
            shortened: 0,
        }
    }

    /// Remembers what was seen.
    ///
    /// `now` is the Unix time in seconds, and `start` that of the moment from which on this memory has seen everything, by
    /// the same clock: where the clock may be set, `now` less the seconds that have passed since. An id made in the second
    /// of the start or before is refused, since a process before this one may have accepted it.
    ///
    /// # Errors
    /// [`Error::Replayed`] if it was seen before; [`Error::BeforeStart`] and [`Error::Forgotten`] if that cannot be known.
    pub fn insert(&mut self, seen: Seen, now: i64, start: i64) -> Result<(), Error> {
        if seen.time <= start {
            return Err(Error::BeforeStart {
                seconds: start.abs_diff(seen.time),
            });
        }
        self.expire(now);
        let slice = seen.time.div_euclid(SLICE);
        let known = self
            .slices
            .get(&slice)
            .is_some_and(|entries| entries.contains(&seen.entry));
        if known {
            return Err(seen.protocol.replayed());
        }
        while self.held >= self.capacity && self.make_room(now) {}
        if seen.time < self.forgotten || self.held >= self.capacity {
            return Err(Error::Forgotten);
        }
        self.slices.entry(slice).or_default().insert(seen.entry);
        self.held += 1;
        Ok(())
    }

    /// Lets go of ids that are too old to be accepted. They stay refused if the clock is set back.
    fn expire(&mut self, now: i64) {
        let oldest = now.saturating_sub_unsigned(MAX_SKEW);
        while self
            .slices
            .first_key_value()
            .is_some_and(|(slice, _)| end(*slice) <= oldest)
        {
            self.forget_first();
        }
    }

    /// Forgets the oldest slice. False if all are too young for that.
    fn make_room(&mut self, now: i64) -> bool {
        let old = self
            .slices
            .first_key_value()
            .is_some_and(|(slice, _)| end(*slice) <= now.saturating_sub(KEPT));
        if old {
            self.shortened += 1;
            self.forget_first();
        }
        old
    }

    fn forget_first(&mut self) {
        if let Some((slice, entries)) = self.slices.pop_first() {
            self.held -= entries.len();
            self.forgotten = self.forgotten.max(end(slice));
        }
    }

    /// How many entries are remembered.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// How often something had to be forgotten before its time for want of room.
    pub fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Bytes that the entries take: 9 for each place of their hash tables, which the standard library makes a power of two
    /// of, at most 7/8 full.
    pub fn bytes(&self) -> usize {
        let table = |entries: &HashSet<u64>| match entries.capacity() {
            0 => 0,
            few @ 1..=7 => (few + 1) * 9,
            more => (more / 7 * 8) * 9,
        };
        self.slices.values().map(table).sum()
    }
}

/// Room for 10,000 connections a second whose clocks are as far ahead as they may be.
impl Default for ReplayGuard {
    fn default() -> Self {
        Self::new(5_000_000)
    }
}

/// The first second behind a slice.
fn end(slice: i64) -> i64 {
    slice.saturating_add(1).saturating_mul(SLICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;
    const START: i64 = NOW - 100_000;
    const REPLAYED: Result<(), Error> = Err(Protocol::Vmess.replayed());

    fn user(name: &str) -> UserId {
        UserId::parse(name).unwrap()
    }

    fn seen(n: u64, time: i64) -> Seen {
        // As good as a hash, for less.
        let entry = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Seen {
            protocol: Protocol::Vmess,
            time,
            entry,
        }
    }

    #[test]
    fn remembers_for_as_long_as_the_id_is_good() {
        let skew = MAX_SKEW as i64;
        for ahead in [-skew, -1, 0, 7, skew] {
            let mut guard = ReplayGuard::new(1000);
            let one = seen(1, NOW + ahead);
            assert_eq!(guard.insert(one, NOW, START), Ok(()));
            for later in 0..=skew + ahead {
                assert_eq!(guard.insert(one, NOW + later, START), REPLAYED, "{ahead} {later}");
            }
            // Nothing is kept for longer than it takes.
            let later = NOW + ahead + skew + SLICE;
            assert_eq!(guard.insert(seen(2, later), later, START), Ok(()));
            assert_eq!(guard.len(), 1, "{ahead}");
        }
    }

    #[test]
    fn users_and_kinds_are_kept_apart() {
        let (ann, bob) = (user("ann"), user("bob"));
        let mut guard = ReplayGuard::default();
        for seen in [
            Seen::auth_id(&ann, NOW, &[1; 16]),
            Seen::auth_id(&bob, NOW, &[1; 16]),
            Seen::session(&ann, NOW, &[1; 16], &[1; 16]),
            Seen::session(&bob, NOW, &[1; 16], &[1; 16]),
        ] {
            assert_eq!(guard.insert(seen, NOW, START), Ok(()));
            assert_eq!(guard.insert(seen, NOW + 100, START), REPLAYED);
        }
        assert_eq!(guard.shortened(), 0);
    }

    #[test]
    fn what_was_made_before_the_start_is_refused() {
        let mut guard = ReplayGuard::new(1000);
        for (time, seconds) in [(NOW, Some(0)), (NOW - 7, Some(7)), (NOW + 1, None)] {
            let wanted = seconds.map_or(Ok(()), |seconds| Err(Error::BeforeStart { seconds }));
            assert_eq!(guard.insert(seen(1, time), NOW + 3, NOW), wanted, "{time}");
        }
        // The start is where the clock says it is: an hour less, if it was set back by one.
        assert_eq!(guard.insert(seen(2, NOW - 3590), NOW - 3590, NOW - 3600), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_refused() {
        let mut guard = ReplayGuard::new(100);
        // Ten a second: what is older than ten seconds has no room.
        for second in 0..120 {
            for n in 0..10 {
                let now = NOW + second;
                let one = seen(second as u64 * 10 + n, now);
                let got = guard.insert(one, now, START);
                assert!(guard.len() <= 100);
                match got {
                    Ok(()) => assert_eq!(guard.insert(one, now, START), REPLAYED),
                    got => assert_eq!(got, Err(Error::Forgotten)),
                }
            }
        }
        assert!(guard.shortened() > 0);
        // An id that may have been used is refused, whether it was or not.
        for n in 0..300 {
            let got = guard.insert(seen(n, NOW + n as i64 / 10), NOW + 119, START);
            assert!(got.is_err(), "{n}");
        }
    }

    #[test]
    fn who_fills_it_does_not_make_it_forget_the_last_half_minute() {
        let mut guard = ReplayGuard::new(1000);
        let mine = seen(u64::MAX, NOW - 20);
        assert_eq!(guard.insert(mine, NOW, START), Ok(()));
        let refused = (0..5000)
            .filter(|n| guard.insert(seen(*n, NOW + (n % 120) as i64), NOW, START) == Err(Error::Forgotten))
            .count();
        assert_eq!(refused, 4001);
        assert_eq!(guard.insert(mine, NOW, START), REPLAYED);
    }

    /// A clock that was an hour ahead for a while and is set right again makes old ids young.
    #[test]
    fn a_clock_that_jumps_forgets_nothing_that_could_come_again() {
        let mut guard = ReplayGuard::new(1000);
        let one = seen(1, NOW);
        assert_eq!(guard.insert(one, NOW, START), Ok(()));
        let ahead = NOW + 3600;
        assert_eq!(guard.insert(seen(2, ahead), ahead, START), Ok(()));
        assert_eq!(guard.insert(one, NOW + 10, START), Err(Error::Forgotten));
        assert_eq!(guard.insert(seen(3, NOW + 10), NOW + 10, START), Ok(()));
    }

    /// What the documentation says of memory.
    #[test]
    fn ten_thousand_connections_a_second_take_what_is_said() {
        for (ahead, most, least) in [(0, 41_000_000, 35_000_000), (MAX_SKEW as i64, 74_000_000, 65_000_000)] {
            let mut guard = ReplayGuard::default();
            for second in 0..300 {
                let now = NOW + second;
                for n in 0..20_000 {
                    let one = seen(second as u64 * 20_000 + n, now + ahead);
                    assert_eq!(guard.insert(one, now, START), Ok(()));
                }
                assert!(guard.bytes() <= most, "{} bytes", guard.bytes());
            }
            assert!(guard.bytes() >= least, "{} bytes", guard.bytes());
            assert_eq!(guard.shortened(), 0);
        }
        // However it is filled: with ids of every second that is accepted.
        let mut guard = ReplayGuard::default();
        for n in 0..5_200_000u64 {
            let _ = guard.insert(seen(n, NOW - 119 + (n % 239) as i64), NOW, START);
        }
        assert!(
            guard.len() <= 5_000_000 && guard.bytes() <= 110_000_000,
            "{}",
            guard.bytes()
        );
    }
}
