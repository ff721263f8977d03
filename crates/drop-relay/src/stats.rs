//! What the relay counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a relay has done so far. No addresses, no nameplates, no tokens.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that a limit kept out, with or without an answer.
    pub limited: u64,
    /// Connections that did not say a whole request in time, or something else.
    pub junk: u64,
    /// Claims of a nameplate under which nobody waited.
    pub unknown: u64,
    /// Connections for which nobody came in time.
    pub expired: u64,
    /// Pairs put together.
    pub pairs: u64,
    /// Pairs ended because nothing moved.
    pub idle: u64,
    /// Bytes carried, both directions together, counted as they leave.
    pub bytes: u64,
    /// Connections that wait for another at this moment.
    pub waiting_now: u64,
    /// Pairs that stand at this moment.
    pub pairs_now: u64,
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) junk: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) pairs: AtomicU64,
    pub(super) idle: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) waiting_now: AtomicU64,
    pub(super) pairs_now: AtomicU64,
}

impl Counters {
    /// What they stand at. Each is exact, together they may be a moment apart.
    pub fn read(&self) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            accepted: get(&self.accepted),
            limited: get(&self.limited),
            junk: get(&self.junk),
            unknown: get(&self.unknown),
            expired: get(&self.expired),
            pairs: get(&self.pairs),
            idle: get(&self.idle),
            bytes: get(&self.bytes),
            waiting_now: get(&self.waiting_now),
            pairs_now: get(&self.pairs_now),
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

/// One of what a counter counts "now"; it is one less when this is dropped.
pub(super) struct Now<'a>(&'a AtomicU64);

impl<'a> Now<'a> {
    pub(super) fn one(counter: &'a AtomicU64) -> Self {
        add(counter, 1);
        Now(counter)
    }
}

impl Drop for Now<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
