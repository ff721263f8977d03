//! How far a server has come.

use std::sync::atomic::{AtomicU8, Ordering};

/// How far a server has come.
#[derive(Debug, Default)]
pub(crate) struct State(AtomicU8);

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

impl State {
    /// It serves.
    pub(crate) fn serve(&self) {
        // What drains already goes on draining.
        let _ = self
            .0
            .compare_exchange(STARTING, READY, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It ends: whoever sends connections here is to send them elsewhere.
    pub(crate) fn drain(&self) {
        self.0.store(DRAINING, Ordering::Relaxed);
    }

    /// True if it serves, and does not end.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed) == READY
    }

    pub(crate) fn word(&self) -> &'static str {
        match self.0.load(Ordering::Relaxed) {
            STARTING => "starting",
            READY => "ready",
            _ => "draining",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_drains_never_becomes_ready_again() {
        let state = State::default();
        assert_eq!((state.is_ready(), state.word()), (false, "starting"));
        state.serve();
        assert_eq!((state.is_ready(), state.word()), (true, "ready"));
        state.drain();
        state.serve();
        assert_eq!((state.is_ready(), state.word()), (false, "draining"));
    }
}
