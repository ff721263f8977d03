//! Keeping to the time there is: a time limit is a deadline, whatever the plan expected of what lies beside the windows.

use std::time::Duration;

/// Most extra rounds a run may have, so that a restless machine cannot keep it going.
pub const MAX_EXTRA_ROUNDS: u32 = 2;

/// How long each visit is, and whether spoiled rounds are done again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    /// Warm-up before each window.
    pub warmup: Duration,
    /// The timed part.
    pub window: Duration,
    /// Extra rounds allowed for spoiled ones, at most [`MAX_EXTRA_ROUNDS`]; 0 where time matters more, then windows are
    /// only marked.
    pub extra_rounds: u32,
}

/// Share of the time left that windows are shortened to fit into, so that the last round is not left out for a moment.
const SHARE: f64 = 0.95;

/// When a run has to be over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deadline {
    /// The time of the probe in seconds at which the last round should have ended.
    pub at: f64,
    /// The shortest window that still says something.
    pub shortest: Duration,
}

/// How long the next visits are, and whether there is time for them.
#[derive(Debug)]
pub(super) struct Pace {
    pub(super) timing: Timing,
    deadline: Option<Deadline>,
    /// Seconds of a visit beside its warm-up and window, as they were in the last round; the plan's until then.
    beside: f64,
    /// The same, below zero where visits end before their window is over.
    seen: f64,
    /// The plan has visits that end with what they do, most before a window would be over.
    brief: bool,
}

impl Pace {
    /// `visit`: what the plan expects a visit to take, its warm-up and window included.
    pub(super) fn new(timing: Timing, visit: Duration, deadline: Option<Deadline>) -> Pace {
        let timed = timing.warmup + timing.window;
        let mut pace = Pace {
            timing,
            deadline,
            beside: 0.0,
            seen: 0.0,
            brief: visit < timed,
        };
        pace.learn(1, visit.as_secs_f64());
        pace
    }

    /// Seconds of a warm-up and a window.
    pub(super) fn timed(&self) -> f64 {
        (self.timing.warmup + self.timing.window).as_secs_f64()
    }

    /// Seconds that so many visits will take, for whoever waits.
    pub(super) fn expects(&self, visits: f64) -> f64 {
        (self.seen + self.timed()).max(0.0) * visits
    }

    /// Seconds to have for so many visits: those that end early are no credit, unless the plan has them so.
    fn takes(&self, visits: usize) -> f64 {
        let beside = if self.brief { self.seen } else { self.beside };
        (beside + self.timed()).max(0.0) * visits as f64
    }

    /// Learns from `visits` that took `seconds` together.
    pub(super) fn learn(&mut self, visits: usize, seconds: f64) {
        if visits > 0 {
            self.seen = seconds / visits as f64 - self.timed();
            self.beside = self.seen.max(0.0);
        }
    }

    /// True once the time is up.
    pub(super) fn is_up(&self, now: f64) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline.at)
    }

    /// True once more of the time has passed than checks before the first window may take: half of what there was at `began`.
    pub(super) fn is_half_up(&self, began: f64, now: f64) -> bool {
        self.deadline
            .is_some_and(|deadline| now - began >= (deadline.at - began) / 2.0)
    }

    /// Shortens windows, and warm-ups along with them, so that `left` visits fit into the time from `now` on, as far as windows
    /// may be shortened; true if `next` of them fit then.
    pub(super) fn fit(&mut self, now: f64, left: usize, next: usize) -> bool {
        let Some(deadline) = self.deadline else { return true };
        let time = (deadline.at - now).max(0.0);
        // Shorter windows are no help to visits that end before them.
        let is_held = self.seen < 0.0 && self.brief;
        if self.takes(left) > time && !is_held {
            let each = time * SHARE / left as f64 - self.beside;
            let window = self.timing.window.as_secs_f64();
            // In whole milliseconds, as plans have them.
            let wanted = (window * (each / self.timed()) * 1e3).floor() / 1e3;
            let shorter = wanted.max(deadline.shortest.as_secs_f64()).min(window);
            self.timing.warmup = self.timing.warmup.mul_f64(shorter / window);
            self.timing.window = Duration::from_secs_f64(shorter);
        }
        self.takes(next) <= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(at: Option<f64>) -> Pace {
        let timing = Timing {
            warmup: Duration::from_millis(500),
            window: Duration::from_secs(1),
            extra_rounds: 0,
        };
        let shortest = Duration::from_millis(100);
        let deadline = at.map(|at| Deadline { at, shortest });
        Pace::new(timing, Duration::from_secs(2), deadline)
    }

    #[test]
    fn windows_are_shortened_until_visits_fit() {
        let mut enough = pace(Some(20.0));
        assert!(enough.fit(0.0, 10, 5));
        assert_eq!(enough.timing.window, Duration::from_secs(1));
        let mut half = pace(Some(20.0));
        assert!(half.fit(10.0, 8, 4));
        // 9.5 s for 8 visits: 0.6875 s each beside what lies beside, two thirds of it for the window.
        assert_eq!(half.timing.window, Duration::from_millis(458));
        assert_eq!(half.timing.warmup, Duration::from_millis(229));
        let mut little = pace(Some(20.0));
        assert!(!little.fit(18.0, 8, 4));
        assert_eq!(little.timing.window, Duration::from_millis(100));
        assert!(little.is_up(20.0) && !little.is_up(19.9));
        assert!(pace(None).fit(1e9, 1000, 1000) && !pace(None).is_up(1e9));
    }

    #[test]
    fn what_lies_beside_windows_is_learned() {
        let mut pace = pace(Some(100.0));
        pace.learn(4, 4.0 * 4.5);
        assert!(pace.fit(0.0, 25, 25), "{pace:?}");
        assert!((pace.timed() - 0.8).abs() < 0.01, "{pace:?}");
        assert!(!pace.fit(0.0, 40, 40));
        // Visits that end before their window is over are no credit; who waits hears how long they take.
        pace.learn(4, 0.1);
        assert!(pace.fit(99.0, 1, 1));
        assert!(!pace.fit(99.0, 100, 100) && pace.expects(4.0) < 0.11, "{pace:?}");
    }

    #[test]
    fn visits_that_are_planned_without_a_window_take_what_they_take() {
        let timing = pace(None).timing;
        let deadline = Deadline {
            at: 10.0,
            shortest: Duration::from_millis(100),
        };
        let mut brief = Pace::new(timing, Duration::from_millis(250), Some(deadline));
        assert!((brief.expects(4.0) - 1.0).abs() < 1e-9);
        assert!(brief.fit(0.0, 40, 40), "all of the time, and no more");
        assert!(!brief.fit(0.0, 41, 41) && brief.timing == timing);
        brief.learn(4, 0.4);
        assert!(brief.fit(9.0, 9, 9) && !brief.fit(9.0, 11, 11), "{brief:?}");
        // Slower than planned, with windows among them that can be shorter.
        brief.learn(4, 8.0);
        assert!(brief.fit(0.0, 8, 4) && brief.timing.window < timing.window, "{brief:?}");
    }

    #[test]
    fn checks_have_half_of_the_time() {
        let pace = pace(Some(20.0));
        assert!(!pace.is_half_up(10.0, 14.9) && pace.is_half_up(10.0, 15.0));
    }
}
