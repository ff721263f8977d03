//! How long things took, by size.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets. What took longer is in one more.
pub(crate) const BOUNDS: [Duration; 13] = [
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How many things took how long.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// One more thing took so long.
    pub(crate) fn add(&self, took: Duration) {
        let at = BOUNDS.partition_point(|bound| *bound < took);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        // 584,000 years of it fit.
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many took at most as long as each of [`BOUNDS`], and how many there are.
    pub(crate) fn cumulated(&self) -> [u64; BOUNDS.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.load(Ordering::Relaxed);
            sum
        })
    }

    /// How long all of them took.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}
