//! How fast one direction of a stranger's connection may go.

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::ThrottledAfter;

/// Most bytes that are moved at once.
pub(super) const MOST: usize = 16 << 10;
/// Shares of a second that are waited for: a bucket is not asked for each byte.
const SHARES: u64 = 50;

/// A bucket of bytes that fills with time. Until a number of bytes has passed, it asks for nothing.
#[derive(Debug)]
pub(super) struct Bucket {
    limit: ThrottledAfter,
    /// Bytes that still pass without being counted.
    free: u64,
    /// Bytes in it, in parts of a thousand million.
    held: u128,
    filled: Instant,
}

const PARTS: u128 = 1_000_000_000;

impl Bucket {
    /// A limit of nothing is one byte: whoever asks for less would wait for ever, and take a read of nothing for an end.
    pub(super) fn new(limit: ThrottledAfter, now: Instant) -> Self {
        let limit = ThrottledAfter {
            rate: limit.rate.max(1),
            burst: limit.burst.max(1),
            ..limit
        };
        Bucket {
            limit,
            free: limit.after,
            held: u128::from(limit.burst) * PARTS,
            filled: now,
        }
    }

    /// How many bytes may be moved now, or when that is to be asked again.
    pub(super) fn grant(&mut self, now: Instant) -> Result<usize, Instant> {
        let most = |bytes: u64| usize::try_from(bytes).unwrap_or(MOST).min(MOST);
        if self.free > 0 {
            return Ok(most(self.free));
        }
        let passed = now.saturating_duration_since(self.filled).as_nanos();
        let full = u128::from(self.limit.burst) * PARTS;
        self.held = self
            .held
            .saturating_add(passed.saturating_mul(self.limit.rate.into()))
            .min(full);
        self.filled = now;
        let wanted = (self.limit.rate / SHARES).clamp(1, MOST as u64).min(self.limit.burst);
        let held = self.held / PARTS;
        if held >= u128::from(wanted) {
            return Ok(most(u64::try_from(held).unwrap_or(u64::MAX)));
        }
        let lacks = u128::from(wanted) * PARTS - self.held;
        let wait = lacks.div_ceil(self.limit.rate.into());
        Err(now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Takes bytes that were moved, no more than were granted.
    pub(super) fn take(&mut self, moved: usize) {
        let moved = moved as u64;
        let free = self.free.min(moved);
        self.free -= free;
        self.held = self.held.saturating_sub(u128::from(moved - free) * PARTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_pass_at_once_and_then_so_many_a_second() {
        let limit = ThrottledAfter {
            after: 100_000,
            rate: 10_000,
            burst: 20_000,
        };
        let begun = Instant::now();
        let mut bucket = Bucket::new(limit, begun);
        let (mut now, mut moved, mut marks) = (begun, 0usize, Vec::new());
        while now < begun + Duration::from_secs(10) {
            match bucket.grant(now) {
                Ok(most) => {
                    assert!((1..=MOST).contains(&most));
                    bucket.take(most);
                    moved += most;
                }
                Err(then) => {
                    assert!(
                        then > now && then <= now + Duration::from_millis(21),
                        "{:?}",
                        then - now
                    );
                    marks.push(moved);
                    now = then;
                }
            }
        }
        assert_eq!(marks[0], 120_000);
        let wanted = 120_000 + 10 * 10_000;
        assert!(moved.abs_diff(wanted) <= 400, "{moved}");
        // After a pause there is a burst again, and no more than one.
        let later = now + Duration::from_secs(3600);
        let mut burst = 0;
        while let Ok(most) = bucket.grant(later) {
            bucket.take(most);
            burst += most;
        }
        assert!((19_800..=20_000).contains(&burst), "{burst}");
    }

    #[test]
    fn extreme_limits_neither_overflow_nor_stand_still() {
        for (after, rate, burst) in [
            (0, 0, 0),
            (0, 1, 0),
            (0, 1, 1),
            (0, u64::MAX, u64::MAX),
            (u64::MAX, 1, 1),
            (0, 1, u64::MAX),
        ] {
            let now = Instant::now();
            let mut bucket = Bucket::new(ThrottledAfter { after, rate, burst }, now);
            for second in 0..5 {
                let now = now + Duration::from_secs(second);
                match bucket.grant(now) {
                    Ok(most) => {
                        assert!(most > 0, "a read of nothing");
                        bucket.take(most);
                    }
                    Err(then) => assert!(then > now && then <= now + Duration::from_secs(1)),
                }
            }
        }
    }
}
