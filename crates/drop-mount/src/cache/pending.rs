//! What is under way, to be waited for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sealway_drop::lock;

/// Counts what is under way.
#[derive(Default)]
pub(super) struct Pending {
    count: Mutex<usize>,
    none: Condvar,
}

impl Pending {
    pub(super) fn begin(&self) {
        *lock(&self.count) += 1;
    }

    pub(super) fn end(&self) {
        let mut count = lock(&self.count);
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.none.notify_all();
        }
    }

    /// Waits until nothing is; `false` if something still is after `time`.
    pub(super) fn wait(&self, time: Duration) -> bool {
        let count = lock(&self.count);
        let (count, _) = self
            .none
            .wait_timeout_while(count, time, |count| *count > 0)
            .unwrap_or_else(PoisonError::into_inner);
        *count == 0
    }
}
