//! The arithmetic of an open loop: a schedule made before the start, and what became of it.
//!
//! Time comes in as nanoseconds, so that a test can say what time it is.

use std::collections::VecDeque;

/// An operation that is sent more than this after its plan is late.
pub(crate) const LATE_NS: u64 = 1_000_000;

/// Most operations waiting or under way; what is due beyond that is dropped.
pub(crate) const MOST_IN_FLIGHT: usize = 10_000;

/// What became of a schedule.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// In the schedule.
    pub(crate) planned: u64,
    /// Sent, late or not.
    pub(crate) sent: u64,
    /// Answered.
    pub(crate) done: u64,
    /// Failed, or not answered in time.
    pub(crate) failed: u64,
    /// Sent more than [`LATE_NS`] after their plan.
    pub(crate) late: u64,
    /// Never sent, because too many were under way.
    pub(crate) dropped: u64,
}

impl Counts {
    /// True when the subject did not keep up: percentiles are lower bounds then.
    pub(crate) const fn overloaded(&self) -> bool {
        self.dropped > 0 || self.done * 100 < self.planned * 99
    }
}

/// A schedule at a fixed rate.
#[derive(Debug)]
pub(crate) struct Pacer {
    start: u64,
    rate: f64,
    /// Those that came due so far.
    due: u64,
    waiting: VecDeque<u64>,
    pub(crate) counts: Counts,
}

impl Pacer {
    /// `rate` operations a second from `start` for `length`, the first at once.
    pub(crate) fn new(rate: f64, start: u64, length: u64) -> Pacer {
        let planned = (rate * length as f64 / 1e9).ceil().max(1.0) as u64;
        Pacer {
            start,
            rate,
            due: 0,
            waiting: VecDeque::with_capacity(MOST_IN_FLIGHT),
            counts: Counts {
                planned,
                ..Counts::default()
            },
        }
    }

    /// When operation `index` is meant to be sent. From the start every time, so that no error adds up.
    fn intended(&self, index: u64) -> u64 {
        self.start + (index as f64 * 1e9 / self.rate) as u64
    }

    /// Moves the start of a schedule of which nothing has been sent.
    pub(crate) fn start_at(&mut self, start: u64) {
        self.start = start;
    }

    /// When the next one comes due; `None` after the last.
    pub(crate) fn next_due(&self) -> Option<u64> {
        (self.due < self.counts.planned).then(|| self.intended(self.due))
    }

    /// True while one waits to be sent.
    pub(crate) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Puts all that are due at `now` in the queue, and drops those that come when too many are waiting or, `busy`, under
    /// way.
    pub(crate) fn advance(&mut self, now: u64, busy: usize) {
        while let Some(intended) = self.next_due().filter(|due| *due <= now) {
            self.due += 1;
            if self.waiting.len() + busy >= MOST_IN_FLIGHT {
                self.counts.dropped += 1;
            } else {
                self.waiting.push_back(intended);
            }
        }
    }

    /// Takes the oldest that waits, to be sent at `now`: when it was meant to be.
    pub(crate) fn take(&mut self, now: u64) -> Option<u64> {
        let intended = self.waiting.pop_front()?;
        self.counts.sent += 1;
        self.counts.late += u64::from(now.saturating_sub(intended) > LATE_NS);
        Some(intended)
    }

    /// Gives up on everything that has not been sent: how many that are.
    pub(crate) fn abandon(&mut self) -> u64 {
        let left = self.waiting.len() as u64 + (self.counts.planned - self.due);
        self.waiting.clear();
        self.due = self.counts.planned;
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_schedule_does_not_drift() {
        let pacer = Pacer::new(3.0, 7, 100 * S);
        assert_eq!(pacer.counts.planned, 300);
        assert_eq!(pacer.intended(0), 7);
        assert_eq!(pacer.intended(1), 7 + 333_333_333);
        assert_eq!(pacer.intended(299), 7 + 99_666_666_666);
    }

    #[test]
    fn what_waits_is_taken_from_when_it_was_meant() {
        let mut pacer = Pacer::new(1000.0, 0, S);
        pacer.advance(0, 0);
        assert_eq!(pacer.take(0), Some(0));
        assert_eq!(pacer.take(0), None);
        assert_eq!(pacer.next_due(), Some(1_000_000));
        // Nothing was free for 3.5 ms: three came due, and each remembers its own time.
        pacer.advance(3_500_000, 0);
        assert!(pacer.waits());
        assert_eq!(pacer.take(3_500_000), Some(1_000_000));
        assert_eq!(pacer.take(3_500_000), Some(2_000_000));
        assert_eq!(pacer.take(3_500_000), Some(3_000_000));
        let counts = pacer.counts;
        // 2.5 and 1.5 ms are late, 0.5 ms is not.
        assert_eq!((counts.sent, counts.late, counts.dropped), (4, 2, 0));
    }

    #[test]
    fn exactly_a_millisecond_is_not_late() {
        let mut pacer = Pacer::new(1000.0, 0, S);
        pacer.advance(0, 0);
        pacer.take(LATE_NS);
        assert_eq!(pacer.counts.late, 0);
        pacer.advance(LATE_NS, 0);
        pacer.take(2 * LATE_NS + 1);
        assert_eq!(pacer.counts.late, 1);
    }

    #[test]
    fn too_many_in_flight_are_dropped() {
        let mut pacer = Pacer::new(1e6, 0, S);
        let now = 20_000 * 1000;
        pacer.advance(now, 64);
        assert_eq!(pacer.waiting.len(), MOST_IN_FLIGHT - 64);
        // Operations 0 to 20,000 are due at this time.
        assert_eq!(pacer.counts.dropped, 20_001 - (MOST_IN_FLIGHT as u64 - 64));
        assert!(pacer.counts.overloaded());
        assert_eq!(pacer.abandon(), MOST_IN_FLIGHT as u64 - 64 + 1_000_000 - 20_001);
        assert_eq!((pacer.next_due(), pacer.take(now)), (None, None));
    }

    #[test]
    fn overloaded_below_99_per_cent() {
        let counts = |done| Counts {
            planned: 1000,
            done,
            ..Counts::default()
        };
        assert!(!counts(990).overloaded());
        assert!(counts(989).overloaded());
    }

    #[test]
    fn a_schedule_ends() {
        let mut pacer = Pacer::new(10.0, 0, S);
        pacer.advance(10 * S, 0);
        assert_eq!(pacer.next_due(), None);
        let mut taken = 0;
        while pacer.take(10 * S).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 10);
    }
}
