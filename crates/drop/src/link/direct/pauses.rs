//! How soon a path is looked for again that has died: soon after one that stood for a while, ever later after several that did not. So an end
//! that joins and hangs up, or a box on the way that lets nothing but the joining through, is not dialled every second.

use std::time::{Duration, Instant};

/// Pause after a path that has lived, and the longest one.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(64);

/// So many paths in a row may die young, as where a network breaks now and then, before pauses grow.
const YOUNG: u32 = 4;

/// A path that stood for so long has lived.
const LIVED: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Pauses {
    /// Paths that have died young, one after the other.
    young: u32,
    /// Since when one stands.
    since: Option<Instant>,
}

impl Pauses {
    /// A path stands; another one may stand already.
    pub(super) fn begun(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// None stands any more. Gives the pause before the next attempt.
    pub(super) fn over(&mut self, now: Instant) -> Duration {
        let stood = self.since.take().map(|since| now.saturating_duration_since(since));
        if stood.is_some_and(|stood| stood >= LIVED) {
            self.young = 0;
        }
        self.young = self.young.saturating_add(1);
        let doubled = self.young.saturating_sub(YOUNG);
        SHORTEST.saturating_mul(2u32.saturating_pow(doubled)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_die_young_are_looked_for_ever_later_up_to_a_bound() {
        let mut now = Instant::now();
        let mut pauses = Pauses::default();
        let mut stands = |time: Duration| {
            pauses.begun(now);
            // A second connection makes no new path of it.
            pauses.begun(now + time);
            now += time;
            pauses.over(now).as_secs()
        };
        let short = Duration::from_millis(10);
        let seen: Vec<u64> = (0..40).map(|_| stands(short)).collect();
        assert_eq!(seen[..10], [1, 1, 1, 1, 2, 4, 8, 16, 32, 64]);
        assert!(seen[10..].iter().all(|pause| *pause == 64));
        assert_eq!(stands(LIVED - short), 64);
        // One that has lived begins anew.
        assert_eq!(stands(LIVED), 1);
        let seen: Vec<u64> = (0..5).map(|_| stands(short)).collect();
        assert_eq!(seen, [1, 1, 1, 2, 4]);
    }

    #[test]
    fn what_is_lost_before_it_stands_died_young() {
        let (mut pauses, now) = (Pauses::default(), Instant::now());
        let seen: Vec<u64> = (0..5).map(|_| pauses.over(now).as_secs()).collect();
        assert_eq!(seen, [1, 1, 1, 1, 2]);
    }
}
