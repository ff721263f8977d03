//! What a session holds.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::task::Waker;

use bytes::Bytes;
use sealway_v2ray::xhttp::queue::Queue;

use super::{MAX_READY, PIECE, STRANGERS_BYTES};

pub(super) struct State {
    /// Bytes in their order.
    pub(super) ready: VecDeque<Bytes>,
    /// How many those are.
    pub(super) bytes: usize,
    pub(super) queue: Queue,
    /// Requests that wait for their turn and are not read whole.
    pub(super) waiting: BTreeSet<u64>,
    /// Bytes of theirs that have been read.
    pub(super) collected: usize,
    pub(super) trusted: bool,
    /// No request finds it any more, and it is not counted.
    pub(super) gone: bool,
    /// A request takes what comes down.
    pub(super) down: bool,
    /// A request without an end brings all that goes up.
    pub(super) up: bool,
    /// Numbered requests bring it.
    pub(super) posts: bool,
    /// All has come.
    pub(super) ended: bool,
    pub(super) broken: Option<io::ErrorKind>,
    pub(super) reader: Option<Waker>,
}

impl State {
    pub(super) fn new(max_posts: usize) -> Self {
        State {
            ready: VecDeque::new(),
            bytes: 0,
            // Requests are counted before they are read; a few more than may wait can have begun.
            queue: Queue::new(2 * max_posts),
            waiting: BTreeSet::new(),
            collected: 0,
            trusted: false,
            gone: false,
            down: false,
            up: false,
            posts: false,
            ended: false,
            broken: None,
            reader: None,
        }
    }

    /// Bytes that may be added to those in their order.
    pub(super) fn room(&self) -> usize {
        match self.trusted {
            true => MAX_READY.saturating_sub(self.bytes),
            false => STRANGERS_BYTES.saturating_sub(self.held()),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.bytes + self.queue.bytes() + self.collected
    }

    /// How many bytes of the body of a request that waits may be read now.
    pub(super) fn ahead(&self, seq: u64, max_posts: usize) -> usize {
        let before = self.waiting.range(..seq).count() + self.queue.len();
        match self.trusted {
            true if before < max_posts => PIECE,
            true => 0,
            // Half of the room is for those whose turn it is.
            false => (STRANGERS_BYTES / 2).saturating_sub(self.held()),
        }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.ready.push_back(bytes);
        }
    }

    /// Moves what waited for its turn to what is in its order.
    pub(super) fn pump(&mut self) {
        while let Some(body) = self.queue.pop() {
            self.push(body.into());
        }
    }

    pub(super) fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}
