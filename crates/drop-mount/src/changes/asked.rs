//! Changes under way at the side that mounts, by whatever connection.
//!
//! Each has a number, one above that of the one before it, and is kept until it is answered. What a direct connection leaves unanswered goes
//! by the first connection again, before anything that is new there: so what comes by one connection always has rising numbers, and the
//! other end knows by them what it has done already.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::message::{self, WRITE_HEADER, WriteHeader};
use super::{OUTSTANDING, OUTSTANDING_BYTES};
use crate::line::Line;
use crate::tree::{Changed, TreeError};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// How long the connection is silent at most: relays end those that are silent for long.
const BEAT: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Default)]
pub struct Asked {
    state: Mutex<State>,
    /// Something is to be sent, or it is over.
    work: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// How many of those a look is not to wait for: it would be done only after them.
    holding: usize,
    /// Not sent yet.
    unsent: VecDeque<u64>,
    /// Left by a direct connection: the first one sends it again.
    again: VecDeque<u64>,
    /// The first connection, and direct ones behind it.
    ways: Vec<u32>,
    /// Bytes of what was sent.
    bytes: usize,
    /// How many were left so far.
    left: u64,
    lost: bool,
}

struct Waiting {
    message: Message,
    done: Done,
    /// A look is not to wait for it.
    holds: bool,
    /// By which connection it was sent.
    way: Option<u32>,
}

/// Takes the answer.
pub(super) type Done = Box<dyn FnOnce(Result<Changed, TreeError>) + Send>;

/// What is asked for.
#[derive(Clone)]
pub(super) enum Message {
    Change(Bytes),
    Write(WriteHeader, Bytes),
}

impl Message {
    fn len(&self) -> usize {
        match self {
            Message::Change(payload) => payload.len(),
            Message::Write(_, data) => WRITE_HEADER + data.len(),
        }
    }
}

impl State {
    /// The connection by which new changes go: one at a time, as long as it stands.
    fn carries(&self) -> Option<u32> {
        self.ways.get(1).or(self.ways.first()).copied()
    }

    /// What a connection is to send. `None` if it is not there any more.
    fn due(&mut self, number: u32) -> Option<Vec<(u64, Message)>> {
        if !self.ways.contains(&number) {
            return None;
        }
        let mut due = Vec::new();
        if self.ways.first() == Some(&number) {
            due.extend(self.again.drain(..));
        }
        let oldest = self.waiting.keys().next().copied().unwrap_or(self.next);
        while self.carries() == Some(number)
            && let Some(&next) = self.unsent.front()
        {
            let len = self.waiting.get(&next).map_or(0, |waiting| waiting.message.len());
            if self.bytes + len > OUTSTANDING_BYTES || next - oldest >= u64::from(OUTSTANDING) {
                break;
            }
            self.bytes += len;
            self.unsent.pop_front();
            due.push(next);
        }
        let sent = due.into_iter().filter_map(|of| {
            let waiting = self.waiting.get_mut(&of)?;
            waiting.way = Some(number);
            Some((of, waiting.message.clone()))
        });
        Some(sent.collect())
    }
}

impl Asked {
    pub(super) fn is_lost(&self) -> bool {
        lock(&self.state).lost
    }

    /// Whether something is under way that a look is not to wait for.
    pub(super) fn is_busy(&self) -> bool {
        lock(&self.state).holding > 0
    }

    /// Asks for a change, one that a look is not to wait for if it `holds`. Never blocks.
    pub(super) fn submit(&self, message: Message, holds: bool, done: Done) {
        let mut state = lock(&self.state);
        if state.lost {
            drop(state);
            return done(Err(TreeError::Lost));
        }
        let number = state.next;
        state.next += 1;
        let waiting = Waiting {
            message,
            done,
            holds,
            way: None,
        };
        state.waiting.insert(number, waiting);
        state.holding += usize::from(holds);
        state.unsent.push_back(number);
        drop(state);
        self.work.notify_all();
    }

    /// There is another connection, by which new changes go if it is direct and no other one is.
    pub(crate) fn begin(&self, number: u32) {
        lock(&self.state).ways.push(number);
        self.work.notify_all();
    }

    /// Whether an answer is waited for by a connection.
    pub(crate) fn waits(&self, number: u32) -> bool {
        lock(&self.state)
            .waiting
            .values()
            .any(|waiting| waiting.way == Some(number))
    }

    /// How many changes direct connections have left unanswered so far. They are asked for again.
    pub fn left(&self) -> u64 {
        lock(&self.state).left
    }

    /// Nothing comes by a direct connection any more.
    pub(crate) fn over(&self, number: u32) {
        let mut state = lock(&self.state);
        let State {
            ways,
            waiting,
            again,
            left,
            ..
        } = &mut *state;
        ways.retain(|way| *way != number);
        for (of, waiting) in waiting {
            if waiting.way == Some(number) {
                waiting.way = None;
                again.push_back(*of);
                *left += 1;
            }
        }
        drop(state);
        self.work.notify_all();
    }

    /// It is over: everything that waits fails.
    pub(super) fn lose(&self) {
        let waiting = {
            let mut state = lock(&self.state);
            state.lost = true;
            state.ways.clear();
            state.unsent.clear();
            state.again.clear();
            state.holding = 0;
            std::mem::take(&mut state.waiting)
        };
        self.work.notify_all();
        for waiting in waiting.into_values() {
            (waiting.done)(Err(TreeError::Lost));
        }
    }

    /// Sends by a connection until it is over.
    pub(crate) fn send(&self, line: &Line) -> Result<(), Error> {
        let mut spoken = Instant::now();
        let mut state = lock(&self.state);
        while let Some(due) = state.due(line.number) {
            let idle = spoken.elapsed() >= BEAT;
            if due.is_empty() && !idle {
                let woken = self.work.wait_timeout(state, BEAT);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            spoken = Instant::now();
            let mut writer = line.writer();
            if due.is_empty() {
                writer.push(kind::PULSE, 0, &[0])?;
            }
            for (number, message) in due {
                // The number as far as it goes on the wire.
                let tag = number as u32;
                match message {
                    Message::Change(payload) => writer.push(kind::CHANGE, tag, &payload)?,
                    Message::Write(header, data) => {
                        let len = WRITE_HEADER + data.len();
                        writer.record::<Error>(kind::WRITE, tag, len, |room| {
                            let (front, rest) = room.split_at_mut(WRITE_HEADER);
                            front.copy_from_slice(&header.encode());
                            rest.copy_from_slice(&data);
                            Ok(len)
                        })?;
                    }
                }
            }
            writer.flush()?;
            drop(writer);
            state = lock(&self.state);
        }
        Ok(())
    }

    /// An answer came by a connection. One to nothing that went there breaks the protocol, unless all is over.
    pub(crate) fn came(&self, tag: u32, payload: &[u8], way: u32) -> Result<(), Error> {
        let mut state = lock(&self.state);
        if state.lost {
            return Ok(());
        }
        let oldest = state.waiting.keys().next().copied().unwrap_or(state.next);
        let number = oldest + u64::from(tag.wrapping_sub(oldest as u32));
        let is_asked = |waiting: &Waiting| waiting.way == Some(way);
        let waiting = match state.waiting.get(&number).is_some_and(is_asked) {
            true => state.waiting.remove(&number),
            false => None,
        };
        let waiting = waiting.ok_or(Error::Protocol("an answer to nothing that was asked"))?;
        state.bytes = state.bytes.saturating_sub(waiting.message.len());
        state.holding -= usize::from(waiting.holds);
        let more = !state.unsent.is_empty();
        drop(state);
        if more {
            self.work.notify_all();
        }
        (waiting.done)(message::parse_answer(payload));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const FIRST: u32 = 5;
    const DIRECT: u32 = 17;

    fn asked(changes: u64) -> Asked {
        let asked = Asked::default();
        asked.begin(FIRST);
        asked.begin(DIRECT);
        for _ in 0..changes {
            asked.submit(Message::Change(Bytes::from_static(b"x")), false, Box::new(drop));
        }
        asked
    }

    fn due(asked: &Asked, number: u32) -> Option<Vec<u64>> {
        let due = lock(&asked.state).due(number)?;
        Some(due.into_iter().map(|(of, _)| of).collect())
    }

    #[test]
    fn what_a_direct_connection_leaves_goes_by_the_first_one_before_what_is_new() {
        let asked = asked(3);
        assert_eq!(due(&asked, FIRST), Some(vec![]));
        assert_eq!(due(&asked, DIRECT), Some(vec![0, 1, 2]));
        let answer = message::encode_answer(&Err(TreeError::Stale));
        asked.came(1, &answer, DIRECT).unwrap();
        asked.submit(Message::Change(Bytes::from_static(b"x")), false, Box::new(drop));
        asked.over(DIRECT);
        assert_eq!(asked.left(), 2);
        assert_eq!(due(&asked, DIRECT), None);
        // A later direct one takes what is new, and nothing that was left.
        asked.begin(DIRECT + 1);
        assert_eq!(due(&asked, DIRECT + 1), Some(vec![3]));
        assert_eq!(due(&asked, FIRST), Some(vec![0, 2]));
        assert!(matches!(asked.came(0, &answer, DIRECT + 1), Err(Error::Protocol(_))));
        asked.came(0, &answer, FIRST).unwrap();
    }

    #[test]
    fn an_answer_that_comes_when_all_is_over_breaks_nothing() {
        let asked = asked(1);
        assert_eq!(due(&asked, DIRECT), Some(vec![0]));
        asked.lose();
        let answer = message::encode_answer(&Err(TreeError::Stale));
        asked.came(0, &answer, DIRECT).unwrap();
    }
}
