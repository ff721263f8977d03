//! What an end of the connections has to send and is to receive, and what both ends know of each other.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sealway_bip324::OVERHEAD;

use super::PATIENCE;
use crate::bip324::traffic::Traffic;
use crate::run::CellError;
use crate::stats::latency::{Latency, Tail};

/// Batches that an end may have sent beyond what it has received. Neither end can wait for the other then: one of the two
/// has always received enough, or something is under way.
pub(super) const AHEAD: u64 = 2;

/// Not known yet.
const UNKNOWN: u64 = u64::MAX;

/// What an end has opened, and in the end what it sent.
struct Progress {
    messages: AtomicU64,
    bytes: AtomicU64,
    sent: AtomicU64,
    left: AtomicBool,
    /// When each batch was given to this end to be sent.
    given: Mutex<Vec<Instant>>,
    /// How long the messages took that it opened in the window, once it has left.
    latencies: Mutex<Tail>,
}

/// What both ends know.
pub(super) struct Shared {
    pub(super) traffic: Arc<Traffic>,
    batch: usize,
    stopped: AtomicBool,
    /// True in the window: latencies count.
    timed: AtomicBool,
    ends: [Progress; 2],
}

impl Shared {
    pub(super) fn new(traffic: Arc<Traffic>, batch: usize) -> Self {
        let progress = || Progress {
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            sent: AtomicU64::new(UNKNOWN),
            left: AtomicBool::new(false),
            given: Mutex::default(),
            latencies: Mutex::default(),
        };
        Shared {
            batch: batch.min(traffic.count()),
            traffic,
            stopped: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            ends: [progress(), progress()],
        }
    }

    /// From now on latencies count, or no longer.
    pub(super) fn time(&self, timed: bool) {
        self.timed.store(timed, Ordering::Relaxed);
    }

    /// How long the messages of both directions took that were opened in the window. Both ends have left.
    pub(super) fn latencies(&self) -> Tail {
        let ends = self.ends.each_ref();
        let tails = ends.map(|end| std::mem::take(&mut *end.latencies.lock().unwrap_or_else(PoisonError::into_inner)));
        Tail::merged(&tails)
    }

    /// Nothing more is to be sent.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// An end needs its sockets no longer.
    pub(super) fn leave(&self, end: usize) {
        self.ends[end].left.store(true, Ordering::SeqCst);
    }

    /// Messages of each direction that are compared on the wire too.
    fn compared(&self) -> u64 {
        AHEAD * self.batch as u64
    }

    /// True once these have come at both ends.
    pub(super) fn is_compared(&self) -> bool {
        let messages = |end: &Progress| end.messages.load(Ordering::Relaxed);
        self.ends.iter().all(|end| messages(end) >= self.compared())
    }

    /// Messages, bytes of their contents and bytes of their packets that both ends have opened so far.
    pub(super) fn opened(&self) -> [u64; 3] {
        let sum = |of: fn(&Progress) -> &AtomicU64| -> u64 {
            self.ends.iter().map(|end| of(end).load(Ordering::Relaxed)).sum()
        };
        let (messages, bytes) = (sum(|end| &end.messages), sum(|end| &end.bytes));
        [messages, bytes, bytes + messages * OVERHEAD as u64]
    }

    /// What an end has sent, if it said so, and opened.
    #[cfg(test)]
    pub(super) fn set(&self, end: usize, sent: Option<u64>, opened: u64) {
        self.ends[end].sent.store(sent.unwrap_or(UNKNOWN), Ordering::SeqCst);
        self.ends[end].messages.store(opened, Ordering::SeqCst);
    }

    /// Whether all that was sent has come, and no more.
    pub(super) fn verdict(&self) -> Result<(), CellError> {
        for (sender, receiver) in [(0, 1), (1, 0)] {
            let sent = self.ends[sender].sent.load(Ordering::SeqCst);
            if sent == UNKNOWN {
                return Err(CellError::failed("an end never said how many messages it had sent"));
            }
            let seen = self.ends[receiver].messages.load(Ordering::SeqCst);
            if seen != sent {
                return Err(CellError::wrong(format_args!("{seen} messages came of {sent} sent")));
            }
        }
        Ok(())
    }
}

/// What an end does.
pub(super) struct Course {
    shared: Arc<Shared>,
    end: usize,
    next: usize,
    sent: u64,
    messages: u64,
    bytes: u64,
    /// The message that each connection brings next, and how often it has brought all of its messages.
    expected: Vec<(Option<usize>, usize)>,
    /// When the other end was given its batches, as far as it has been asked.
    given: Vec<Instant>,
    latencies: Latency,
    /// The packet that each connection brings next on the wire, and how many bytes of it have come; until enough is compared.
    wires: Vec<(Option<usize>, usize)>,
    wrong: Option<String>,
}

impl Course {
    pub(super) fn new(shared: Arc<Shared>, end: usize) -> Self {
        let traffic = &shared.traffic;
        let expected: Vec<_> = (0..traffic.connections()).map(|c| (traffic.first_of(c), 0)).collect();
        Course {
            wires: expected.iter().map(|(first, _)| (*first, 0)).collect(),
            expected,
            given: Vec::new(),
            latencies: Latency::new(),
            shared,
            end,
            next: 0,
            sent: 0,
            messages: 0,
            bytes: 0,
            wrong: None,
        }
    }

    pub(super) fn traffic(&self) -> &Arc<Traffic> {
        &self.shared.traffic
    }

    /// Packets sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The next packets to send, if it is time for any.
    pub(super) fn next(&mut self) -> Option<Range<usize>> {
        let own = &self.shared.ends[self.end];
        if self.shared.stopped.load(Ordering::SeqCst) {
            own.sent.store(self.sent, Ordering::SeqCst);
            return None;
        }
        let batch = self.shared.batch;
        if self.sent + batch as u64 > self.messages + AHEAD * batch as u64 {
            return None;
        }
        let count = self.shared.traffic.count();
        let packets = self.next..(self.next + batch).min(count);
        self.next = packets.end % count;
        self.sent += packets.len() as u64;
        own.given
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Instant::now());
        Some(packets)
    }

    /// Compares bytes that came on a connection, as long as that is to be done.
    pub(super) fn came(&mut self, connection: usize, mut bytes: &[u8]) {
        let Some((packet, at)) = self.wires.get_mut(connection) else {
            return;
        };
        let traffic = &self.shared.traffic;
        // Of the first pass the oracle's answers are known.
        while let Some(i) = packet.filter(|_| !bytes.is_empty()) {
            let want = &traffic.sealed[traffic.wire(i)][*at..];
            let (now, rest) = bytes.split_at(want.len().min(bytes.len()));
            if !want.starts_with(now) {
                self.wrong
                    .get_or_insert_with(|| format!("packet {i} differs from the oracle's on the wire"));
            }
            *at += now.len();
            bytes = rest;
            if now.len() == want.len() {
                (*packet, *at) = (traffic.next_of(i), 0);
            }
        }
    }

    /// Compares a message that was opened, and notes how long it took.
    pub(super) fn opened(&mut self, connection: usize, contents: &[u8]) {
        let traffic = &self.shared.traffic;
        let (expected, pass) = &mut self.expected[connection];
        match *expected {
            Some(i) if traffic.contents(i) == contents => {
                let batches = traffic.count().div_ceil(self.shared.batch);
                let batch = *pass * batches + i / self.shared.batch;
                *expected = traffic.next_of(i).or_else(|| {
                    *pass += 1;
                    traffic.first_of(connection)
                });
                self.note(batch);
            }
            _ => {
                self.wrong.get_or_insert_with(|| {
                    format!("a message on connection {connection} is not the one that was sent")
                });
            }
        }
        self.messages += 1;
        self.bytes += contents.len() as u64;
    }

    /// Notes how long a message of the other end's batch `batch` took, if that counts now.
    fn note(&mut self, batch: usize) {
        if !self.shared.timed.load(Ordering::Relaxed) {
            return;
        }
        if self.given.len() <= batch {
            let given = &self.shared.ends[1 - self.end].given;
            let given = given.lock().unwrap_or_else(PoisonError::into_inner);
            self.given.extend_from_slice(&given[self.given.len()..]);
        }
        // An end that lies may tell of a message that nobody has sent yet.
        if let Some(given) = self.given.get(batch) {
            self.latencies
                .record(u64::try_from(given.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Tells the other end and the clock what has come.
    pub(super) fn tell(&mut self) -> Result<(), CellError> {
        if let Some(wrong) = self.wrong.take() {
            return Err(CellError::wrong(wrong));
        }
        let own = &self.shared.ends[self.end];
        own.messages.store(self.messages, Ordering::Relaxed);
        own.bytes.store(self.bytes, Ordering::Relaxed);
        if self.messages >= self.shared.compared() {
            self.wires = Vec::new();
        }
        Ok(())
    }

    /// True if all has come that the other end sent.
    pub(super) fn is_over(&self) -> bool {
        let sent = self.shared.ends[1 - self.end].sent.load(Ordering::SeqCst);
        self.shared.ends[self.end].sent.load(Ordering::SeqCst) != UNKNOWN && sent != UNKNOWN && self.messages >= sent
    }

    /// Hands in the latencies, and keeps sockets open until the other end needs them no longer.
    pub(super) fn leave(&self) {
        let latencies = &self.shared.ends[self.end].latencies;
        *latencies.lock().unwrap_or_else(PoisonError::into_inner) = self.latencies.tail();
        self.shared.leave(self.end);
        let began = Instant::now();
        while !self.shared.ends[1 - self.end].left.load(Ordering::SeqCst) && began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
