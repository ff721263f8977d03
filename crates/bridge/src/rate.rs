//! How often something may happen.

use std::time::{Duration, Instant};

/// A bucket that fills by `per_second` and holds twice as much. Time is an argument.
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
        let passed = now.checked_duration_since(self.last).unwrap_or(Duration::ZERO);
        self.last = now;
        self.level = (self.level + passed.as_secs_f64() * self.per_second).min(2.0 * self.per_second);
        if self.level < 1.0 {
            return false;
        }
        self.level -= 1.0;
        true
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
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 10);
        // It never holds more, and time that goes back gives nothing.
        let much_later = start + Duration::from_secs(1000);
        assert!(bucket.take(much_later));
        assert_eq!((0..100).filter(|_| bucket.take(start)).count(), 19);
    }
}
