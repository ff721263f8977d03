//! What the sessions of a carrier share with its driver: the frames that wait to be written.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use sealway_v2ray::Destination;
use sealway_v2ray::mux::{self, MAX_SESSIONS_IN_LIFE};
use tokio::time::Instant;

use super::{Entry, FULL, HOLD, Meter, QUANTUM, QUANTUM_FEW, QUANTUM_LAST};
use crate::pool;

/// The frames that wait, and who waits for their turn.
#[derive(Default)]
pub(crate) struct Link {
    state: Mutex<State>,
    /// What waits for its sessions, and its driver.
    pub(crate) meter: Meter,
    /// Bytes of datagrams that have come and wait for sessions which began at this end.
    pub(crate) datagrams: Arc<AtomicUsize>,
}

#[derive(Default)]
pub(super) struct State {
    /// Frames that wait to be written.
    pub(super) out: Vec<u8>,
    /// Number of this batch.
    batch: u64,
    /// Sessions that have written to it.
    writers: usize,
    /// Sessions that have written to the one before.
    last: usize,
    /// Sessions that wait for the next one.
    turns: Vec<Waker>,
    /// Sessions that begin at this end.
    pub(super) begun: Vec<(u16, Entry)>,
    /// Streams that have begun here and that the peer has not been told of, and until when that waits for their first data.
    unsaid: VecDeque<(u16, Destination, Instant)>,
    /// Sessions that nobody holds any more, by their numbers.
    pub(super) gone: Vec<(u16, u64)>,
    /// Sessions of this end, and how many there have been.
    live: usize,
    opened: u16,
    closed: bool,
}

/// What a session has written to the batch that waits.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Which of the carriers it is on that it may have one after another.
    carrier: u64,
    batch: Option<u64>,
    used: usize,
    waiting: Option<Waker>,
}

impl Turn {
    /// It is on this carrier now, by a number that no other has that it was on. What it wrote to another counts no more.
    pub(crate) fn on(&mut self, carrier: u64) -> &mut Turn {
        if self.carrier != carrier {
            *self = Turn {
                carrier,
                ..Turn::default()
            };
        }
        self
    }
}

/// A batch that was taken to be written.
pub(super) struct Taken {
    pub(super) turns: Vec<Waker>,
    /// When the next session has to be told of.
    pub(super) hold: Option<Instant>,
}

impl Link {
    /// A link of a carrier that has just begun.
    pub(crate) fn new() -> Arc<Link> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under this lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has frames appended by `push`, which is told how much data there is room for and returns how much it took.
    pub(super) fn poll_push<T>(
        &self,
        cx: &mut Context<'_>,
        turn: &mut Turn,
        push: impl FnOnce(&mut Vec<u8>, &mut VecDeque<(u16, Destination, Instant)>, usize) -> (T, usize),
    ) -> Poll<io::Result<T>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let first = turn.batch != Some(state.batch);
        let others = state.writers - usize::from(!first);
        let most = match state.out.len() {
            // As many as wrote to the last batch will share this one.
            0..FULL => (FULL / state.last.max(others + 1)).clamp(QUANTUM, QUANTUM_FEW),
            _ => QUANTUM_LAST,
        };
        if first {
            (turn.batch, turn.used, turn.waiting) = (Some(state.batch), 0, None);
            state.writers += 1;
        }
        if turn.used >= most {
            if turn.waiting.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
                turn.waiting = Some(cx.waker().clone());
                state.turns.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        if state.out.capacity() == 0 {
            state.out = pool::take_out(QUANTUM);
        }
        let (done, took) = push(&mut state.out, &mut state.unsaid, most - turn.used);
        turn.used += took;
        drop(guard);
        self.meter.wake();
        Poll::Ready(Ok(done))
    }

    /// Has those who wait for their turn look whether they still do: some may be on another carrier now.
    pub(crate) fn nudge(&self) {
        let turns = self.lock().turns.clone();
        turns.into_iter().for_each(Waker::wake);
    }

    /// Appends the end of a session, which always has room.
    pub(crate) fn push_end(&self, id: u16, error: bool) {
        let mut state = self.lock();
        if !state.closed {
            mux::push_end(&mut state.out, id, error);
            drop(state);
            self.meter.wake();
        }
    }

    /// Nobody holds this session any more; `ours` if it began at this end. A stream that the peer was not told of is
    /// forgotten: then the answer is true.
    pub(crate) fn leave(&self, id: u16, serial: u64, ours: bool) -> bool {
        let mut state = self.lock();
        state.gone.push((id, serial));
        if ours {
            state.live = state.live.saturating_sub(1);
        }
        let unsaid = state.unsaid.len();
        state.unsaid.retain(|(other, ..)| *other != id || !ours);
        let forgotten = state.unsaid.len() < unsaid;
        drop(state);
        self.meter.wake();
        forgotten
    }

    /// Begins a session at this end, if there are fewer than `limit` and the carrier is good for one more. `to` is the target
    /// of a stream, of which the peer is told in a moment.
    pub(crate) fn begin(&self, limit: usize, to: Option<&Destination>, entry: &dyn Fn(&Link) -> Entry) -> Option<u16> {
        let mut state = self.lock();
        if state.closed || state.live >= limit || state.opened >= MAX_SESSIONS_IN_LIFE {
            return None;
        }
        state.live += 1;
        state.opened += 1;
        let id = state.opened;
        if let Some(to) = to {
            state.unsaid.push_back((id, to.clone(), Instant::now() + HOLD));
        }
        state.begun.push((id, entry(self)));
        drop(state);
        self.meter.wake();
        Some(id)
    }

    /// Whether no session can begin here any more.
    pub(crate) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.closed || state.opened >= MAX_SESSIONS_IN_LIFE
    }

    /// Closes a carrier that no session is on. False: one has just begun.
    pub(super) fn close_if_unused(&self) -> bool {
        let mut state = self.lock();
        let unused = state.begun.is_empty() && state.live == 0;
        state.closed |= unused;
        unused
    }

    /// The carrier is lost: whoever waits for a turn hears of it, and sessions that the driver has not heard of are returned.
    pub(super) fn close(&self) -> Vec<(u16, Entry)> {
        let mut state = self.lock();
        state.closed = true;
        state.out = Vec::new();
        for turn in state.turns.drain(..) {
            turn.wake();
        }
        std::mem::take(&mut state.begun)
    }

    /// There will be no carrier.
    pub(crate) fn fail(&self) {
        self.close();
    }

    /// Bytes that wait to be written.
    pub(super) fn unwritten(&self) -> usize {
        self.lock().out.len()
    }

    /// Appends something of the driver's own.
    pub(super) fn push(&self, push: impl FnOnce(&mut Vec<u8>)) {
        push(&mut self.lock().out);
    }

    /// The sessions that have begun here since the last time, and those that nobody holds any more.
    pub(super) fn heard(&self) -> (Vec<(u16, Entry)>, Vec<(u16, u64)>) {
        let mut state = self.lock();
        (std::mem::take(&mut state.begun), std::mem::take(&mut state.gone))
    }

    /// Exchanges the batch for an empty buffer, and lets those who wait have their turn.
    pub(super) fn take(&self, buffer: &mut Vec<u8>) -> Taken {
        let mut state = self.lock();
        let state = &mut *state;
        if !state.unsaid.is_empty() {
            let now = Instant::now();
            while let Some((id, to, at)) = state.unsaid.front()
                && *at <= now
            {
                // Without data nothing can be too long.
                let _ = mux::push_new(&mut state.out, *id, to, None, None);
                state.unsaid.pop_front();
            }
        }
        if !state.out.is_empty() {
            std::mem::swap(&mut state.out, buffer);
            state.batch += 1;
            state.last = std::mem::take(&mut state.writers);
        }
        Taken {
            turns: std::mem::take(&mut state.turns),
            hold: state.unsaid.front().map(|(.., at)| *at),
        }
    }
}
