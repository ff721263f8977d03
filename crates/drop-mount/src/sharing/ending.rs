//! How a sharing ends: what is noticed first decides.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use sealway_drop::{Error, lock};

/// Told by whoever notices that it is over; waited for by the thread that takes everything down.
#[derive(Default)]
pub(super) struct Ending {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
    /// Why it is over, until somebody takes it.
    why: Option<Result<(), Error>>,
    heard: bool,
}

impl Ending {
    /// It is over, for this reason if for no earlier one. Waits for nobody.
    pub(super) fn set(&self, why: Result<(), Error>) {
        self.note(why, false);
    }

    /// The same, because the other end says no more. Its word counts more than that a connection was found to be lost before.
    pub(super) fn set_heard(&self, why: Result<(), Error>) {
        self.note(why, true);
    }

    fn note(&self, why: Result<(), Error>, heard: bool) {
        let mut state = lock(&self.state);
        let first = !std::mem::replace(&mut state.over, true);
        let better = heard && matches!(state.why, Some(Err(Error::Network { .. })));
        if first || better {
            state.why = Some(why);
        }
        state.heard |= heard;
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).over
    }

    /// Whether the other end has said its last.
    pub(super) fn has_heard(&self) -> bool {
        lock(&self.state).heard
    }

    /// Why it is over, once; `None` if it is not.
    pub(super) fn why(&self) -> Option<Result<(), Error>> {
        lock(&self.state).why.take()
    }

    /// Waits until it is over, for `time` at most, and says whether it is.
    pub(super) fn wait(&self, time: Duration) -> bool {
        self.wait_for(time, |state| state.over)
    }

    /// Waits until the other end has said its last, for `time` at most, and says whether it has.
    pub(super) fn wait_heard(&self, time: Duration) -> bool {
        self.wait_for(time, |state| state.heard)
    }

    fn wait_for(&self, time: Duration, done: impl Fn(&State) -> bool) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.state), time, |state| !done(state));
        done(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_decides() {
        let ending = Ending::default();
        assert!(!ending.is_over() && !ending.wait(Duration::ZERO) && ending.why().is_none());
        ending.set(Ok(()));
        ending.set_heard(Err(Error::Cancelled));
        assert!(ending.is_over() && ending.has_heard() && ending.wait_heard(Duration::ZERO));
        assert!(matches!(ending.why(), Some(Ok(()))));
        assert!(ending.why().is_none() && ending.is_over());
    }

    #[test]
    fn what_the_other_end_says_counts_more_than_that_it_is_lost() {
        let lost = || Err(Error::network("testing")(std::io::ErrorKind::TimedOut.into()));
        let ending = Ending::default();
        ending.set(lost());
        ending.set_heard(Ok(()));
        assert!(matches!(ending.why(), Some(Ok(()))));
        let ending = Ending::default();
        ending.set(Err(Error::Cancelled));
        ending.set_heard(lost());
        assert!(matches!(ending.why(), Some(Err(Error::Cancelled))));
    }

    #[test]
    fn who_waits_is_woken() {
        let ending = Ending::default();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| ending.wait(Duration::from_secs(60)));
            ending.set(Err(Error::Cancelled));
            assert!(waits.join().expect("no panic"));
        });
        assert!(!ending.has_heard() && !ending.wait_heard(Duration::ZERO));
    }
}
