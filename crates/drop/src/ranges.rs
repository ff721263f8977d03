//! Sets of byte ranges: what of a file is there.

use std::ops::Range;

/// A set of bytes, kept as ranges that neither touch nor overlap, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Ranges {
    ranges: Vec<Range<u64>>,
}

impl Ranges {
    /// The empty set.
    pub fn new() -> Ranges {
        Ranges::default()
    }

    /// Adds a range, and says how many of its bytes were not in the set before.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.start >= range.end {
            return 0;
        }
        // All that touch it become one with it.
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let last = self.ranges.partition_point(|r| r.start <= range.end);
        let touched = self.ranges.get(first..last).unwrap_or_default();
        let had: u64 = touched
            .iter()
            .map(|r| r.end.min(range.end).saturating_sub(r.start.max(range.start)))
            .sum();
        let start = touched.first().map_or(range.start, |r| r.start.min(range.start));
        let end = touched.last().map_or(range.end, |r| r.end.max(range.end));
        self.ranges.splice(first..last, std::iter::once(start..end));
        range.end - range.start - had
    }

    /// Takes a range out.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let first = self.ranges.partition_point(|r| r.end <= range.start);
        let last = self.ranges.partition_point(|r| r.start < range.end);
        let Some(touched) = self.ranges.get(first..last) else {
            return;
        };
        let head = touched.first().map(|r| r.start..range.start);
        let tail = touched.last().map(|r| range.end..r.end);
        let kept: Vec<_> = head.into_iter().chain(tail).filter(|r| r.start < r.end).collect();
        self.ranges.splice(first..last, kept);
    }

    /// Bytes in the set.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether all of `range` is in the set; so is an empty one.
    pub fn covers(&self, range: Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end < range.end);
        range.start >= range.end
            || self
                .ranges
                .get(at)
                .is_some_and(|r| r.start <= range.start && r.end >= range.end)
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// What of `0..size` is not in the set, in order.
    pub fn missing(&self, size: u64) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = 0;
        for range in &self.ranges {
            if range.start >= size {
                break;
            }
            if at < range.start {
                missing.push(at..range.start);
            }
            at = range.end;
        }
        if at < size {
            missing.push(at..size);
        }
        missing
    }

    /// The ranges as a list.
    pub fn to_vec(&self) -> Vec<Range<u64>> {
        self.ranges.clone()
    }
}
