//! What is counted of the streams of a connection, and of those of all strangers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use super::{
    HEADS_ALWAYS, HEADS_EVERYWHERE, HEADS_MOST, MAX_RESETS, STRANGERS, STRANGERS_ALWAYS, STRANGERS_EVERYWHERE,
};

/// What the streams of a connection tell its driver.
#[derive(Default)]
pub(super) struct Tally {
    /// Streams that are there.
    live: AtomicUsize,
    /// Those of them that have not shown who they are.
    strange: AtomicUsize,
    /// One stream has shown who it is.
    trusted: AtomicBool,
    /// Streams that ended without showing who they are since one has last done so.
    strikes: AtomicUsize,
    driver: Mutex<Option<Waker>>,
}

impl Tally {
    /// Streams that are there.
    pub(super) fn live(&self) -> usize {
        self.live.load(Ordering::Acquire)
    }

    /// Those of them that have not shown who they are.
    pub(super) fn strange(&self) -> usize {
        self.strange.load(Ordering::Acquire)
    }

    /// Whether one stream has shown who it is.
    pub(super) fn is_trusted(&self) -> bool {
        self.trusted.load(Ordering::Acquire)
    }

    /// Whether too many streams have cost us something and brought nothing.
    pub(super) fn is_abused(&self) -> bool {
        self.strikes.load(Ordering::Acquire) > MAX_RESETS
    }

    /// Whom to wake when something changes.
    pub(super) fn watch(&self, waker: &Waker) {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if driver.as_ref().is_none_or(|old| !old.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }

    pub(super) fn wake(&self) {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

/// Streams of strangers, but for the first few of each connection.
static EVERYWHERE: AtomicUsize = AtomicUsize::new(0);

/// A stream's part in the counts of its connection.
pub(super) struct Lease {
    tally: Arc<Tally>,
    trusted: bool,
    /// What it holds is counted elsewhere.
    excused: bool,
    /// It is one of [`EVERYWHERE`].
    drawn: bool,
    /// There was no room for it, which is nobody's fault.
    turned_away: bool,
}

impl Lease {
    pub(super) fn new(tally: &Arc<Tally>) -> Self {
        tally.live.fetch_add(1, Ordering::AcqRel);
        tally.strange.fetch_add(1, Ordering::AcqRel);
        Lease {
            tally: Arc::clone(tally),
            trusted: false,
            excused: false,
            drawn: false,
            turned_away: false,
        }
    }

    /// For a stream that a client has opened. `None`: there are too many of those who have not shown who they are.
    pub(super) fn of_stranger(tally: &Arc<Tally>) -> Option<Self> {
        let mut lease = Lease::new(tally);
        let others = tally.strange() - 1;
        if tally.is_trusted() || others < STRANGERS_ALWAYS {
            return Some(lease);
        }
        lease.drawn = true;
        let everywhere = EVERYWHERE.fetch_add(1, Ordering::AcqRel);
        if everywhere < STRANGERS_EVERYWHERE {
            return Some(lease);
        }
        lease.turn_away();
        None
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.drawn) {
            EVERYWHERE.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Whether one stream of its connection has shown who it is. Elsewhere each that has not is a strike when it ends.
    pub(super) fn is_known(&self) -> bool {
        self.tally.is_trusted()
    }

    /// The stream has shown who it is.
    pub(super) fn trust(&mut self) {
        if std::mem::replace(&mut self.trusted, true) {
            return;
        }
        self.give_back();
        if !self.excused {
            self.tally.strange.fetch_sub(1, Ordering::AcqRel);
        }
        self.tally.strikes.store(0, Ordering::Release);
        if !self.tally.trusted.swap(true, Ordering::AcqRel) {
            self.tally.wake();
        }
    }

    /// What the stream may hold is counted elsewhere: it takes no place of a stranger.
    pub(super) fn excuse(&mut self) {
        if self.trusted || std::mem::replace(&mut self.excused, true) {
            return;
        }
        self.give_back();
        if self.tally.strange.fetch_sub(1, Ordering::AcqRel) >= STRANGERS {
            self.tally.wake();
        }
    }

    /// There is no room for the stream.
    pub(super) fn turn_away(&mut self) {
        self.turned_away = true;
    }

    /// The stream cost us something and brought nothing.
    pub(super) fn strike(&self) {
        self.tally.strikes.fetch_add(1, Ordering::AcqRel);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back();
        // On a connection of somebody we know, a stream may be one part of what another one shows; see [`Lease::strike`].
        if !self.trusted && !self.excused && !self.turned_away && !self.tally.is_trusted() {
            self.strike();
        }
        let before = self.tally.live.fetch_sub(1, Ordering::AcqRel);
        let strange = !self.trusted && !self.excused && self.tally.strange.fetch_sub(1, Ordering::AcqRel) >= STRANGERS;
        if before == 1 || strange || self.tally.is_abused() {
            self.tally.wake();
        }
    }
}

/// Bytes of waiting heads, but for the first of each connection.
static HEADS: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the heads of a connection's requests that wait while nobody has shown who it is.
#[derive(Default)]
pub(super) struct Heads(usize);

impl Heads {
    /// Those of them that are of [`HEADS`].
    fn drawn(held: usize) -> usize {
        held.saturating_sub(HEADS_ALWAYS)
    }

    /// Whether there is room for one more, which it has then.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let held = self.0 + bytes;
        let drawn = Heads::drawn(held) - Heads::drawn(self.0);
        let before = HEADS.fetch_add(drawn, Ordering::AcqRel);
        let fits = drawn == 0 || held <= HEADS_MOST && before + drawn <= HEADS_EVERYWHERE;
        match fits {
            true => self.0 = held,
            false => drop(HEADS.fetch_sub(drawn, Ordering::AcqRel)),
        }
        fits
    }

    /// One of them waits no more.
    pub(super) fn give_back(&mut self, bytes: usize) {
        let held = self.0 - bytes;
        HEADS.fetch_sub(Heads::drawn(self.0) - Heads::drawn(held), Ordering::AcqRel);
        self.0 = held;
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        self.give_back(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_share_a_room_beside_their_own() {
        let mut all = Vec::new();
        let mut held = 0;
        loop {
            let mut heads = Heads::default();
            assert!(heads.take(HEADS_ALWAYS), "its own");
            while heads.take(1000) {}
            held += heads.0;
            assert!(heads.0 <= HEADS_MOST);
            let none = heads.0 == HEADS_ALWAYS;
            all.push(heads);
            if none {
                break;
            }
        }
        // Other tests may hold a little at the same time.
        let most = HEADS_EVERYWHERE + all.len() * HEADS_ALWAYS;
        assert!(held <= most && held > most / 2, "{held} of {most}");
        assert!(all.len() > HEADS_EVERYWHERE / HEADS_MOST);
        all.clear();
        let mut heads = Heads::default();
        assert!(heads.take(HEADS_MOST), "given back");
        heads.give_back(HEADS_MOST);
        assert!(!heads.take(HEADS_MOST + 1));
    }
}
