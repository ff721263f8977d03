//! Latencies of a window: a histogram in which failures count as infinitely slow.

use std::collections::BTreeMap;

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

    /// What it holds, in little memory.
    pub(crate) fn tail(&self) -> Tail {
        let counts = self.histogram.iter_recorded();
        Tail {
            counts: counts
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect(),
            failed: self.failed,
            longest: self.longest,
        }
    }
}

/// Latencies that are no longer added to: of a window, or of several windows together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tail {
    /// Nanoseconds, ascending, and how many took so long.
    counts: Vec<(u64, u64)>,
    failed: u64,
    longest: u64,
}

impl Tail {
    /// Samples that somebody else has counted: nanoseconds, and how many took so long.
    pub(crate) fn of(samples: impl IntoIterator<Item = (u64, u64)>) -> Tail {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for (ns, count) in samples.into_iter().filter(|(_, count)| *count > 0) {
            *counts.entry(ns).or_default() += count;
        }
        Tail {
            longest: counts.keys().next_back().copied().unwrap_or(0),
            counts: counts.into_iter().collect(),
            failed: 0,
        }
    }

    /// All samples of several windows in one: percentiles are not averaged, and a window with few samples has its share
    /// in those of all.
    pub(crate) fn merged<'a>(windows: impl IntoIterator<Item = &'a Tail>) -> Tail {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut all = Tail::default();
        for window in windows {
            for (ns, count) in &window.counts {
                *counts.entry(*ns).or_default() += count;
            }
            all.failed += window.failed;
            all.longest = all.longest.max(window.longest);
        }
        all.counts = counts.into_iter().collect();
        all
    }

    /// Those that were done.
    fn done(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// All, with those that failed.
    pub(crate) fn count(&self) -> u64 {
        self.done() + self.failed
    }

    /// Percentile `q` in seconds: infinite where it falls among the failures, `None` where there are too few samples to
    /// tell it. The longest is the percentile 1, of however few.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        if q >= 1.0 {
            return self.longest();
        }
        // The product is off by a rounding error: 10 / (1 - 0.99) is a little over 1,000.
        let enough = self.count() as f64 * (1.0 - q) >= BEYOND - 1e-6;
        enough.then(|| self.at(q)).flatten()
    }

    /// The same however few samples there are; `None` without any.
    pub(crate) fn at(&self, q: f64) -> Option<f64> {
        if q >= 1.0 {
            return self.longest();
        }
        let (done, all) = (self.done(), self.count());
        // A little less, so that no rounding error makes it the next rank.
        let rank = (q * all as f64 - 1e-6).ceil().max(1.0);
        if all == 0 || rank > done as f64 {
            return (all > 0).then_some(f64::INFINITY);
        }
        let mut below = 0;
        let found = self.counts.iter().find(|(_, count)| {
            below += count;
            below as f64 >= rank
        });
        found.map(|(ns, _)| *ns as f64 / 1e9)
    }

    /// The longest in seconds, exactly; infinite if one failed, `None` without any.
    fn longest(&self) -> Option<f64> {
        match (self.failed, self.counts.is_empty()) {
            (0, true) => None,
            (0, false) => Some(self.longest as f64 / 1e9),
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
        let tail = of(1..=999).tail();
        assert_eq!(tail.quantile(0.99), None);
        assert!(close(tail.at(0.99), 990e-6), "{:?}", tail.at(0.99));
        assert!(close(tail.quantile(0.95), 950e-6), "{:?}", tail.quantile(0.95));
        let tail = of(1..=1000).tail();
        assert!(close(tail.quantile(0.99), 990e-6), "{:?}", tail.quantile(0.99));
        assert!(close(tail.quantile(0.5), 500e-6));
        assert_eq!(tail.quantile(0.999), None);
        assert!(close(of(1..=10_000).tail().quantile(0.999), 9990e-6));
        assert_eq!(of(1..=19).tail().quantile(0.5), None);
        assert!(of(1..=20).tail().quantile(0.5).is_some());
        assert_eq!(Tail::default().at(0.5), None);
    }

    #[test]
    fn failures_are_infinitely_slow() {
        let mut latency = of(1..=990);
        (0..10).for_each(|_| latency.fail());
        assert_eq!((latency.count(), latency.tail().count()), (1000, 1000));
        assert!(close(latency.tail().quantile(0.99), 990e-6), "just one per cent failed");
        assert_eq!(latency.tail().quantile(1.0), Some(f64::INFINITY));
        latency.fail();
        assert_eq!(latency.tail().quantile(0.99), Some(f64::INFINITY), "over one per cent");
        assert!(latency.tail().quantile(0.5).unwrap().is_finite());
        latency.clear();
        assert_eq!((latency.count(), latency.failed()), (0, 0));
        assert_eq!(latency.tail(), Tail::default());
        latency.fail();
        assert_eq!(latency.tail().at(0.5), Some(f64::INFINITY));
    }

    #[test]
    fn the_bounds_hold_and_the_longest_is_exact() {
        let mut latency = Latency::new();
        latency.record(0);
        latency.record(61_234_567_891);
        assert_eq!(latency.tail().quantile(1.0), Some(61.234_567_891));
        assert_eq!(latency.count(), 2);
    }

    #[test]
    fn what_others_have_counted_is_as_good() {
        let tail = Tail::of([(5000, 0), (2000, 600), (1000, 300), (2000, 100)]);
        assert_eq!(tail.count(), 1000);
        assert_eq!((tail.quantile(0.3), tail.quantile(0.31)), (Some(1e-6), Some(2e-6)));
        assert_eq!(
            tail.quantile(1.0),
            Some(2e-6),
            "nothing took as long as what was not counted"
        );
        assert_eq!(Tail::of([]), Tail::default());
    }

    #[test]
    fn windows_merge_into_the_percentiles_of_all_their_samples() {
        // Two calm windows, and one that stood still for a while and so has few samples.
        let calm = of((1..=2000).map(|_| 1000)).tail();
        let stalled = of((1..=30).map(|_| 110_000)).tail();
        let merged = Tail::merged([&calm, &stalled, &calm]);
        assert_eq!(merged.count(), 4030);
        assert!(close(merged.quantile(0.99), 1000e-6), "{:?}", merged.quantile(0.99));
        assert!(close(merged.at(0.999), 110e-3), "{:?}", merged.at(0.999));
        assert!(close(merged.quantile(1.0), 110e-3));
        assert_eq!(Tail::merged([]), Tail::default());
    }
}
