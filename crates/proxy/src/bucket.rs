//! A rate that many connections share.
//!
//! The bucket is one number: until when it is used up. Whoever takes bytes moves that moment on by the time that they take, and
//! waits for it. So those who wait stand in the order in which they came, one turn each, without a list of them and without a
//! lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Bytes taken at a time, at most: as much as is moved at once where nothing limits.
pub(crate) const QUANTUM: u64 = 512 << 10;
/// At least, where the rate allows it.
const SMALL: u64 = 16 << 10;

/// Bytes that a full bucket holds at least where nothing else was asked for.
const LEAST_BURST: u64 = 64 << 10;

/// Longest time that a full bucket lasts, and that one taking costs.
const LONGEST: i64 = 86_400_000_000_000;

/// Bytes a second, shared. Without a rate it gives whatever is asked for.
#[derive(Debug)]
pub(crate) struct Bucket {
    begun: Instant,
    /// Bytes a second. 0: any number.
    rate: AtomicU64,
    /// Bytes that a full one holds.
    burst: AtomicU64,
    /// Until when it is used up, nanoseconds since it was made.
    until: AtomicI64,
}

impl Bucket {
    pub(crate) fn new(now: Instant) -> Bucket {
        Bucket {
            begun: now,
            rate: AtomicU64::new(0),
            burst: AtomicU64::new(0),
            until: AtomicI64::new(i64::MIN / 2),
        }
    }

    /// Sets bytes a second, 0 for any number, and those that may come at once, 0 for what is usual. It holds from now on.
    pub(crate) fn set(&self, rate: u64, burst: u64, now: Instant) {
        let burst = match burst {
            0 => (rate / 10).max(LEAST_BURST),
            burst => burst,
        };
        let same = self.rate.swap(rate, Ordering::Relaxed) == rate;
        self.burst.store(burst, Ordering::Relaxed);
        if !same {
            // What was taken at another rate is not waited for at this one.
            self.until.fetch_min(self.nanos(now), Ordering::Relaxed);
        }
    }

    /// Bytes a second. 0: any number.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    fn nanos(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.begun).as_nanos()).unwrap_or(i64::MAX / 2)
    }

    /// The time that so many bytes take, nanoseconds.
    fn cost(bytes: u64, rate: u64) -> i64 {
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        i64::try_from(nanos).unwrap_or(LONGEST).min(LONGEST)
    }

    /// How many bytes to take at a time: what comes in 2.5 ms, so that a turn of many connections is short. The same for all, or
    /// some would have larger shares.
    pub(crate) fn quantum(&self) -> usize {
        let rate = self.rate.load(Ordering::Relaxed);
        // Where that would take longer than the twentieth part of a second, it is less.
        (rate / 400).clamp(SMALL, QUANTUM).min((rate / 20).max(1024)) as usize
    }

    /// Takes bytes. The moment from which on they may be moved, which may be past.
    pub(crate) fn take(&self, bytes: usize, now: Instant) -> Instant {
        let until = self.take_until(bytes, now, i64::MAX);
        until.map_or(now, |until| {
            self.begun + Duration::from_nanos(until.max(0).unsigned_abs())
        })
    }

    /// Takes bytes if they may be moved now, and nobody waits for his.
    pub(crate) fn take_at_once(&self, bytes: usize, now: Instant) -> bool {
        self.rate() == 0 || self.take_until(bytes, now, self.nanos(now)).is_some()
    }

    /// Takes bytes if they may be moved at some moment. From which on they may.
    fn take_until(&self, bytes: usize, now: Instant, latest: i64) -> Option<i64> {
        let rate = self.rate();
        if rate == 0 {
            return None;
        }
        let (cost, at) = (Self::cost(bytes as u64, rate), self.nanos(now));
        let full = at - Self::cost(self.burst.load(Ordering::Relaxed), rate);
        let taking = |until: i64| Some(until.max(full) + cost).filter(|next| *next <= latest);
        let taken = self.until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taking);
        taken.ok().and_then(taking)
    }

    /// Gives back bytes that were taken and not moved.
    pub(crate) fn give_back(&self, bytes: usize) {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate > 0 {
            self.until.fetch_sub(Self::cost(bytes as u64, rate), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections that each wait for their turn, move it and ask again. What each has moved in this time.
    fn run(bucket: &Bucket, from: Instant, time: Duration, connections: usize, moves: usize) -> Vec<usize> {
        let mut moved = vec![0; connections];
        let ask = |now| {
            let size = bucket.quantum();
            (bucket.take(size, now).max(now), size)
        };
        let mut turns: Vec<(Instant, usize)> = (0..connections).map(|_| ask(from)).collect();
        loop {
            let next = (0..connections).min_by_key(|one| turns[*one].0).unwrap();
            let (now, size) = turns[next];
            if now >= from + time {
                return moved;
            }
            let used = size.min(moves);
            bucket.give_back(size - used);
            moved[next] += used;
            turns[next] = ask(now);
        }
    }

    #[test]
    fn the_rate_is_kept_and_shared_evenly() {
        for mbps in [1, 5, 50, 200, 10_000] {
            let rate = mbps * 125_000;
            for connections in [1, 8, 64] {
                for moves in [usize::MAX, 5000] {
                    if moves == 5000 && mbps > 200 {
                        continue;
                    }
                    let now = Instant::now();
                    let bucket = Bucket::new(now);
                    bucket.set(rate, 0, now);
                    let moved = run(&bucket, now, Duration::from_secs(10), connections, moves);
                    let all = moved.iter().sum::<usize>() as f64;
                    let share = all / (rate * 10) as f64;
                    let most = 1.0 + 1.1 * (bucket.burst.load(Ordering::Relaxed) as f64) / (rate * 10) as f64;
                    // Where less is moved than was taken, the first turns are longer than they need to be.
                    let least = if moves == usize::MAX { 0.95 } else { 0.8 };
                    assert!(
                        (least..=most).contains(&share),
                        "{mbps} Mbit/s, {connections} connections: {share}"
                    );
                    let (least, greatest) = (moved.iter().min().unwrap(), moved.iter().max().unwrap());
                    // Who came first had what the bucket held.
                    let burst = bucket.burst.load(Ordering::Relaxed);
                    assert!(
                        (greatest - least) as u64 <= burst + 3 * QUANTUM,
                        "{mbps} {connections}: {moved:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_turn_is_as_long_as_the_rate_allows() {
        let now = Instant::now();
        let bucket = Bucket::new(now);
        for (rate, bytes) in [
            (8000, 1024),
            (125_000, 6250),
            (6_250_000, 16 << 10),
            (25_000_000, 62_500),
            (1_250_000_000, 512 << 10),
        ] {
            bucket.set(rate, 0, now);
            assert_eq!(bucket.quantum(), bytes, "{rate}");
        }
    }

    #[test]
    fn after_a_pause_there_is_one_burst() {
        let now = Instant::now();
        let bucket = Bucket::new(now);
        bucket.set(1_000_000, 200_000, now);
        let later = now + Duration::from_secs(3600);
        for _ in 0..4 {
            assert!(bucket.take(50_000, later) <= later);
        }
        assert_eq!(bucket.take(50_000, later), later + Duration::from_millis(50));
        bucket.give_back(50_000);
        assert_eq!(bucket.take(10_000, later), later + Duration::from_millis(10));
    }

    #[test]
    fn what_is_there_is_taken_at_once_and_what_is_not_is_left() {
        let now = Instant::now();
        let bucket = Bucket::new(now);
        assert!(bucket.take_at_once(usize::MAX, now));
        bucket.set(1_000_000, 100_000, now);
        let later = now + Duration::from_secs(1);
        assert!(bucket.take_at_once(60_000, later));
        assert!(!bucket.take_at_once(60_000, later));
        assert!(bucket.take_at_once(40_000, later));
        assert!(!bucket.take_at_once(1, later));
        // Nobody had more than there was.
        assert_eq!(bucket.take(1000, later), later + Duration::from_millis(1));
        // Whoever waits is not overtaken.
        assert!(!bucket.take_at_once(1, later + Duration::from_micros(900)));
    }

    #[test]
    fn another_rate_holds_at_once() {
        let now = Instant::now();
        let bucket = Bucket::new(now);
        assert_eq!(bucket.rate(), 0);
        assert_eq!(bucket.take(1 << 40, now), now);
        bucket.set(1250, 0, now);
        assert_eq!(bucket.rate(), 1250);
        bucket.take(1 << 20, now);
        assert!(bucket.take(1024, now) > now + Duration::from_secs(600));
        bucket.set(1_250_000, 0, now);
        assert!(bucket.take(1250, now) <= now + Duration::from_millis(1));
        // The same again gives nothing away.
        bucket.take(12_500_000, now);
        bucket.set(1_250_000, 0, now);
        assert!(bucket.take(1, now) >= now + Duration::from_secs(10));
    }

    #[test]
    fn extremes_neither_overflow_nor_stand_still() {
        for (rate, burst) in [(1, 1), (1, u64::MAX), (u64::MAX, 1), (u64::MAX, u64::MAX)] {
            let now = Instant::now();
            let bucket = Bucket::new(now);
            bucket.set(rate, burst, now);
            for _ in 0..100 {
                assert!(bucket.quantum() > 0);
                bucket.take(usize::MAX, now);
                bucket.give_back(usize::MAX);
                bucket.take(1, now);
            }
        }
    }
}
