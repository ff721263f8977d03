//! Latencies of a window: a histogram in which failures count as infinitely slow.

use hdrhistogram::Histogram;

/// Bounds of the histogram: 1 ns to 60 s, with three digits.
const BOUNDS_NS: (u64, u64) = (1, 60_000_000_000);
const DIGITS: u8 = 3;

/// Samples beyond a percentile that it takes to be told: `1 / (1 - q)` times this many in all.
const BEYOND: f64 = 10.0;

/// Latencies in nanoseconds. Recording allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    histogram: Histogram<u64>,
    failed: u64,
    longest: u64,
}

impl Latency {
    pub(crate) fn new() -> Latency {
        let mut histogram = Histogram::new_with_bounds(BOUNDS_NS.0, BOUNDS_NS.1, DIGITS)
            .or_else(|_| Histogram::new(DIGITS))
            .unwrap_or_else(|_| unreachable!("the bounds are constants that the library takes"));
        histogram.auto(false);
        Latency {
            histogram,
            failed: 0,
            longest: 0,
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
        (self.failed, self.longest) = (0, 0);
    }

    /// One that was done.
    pub(crate) fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(BOUNDS_NS.0));
        self.longest = self.longest.max(ns);
    }

    /// One that failed, or was not answered in time.
    pub(crate) fn fail(&mut self) {
        self.failed += 1;
    }

    /// All, with those that failed.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len() + self.failed
    }

    /// Those that failed.
    pub(crate) const fn failed(&self) -> u64 {
        self.failed
    }

    /// Percentile `q` in seconds: infinite where it falls among the failures, `None` where there are too few samples to
    /// tell it.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        let all = self.count();
        // The product is off by a rounding error: 10 / (1 - 0.99) is a little over 1,000.
        if (all as f64) * (1.0 - q) < BEYOND - 1e-6 {
            return None;
        }
        Some(self.at(q))
    }

    /// The same however few samples there are; 0 without any.
    pub(crate) fn at(&self, q: f64) -> f64 {
        let rank = (q * self.count() as f64).ceil().max(1.0);
        let done = self.histogram.len();
        if rank > done as f64 && self.failed > 0 {
            return f64::INFINITY;
        }
        // A half less, so that no rounding error makes it the next rank.
        let share = (rank - 0.5) / done.max(1) as f64;
        self.histogram.value_at_quantile(share) as f64 / 1e9
    }

    /// The longest in seconds, exactly; infinite if one failed, `None` without any.
    pub(crate) fn longest(&self) -> Option<f64> {
        match (self.failed, self.histogram.len()) {
            (0, 0) => None,
            (0, _) => Some(self.longest as f64 / 1e9),
            _ => Some(f64::INFINITY),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(range: impl Iterator<Item = u64>) -> Latency {
        let mut latency = Latency::new();
        range.for_each(|us| latency.record(us * 1000));
        latency
    }

    fn close(value: Option<f64>, wanted: f64) -> bool {
        value.is_some_and(|value| (value / wanted - 1.0).abs() < 0.001)
    }

    #[test]
    fn percentiles_need_ten_samples_beyond_them() {
        let latency = of(1..=999);
        assert_eq!(latency.quantile(0.99), None);
        assert!(close(latency.quantile(0.95), 950e-6), "{:?}", latency.quantile(0.95));
        let latency = of(1..=1000);
        assert!(close(latency.quantile(0.99), 990e-6), "{:?}", latency.quantile(0.99));
        assert!(close(latency.quantile(0.5), 500e-6));
        assert_eq!(latency.quantile(0.999), None);
        assert!(close(of(1..=10_000).quantile(0.999), 9990e-6));
        assert_eq!(of(1..=19).quantile(0.5), None);
        assert!(of(1..=20).quantile(0.5).is_some());
    }

    #[test]
    fn failures_are_infinitely_slow() {
        let mut latency = of(1..=990);
        (0..10).for_each(|_| latency.fail());
        assert_eq!(latency.count(), 1000);
        assert!(close(latency.quantile(0.99), 990e-6), "just one per cent failed");
        assert_eq!(latency.longest(), Some(f64::INFINITY));
        latency.fail();
        assert_eq!(latency.quantile(0.99), Some(f64::INFINITY), "over one per cent");
        assert!(latency.quantile(0.5).unwrap().is_finite());
        latency.clear();
        assert_eq!((latency.count(), latency.failed(), latency.longest()), (0, 0, None));
    }

    #[test]
    fn the_bounds_hold_and_the_longest_is_exact() {
        let mut latency = Latency::new();
        latency.record(0);
        latency.record(61_234_567_891);
        assert_eq!(latency.longest(), Some(61.234_567_891));
        assert_eq!(latency.count(), 2);
    }
}
