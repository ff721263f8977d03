//! What is left to send, dealt out to the threads of the data connections.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::file::Sending;
use crate::content::{PACKED_HEADER, SMALL};
use sealway_drop::lock;
use sealway_drop::wire::talk::BEAT;

/// Something for a thread to do.
pub(super) enum Work {
    /// Small files, to go in one pack.
    Pack(Vec<u32>),
    /// A larger file from its beginning.
    File(u32),
    /// A larger file of which the receiver has groups with these hashes.
    Partial(u32, Vec<(u64, [u8; 32])>),
    /// A part of a file that is open.
    Segment(Arc<Sending>, u64, u64),
    /// A part of a file that was sent, and was lost with its connection.
    Again(u32, u64, u64),
    /// Small files of which the same is true.
    PackAgain(Vec<u32>),
    /// Nothing to send for a while: a sign of life, or relays take the connection for dead.
    Beat,
    /// Groups of a file that is open, to be compared and sent if they differ.
    Compare(Arc<Sending>, Vec<(u64, [u8; 32])>),
}

/// Bytes of a pack, about; the hashes of the files come on top.
pub(super) const PACK: u64 = 256 << 10;

/// The queue. Empty and finished are different things: a thread that works may put more in.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Small files with their sizes.
    small: VecDeque<(u32, u64)>,
    work: VecDeque<Work>,
    /// Handed out and not reported back.
    busy: usize,
    /// Nothing will be added from outside.
    closed: bool,
    /// Direct connections; while there are any, the others rest.
    direct: usize,
    /// Direct connections of which it is not known whether all has arrived.
    unsettled: usize,
    stopped: bool,
}

impl State {
    fn is_done(&self) -> bool {
        self.closed && self.busy == 0 && self.small.is_empty() && self.work.is_empty()
    }
}

impl Queue {
    /// Adds a whole file.
    pub(super) fn add_file(&self, file: u32, size: u64) {
        let mut state = lock(&self.state);
        match size <= SMALL {
            true => state.small.push_back((file, size)),
            false => state.work.push_back(Work::File(file)),
        }
        self.tell(&state);
    }

    /// Adds work behind everything else.
    pub(super) fn add(&self, work: Work) {
        let mut state = lock(&self.state);
        state.work.push_back(work);
        self.tell(&state);
    }

    /// Something was added.
    fn tell(&self, state: &State) {
        match state.direct {
            0 => self.changed.notify_one(),
            // One that rests might hear it alone.
            _ => self.changed.notify_all(),
        }
    }

    /// Adds the parts of a file that is open before everything else, so that few files are open at a time.
    pub(super) fn add_first(&self, parts: Vec<Work>) {
        let mut state = lock(&self.state);
        for part in parts.into_iter().rev() {
            state.work.push_front(part);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing comes from outside any more.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }

    /// Hands out nothing more.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Whether nothing is there to be taken at this moment.
    pub(super) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.small.is_empty() && state.work.is_empty()
    }

    /// Whether all that was ever added is done.
    pub(super) fn is_done(&self) -> bool {
        let state = lock(&self.state);
        state.is_done() && state.unsettled == 0
    }

    /// A direct connection takes over.
    pub(super) fn direct_begins(&self) {
        let mut state = lock(&self.state);
        state.direct += 1;
        state.unsettled += 1;
    }

    /// It takes no more work.
    pub(super) fn direct_ends(&self) {
        lock(&self.state).direct -= 1;
        self.changed.notify_all();
    }

    /// What has arrived by it is known, and `again` is to be done again. `busy`: it was at work when it ended.
    pub(super) fn settle(&self, busy: bool, again: Vec<Work>) {
        let mut state = lock(&self.state);
        state.busy -= usize::from(busy);
        state.unsettled -= 1;
        for work in again.into_iter().rev() {
            state.work.push_front(work);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Something to do; `None` when everything is done, for `direct` connections also while it is open whether all has arrived. `finished` says
    /// that what was taken before is done.
    pub(super) fn take(&self, finished: bool, direct: bool) -> Option<Work> {
        let mut state = lock(&self.state);
        if finished {
            state.busy -= 1;
            if state.is_done() {
                // The others wait for this thread's work to be the last.
                self.changed.notify_all();
            }
        }
        while !state.stopped {
            let rests = !direct && state.direct > 0;
            if !rests && let Some(work) = state.work.pop_front().or_else(|| pack(&mut state.small)) {
                state.busy += 1;
                return Some(work);
            }
            if state.is_done() && (direct || state.unsettled == 0) {
                break;
            }
            let (now, waited) = self
                .changed
                .wait_timeout(state, BEAT)
                .unwrap_or_else(PoisonError::into_inner);
            state = now;
            let idle = rests || state.work.is_empty() && state.small.is_empty();
            if waited.timed_out() && idle && !state.stopped {
                state.busy += 1;
                return Some(Work::Beat);
            }
        }
        None
    }
}

fn pack(small: &mut VecDeque<(u32, u64)>) -> Option<Work> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    while let Some(&(file, size)) = small.front() {
        bytes += size + PACKED_HEADER as u64;
        if !files.is_empty() && bytes > PACK {
            break;
        }
        files.push(file);
        small.pop_front();
    }
    (!files.is_empty()).then_some(Work::Pack(files))
}
