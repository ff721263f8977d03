//! Requests of a session while they are read.

use std::io;

use super::{Failure, Session};

/// A body on its way to those who read. If it breaks off, so does the session, unless nothing has been passed on.
pub(super) struct Passing<'a> {
    pub(super) session: &'a Session,
    pub(super) passed: bool,
    pub(super) done: bool,
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        if !self.done && self.passed {
            return self.session.fail(io::ErrorKind::UnexpectedEof);
        }
        let mut state = self.session.state();
        if self.done {
            state.queue.finish();
            state.pump();
            state.wake();
        } else {
            state.queue.leave();
        }
        drop(state);
        self.session.changed.notify_waiters();
    }
}

/// A request that waits for its turn.
pub(super) struct Waiting<'a> {
    session: &'a Session,
    seq: u64,
    bytes: usize,
}

impl<'a> Waiting<'a> {
    /// Fails the session if too many wait for one that is not there.
    pub(super) fn new(session: &'a Session, seq: u64) -> Result<Self, Failure> {
        let mut state = session.state();
        let wait = state.queue.len() + state.waiting.len();
        let next_is_here = state.queue.is_busy() || state.waiting.iter().any(|seq| state.queue.is_next(*seq));
        if wait >= session.max_posts && !next_is_here {
            drop(state);
            session.fail(io::ErrorKind::InvalidData);
            return Err(Failure::Broken);
        }
        state.waiting.insert(seq);
        Ok(Waiting { session, seq, bytes: 0 })
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.session.state().collected += bytes;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state();
        state.waiting.remove(&self.seq);
        state.collected -= self.bytes;
        drop(state);
        self.session.changed.notify_waiters();
    }
}
