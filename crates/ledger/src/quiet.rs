//! What the log is told of a store that fails again and again.

use std::time::Duration;

use tokio::time::Instant;

use crate::Error;

/// How long nothing more is said of a store that goes on failing.
const BETWEEN: Duration = Duration::from_secs(60);

/// Says the first failure, one a minute after that, and the end of them.
#[derive(Debug, Default)]
pub(crate) struct Quiet {
    /// When it was last said that it fails, and how often it has failed since it did not.
    failing: Option<(Instant, u32)>,
}

impl Quiet {
    pub(crate) fn failed(&mut self, store: &str, error: &Error) {
        if self.is_due(Instant::now()) {
            tracing::warn!("{store}: {error}; what users use is held until it can be written");
        }
    }

    /// Counts a failure. Whether it is to be said.
    fn is_due(&mut self, now: Instant) -> bool {
        let Some((said, times)) = &mut self.failing else {
            self.failing = Some((now, 1));
            return true;
        };
        *times = times.saturating_add(1);
        let due = now >= *said + BETWEEN;
        if due {
            *said = now;
        }
        due
    }

    pub(crate) fn went_well(&mut self, store: &str) {
        if let Some((_, times)) = self.failing.take() {
            tracing::info!("{store}: written again, after {times} failures");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_failures_is_sixty_lines() {
        let (begun, mut quiet) = (Instant::now(), Quiet::default());
        let failures = (0..3600).step_by(5).map(|second| begun + Duration::from_secs(second));
        assert_eq!(failures.filter(|now| quiet.is_due(*now)).count(), 60);
        quiet.went_well("store");
        assert!(quiet.is_due(begun), "the next one is new");
    }
}
