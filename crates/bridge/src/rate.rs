//! How often something may happen. Time is an argument, but for [`Turns`], which waits.

use std::collections::HashMap;
use std::mem;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::origin::Origin;

/// Addresses that are remembered before older ones are forgotten; twice as many at most.
pub(crate) const REMEMBERED: usize = 4096;

/// Time in which an empty bucket fills: what was not used for so long says nothing any more.
const FILLED: Duration = Duration::from_secs(2);

/// A bucket that fills by `per_second` and holds twice as much.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    level: f64,
    last: Instant,
}

impl Bucket {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second.max(1));
        Bucket {
            per_second,
            level: 2.0 * per_second,
            last: now,
        }
    }

    /// Takes one if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        if self.level < 1.0 {
            return false;
        }
        self.level -= 1.0;
        true
    }

    /// How long until there is one.
    fn missing(&mut self, now: Instant) -> Duration {
        self.fill(now);
        Duration::from_secs_f64((1.0 - self.level).max(0.0) / self.per_second)
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.checked_duration_since(self.last).unwrap_or(Duration::ZERO);
        self.last = now;
        self.level = (self.level + passed.as_secs_f64() * self.per_second).min(2.0 * self.per_second);
    }
}

/// A bucket for each address. One that has not been used for a while would be full, and is forgotten.
#[derive(Debug)]
pub(crate) struct Buckets {
    per_second: u32,
    recent: HashMap<Origin, Bucket>,
    older: HashMap<Origin, Bucket>,
    turned: Instant,
}

impl Buckets {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Buckets {
            per_second,
            recent: HashMap::new(),
            older: HashMap::new(),
            turned: now,
        }
    }

    /// Takes one of this address if it has one.
    pub(crate) fn take(&mut self, from: Origin, now: Instant) -> bool {
        let stale = now.saturating_duration_since(self.turned) >= FILLED;
        // Who has thousands of addresses gains nothing by having one of them forgotten.
        if stale || self.recent.len() >= REMEMBERED {
            self.older = mem::take(&mut self.recent);
            self.turned = now;
        }
        let (older, per_second) = (&mut self.older, self.per_second);
        let bucket = self
            .recent
            .entry(from)
            .or_insert_with(|| older.remove(&from).unwrap_or_else(|| Bucket::new(per_second, now)));
        bucket.take(now)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }
}

/// Lets callers through one after the other, so many a second. Who gives up leaves the queue.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<Bucket>);

impl Turns {
    pub(crate) fn new(per_second: u32) -> Self {
        Turns(Mutex::new(Bucket::new(per_second, Instant::now())))
    }

    /// Waits for a turn.
    pub(crate) async fn wait(&self) {
        let mut bucket = self.0.lock().await;
        // A timer may be early.
        while !bucket.take(Instant::now()) {
            let missing = bucket.missing(Instant::now());
            tokio::time::sleep(missing).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10, start);
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 20);
        assert_eq!(bucket.missing(start), Duration::from_millis(100));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 10);
        // It never holds more, and time that goes back gives nothing.
        let much_later = start + Duration::from_secs(1000);
        assert!(bucket.take(much_later));
        assert_eq!(bucket.missing(much_later), Duration::ZERO);
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 19);
    }

    #[test]
    fn each_address_has_its_own_and_keeps_it_while_it_matters() {
        let start = Instant::now();
        let mut buckets = Buckets::new(10, start);
        let (one, other) = (Origin::V6([1, 2, 3, 4]), Origin::V6([1, 2, 3, 5]));
        assert_eq!((0..100).filter(|_| buckets.take(one, start)).count(), 20);
        assert_eq!((0..100).filter(|_| buckets.take(other, start)).count(), 20);
        // What was taken is remembered across a turn, as long as it takes to fill again.
        let second = Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| buckets.take(one, start + second)).count(), 10);
        let after = start + FILLED;
        assert_eq!((0..100).filter(|_| buckets.take(one, after)).count(), 10);
        assert_eq!(buckets.len(), 2);
        let much_later = after + 3 * FILLED;
        assert!(buckets.take(other, much_later));
        assert!(buckets.take(other, much_later + FILLED));
        assert_eq!(buckets.len(), 1);
    }

    #[tokio::test]
    async fn turns_are_given_and_who_gives_up_leaves_the_queue() {
        let turns = Turns::new(1);
        turns.wait().await;
        turns.wait().await;
        // The first waits for its turn, the second for the first; neither is in the way of the third.
        for _ in 0..2 {
            let given_up = tokio::time::timeout(Duration::from_millis(10), turns.wait()).await;
            assert!(given_up.is_err());
        }
        let waited = tokio::time::timeout(Duration::from_secs(30), turns.wait()).await;
        assert!(waited.is_ok());
    }
}
