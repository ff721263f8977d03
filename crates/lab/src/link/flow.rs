//! One direction of a connection: what of its stream is under way, when it is delivered, and what its sender knows of that.

use std::collections::VecDeque;

use super::line::Line;
use super::window::{Losses, Window};
use super::{Link, RECEIVE_WINDOW, SEGMENT};
use crate::stats::SplitMix64;

/// Bytes of a piece at most: what is taken in at once, and arrives as one.
pub(super) const PIECE: usize = 64 << 10;

/// How long a piece may take to leave the queue, unless it is one packet.
const PIECE_NS: u64 = 500_000;

/// Something under way.
#[derive(Debug)]
pub(super) enum Item {
    Data(Vec<u8>),
    /// The end of the stream.
    End,
    /// The connection broke.
    Broken,
}

#[derive(Debug)]
struct Held {
    at: u64,
    item: Item,
}

/// What a sender will learn.
#[derive(Debug)]
struct Ack {
    at: u64,
    bytes: u64,
    last: u64,
    lost: bool,
}

#[derive(Debug)]
pub(super) struct Flow {
    window: Window,
    losses: Losses,
    held: VecDeque<Held>,
    /// Bytes of the first piece that have been delivered.
    given: usize,
    bytes: usize,
    most: usize,
    piece: usize,
    /// When the last thing under way is delivered.
    latest: u64,
    acks: VecDeque<Ack>,
    ended: bool,
}

impl Flow {
    pub(super) fn new(link: &Link, random: SplitMix64) -> Flow {
        let most = link.most_held();
        let by_rate = link
            .rate
            .map_or(PIECE as u64, |rate| rate / 8 * PIECE_NS / 1_000_000_000);
        let segments = (by_rate / SEGMENT).max(1) * SEGMENT;
        Flow {
            window: Window::new(most, link.usual_window()),
            losses: Losses::new(link.loss(), random),
            held: VecDeque::new(),
            given: 0,
            bytes: 0,
            most: usize::try_from(most).unwrap_or(usize::MAX),
            piece: usize::try_from(segments).map_or(PIECE, |piece| piece.min(PIECE)),
            latest: 0,
            acks: VecDeque::new(),
            ended: false,
        }
    }

    /// Nothing more is taken in.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Bytes that may be taken in now, with `model` off without regard to window and loss; 0: none.
    pub(super) fn room(&self, model: bool) -> usize {
        let free = self.most.saturating_sub(self.bytes);
        match (self.ended, model) {
            (true, _) => return 0,
            (false, false) => return free.min(PIECE),
            (false, true) => {}
        }
        // What comes before a lost packet is one piece, and the packet by itself another.
        let clear = self.losses.left().max(1).saturating_mul(SEGMENT);
        // The receiver's buffer grows as large as the sender's window, and no larger while nobody reads.
        let receiver = self.window.size().max(RECEIVE_WINDOW).saturating_sub(self.bytes as u64);
        let room = usize::try_from(self.window.room().min(clear).min(receiver)).unwrap_or(usize::MAX);
        room.min(free).min(self.piece)
    }

    /// Takes in what has been read at `now`, no more than there was room for; when it is delivered, and when the sender knows.
    pub(super) fn enter(&mut self, line: &mut Line, now: u64, data: Vec<u8>) -> (u64, u64) {
        let bytes = data.len() as u64;
        let in_vain = if self.losses.left() == 0 { self.losses.lose() } else { 0 };
        self.losses.pass(bytes.div_ceil(SEGMENT));
        let arrival = line.enter(now, data.len());
        // What is sent again takes its time of the rate too.
        for _ in 0..in_vain {
            line.enter(now, data.len());
        }
        let known = arrival + line.one_way();
        let last = self.window.send(bytes);
        self.acks.push_back(Ack {
            at: known,
            bytes,
            last,
            lost: in_vain > 0,
        });
        let at = arrival + in_vain * 2 * line.one_way();
        (self.hold(at, Item::Data(data)), known)
    }

    /// Takes in what is delivered at once.
    pub(super) fn pass(&mut self, now: u64, item: Item) {
        self.ended |= !matches!(item, Item::Data(_));
        self.hold(now, item);
    }

    /// The stream ends at `now`; when that is delivered.
    pub(super) fn end(&mut self, line: &mut Line, now: u64, item: Item) -> u64 {
        self.ended = true;
        let at = line.enter(now, 0);
        self.hold(at, item)
    }

    /// Puts something behind all that is under way: a stream keeps its order.
    fn hold(&mut self, at: u64, item: Item) -> u64 {
        if let Item::Data(data) = &item {
            self.bytes += data.len();
        }
        self.latest = self.latest.max(at);
        self.held.push_back(Held { at: self.latest, item });
        self.latest
    }

    /// The sender learns what it can know by `now`.
    pub(super) fn learn(&mut self, now: u64) {
        while self.acks.front().is_some_and(|ack| ack.at <= now) {
            if let Some(ack) = self.acks.pop_front() {
                self.window.learn(ack.bytes, ack.last, ack.lost);
            }
        }
    }

    /// What is under way is due by `now`, and nothing that comes later waits for it.
    pub(super) fn settle(&mut self, now: u64) {
        self.learn(u64::MAX);
        for held in &mut self.held {
            held.at = held.at.min(now);
        }
        self.latest = self.latest.min(now);
    }

    /// What is to be delivered next, if its time has come: of data, what is left of the piece.
    pub(super) fn due(&self, now: u64) -> Option<Due<'_>> {
        let held = self.held.front().filter(|held| held.at <= now)?;
        Some(match &held.item {
            Item::Data(data) => Due::Data(&data[self.given..]),
            Item::End => Due::End,
            Item::Broken => Due::Broken,
        })
    }

    /// So many bytes of what is due were delivered; or, of what has none, it was.
    pub(super) fn delivered(&mut self, bytes: usize) {
        self.given += bytes;
        self.bytes -= bytes;
        let whole = |held: &Held| !matches!(&held.item, Item::Data(data) if data.len() > self.given);
        if self.held.front().is_some_and(whole) {
            self.held.pop_front();
            self.given = 0;
        }
    }

    /// Nobody is there to deliver to.
    pub(super) fn abandon(&mut self) {
        self.held.clear();
        (self.bytes, self.given, self.ended) = (0, 0, true);
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes
    }
}

/// What is due.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Due<'a> {
    Data(&'a [u8]),
    End,
    Broken,
}
