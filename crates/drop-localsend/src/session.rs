//! The one slot of a receiver, as a machine without I/O: who is asked about, whose files come, and what of them may still come.
//!
//! Time comes in as an argument. An app that vanishes says nothing, so a session in which nothing happens ends by itself; the app's own
//! receiver waits for ever.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use subtle::ConstantTimeEq;

use crate::fingerprint::Fingerprint;

/// How long nothing may come of a session.
pub const SILENCE: Duration = Duration::from_secs(60);
/// The same once every file was tried and some failed: a sender may try those again.
pub const LAST_CHANCE: Duration = Duration::from_secs(10);
/// How often a file may come with another hash than was announced.
const WRONG: u8 = 3;

/// Who is at the other end of a connection: its address without a port, and its certificate, if it showed one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Who {
    /// Its address; one of IPv4 in that form.
    pub address: IpAddr,
    /// Its certificate, of which it proved that it has the key.
    pub certificate: Option<Fingerprint>,
}

/// A file that is wanted.
#[derive(Debug)]
struct File {
    token: String,
    state: State,
    wrong: u8,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Waiting,
    Running,
    Failed,
    Done,
}

/// How an upload ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The file has its name.
    Done,
    /// It may be sent again.
    Failed,
    /// It had another hash; it may be sent again twice.
    WrongHash,
}

/// What a call about the slot is answered with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// Somebody else has it.
    Busy,
    /// It does not fit: another session, another end, another token, or a file that is under way or done.
    Forbidden,
}

/// What a cancel ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cancelled {
    /// A question with this number.
    Question(u64),
    /// The session.
    Session,
    /// Nothing, as it did not fit.
    Nothing,
}

/// The slot.
#[derive(Debug, Default)]
pub struct Slot {
    questions: u64,
    held: Held,
}

#[derive(Debug, Default)]
enum Held {
    #[default]
    Free,
    Asking {
        number: u64,
        who: Who,
    },
    Open {
        id: String,
        who: Who,
        files: HashMap<String, File>,
        running: usize,
        since: Instant,
    },
}

impl Slot {
    /// Whether somebody has it.
    pub fn is_taken(&self) -> bool {
        !matches!(self.held, Held::Free)
    }

    /// Takes it for somebody whose offer a person is asked about.
    ///
    /// # Errors
    /// [`Refusal::Busy`].
    pub fn ask(&mut self, who: Who) -> Result<u64, Refusal> {
        if self.is_taken() {
            return Err(Refusal::Busy);
        }
        self.questions += 1;
        let number = self.questions;
        self.held = Held::Asking { number, who };
        Ok(number)
    }

    /// The question is over, and nothing is to come. A later one is left alone.
    pub fn withdraw(&mut self, question: u64) {
        if matches!(self.held, Held::Asking { number, .. } if number == question) {
            self.held = Held::Free;
        }
    }

    /// What was asked about is to come: files by their ids with their tokens. False if it was cancelled meanwhile.
    pub fn open(&mut self, question: u64, id: String, files: Vec<(String, String)>, now: Instant) -> bool {
        let Held::Asking { number, who } = self.held else {
            return false;
        };
        if number != question {
            return false;
        }
        let file = |(id, token)| {
            let (state, wrong) = (State::Waiting, 0);
            (id, File { token, state, wrong })
        };
        self.held = Held::Open {
            id,
            who,
            files: files.into_iter().map(file).collect(),
            running: 0,
            since: now,
        };
        true
    }

    /// An upload begins.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`].
    pub fn start(&mut self, session: &str, file: &str, token: &str, from: Who, now: Instant) -> Result<(), Refusal> {
        let Held::Open {
            id,
            who,
            files,
            running,
            since,
        } = &mut self.held
        else {
            return Err(Refusal::Forbidden);
        };
        let known: bool = id.as_bytes().ct_eq(session.as_bytes()).into();
        let file = files.get_mut(file).filter(|_| known && *who == from);
        let file = file.filter(|file| file.token.as_bytes().ct_eq(token.as_bytes()).into());
        let file = file.filter(|file| matches!(file.state, State::Waiting | State::Failed) && file.wrong < WRONG);
        let file = file.ok_or(Refusal::Forbidden)?;
        file.state = State::Running;
        *running += 1;
        *since = now;
        Ok(())
    }

    /// An upload of this session ended. True if nothing more is to come, which ends the session.
    pub fn finish(&mut self, session: &str, file: &str, outcome: Outcome, now: Instant) -> bool {
        let Held::Open {
            id,
            files,
            running,
            since,
            ..
        } = &mut self.held
        else {
            return false;
        };
        let Some(file) = files
            .get_mut(file)
            .filter(|file| id == session && file.state == State::Running)
        else {
            return false;
        };
        file.state = match outcome {
            Outcome::Done => State::Done,
            Outcome::Failed | Outcome::WrongHash => State::Failed,
        };
        file.wrong += u8::from(outcome == Outcome::WrongHash);
        *running -= 1;
        *since = now;
        let over = files
            .values()
            .all(|file| file.state == State::Done || file.wrong >= WRONG);
        if over {
            self.held = Held::Free;
        }
        over
    }

    /// Somebody cancels: the session of this id, or, before there is one, the question about their offer.
    pub fn cancel(&mut self, session: Option<&str>, from: Who) -> Cancelled {
        let cancelled = match (&self.held, session) {
            (Held::Asking { number, who }, _) if *who == from => Cancelled::Question(*number),
            (Held::Open { id, who, .. }, Some(session)) if id == session && *who == from => Cancelled::Session,
            _ => Cancelled::Nothing,
        };
        if cancelled != Cancelled::Nothing {
            self.held = Held::Free;
        }
        cancelled
    }

    /// Ends whatever there is: this end stops.
    pub fn clear(&mut self) {
        self.held = Held::Free;
    }

    /// Whether nothing has come for so long that the session is over, which it then is.
    pub fn expire(&mut self, now: Instant) -> bool {
        let Held::Open {
            files, running, since, ..
        } = &self.held
        else {
            return false;
        };
        let untried = files.values().any(|file| file.state == State::Waiting);
        let patience = if untried { SILENCE } else { LAST_CHANCE };
        let over = *running == 0 && now.saturating_duration_since(*since) >= patience;
        if over {
            self.held = Held::Free;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(last: u8, certificate: Option<&[u8]>) -> Who {
        Who {
            address: IpAddr::from([10, 0, 0, last]),
            certificate: certificate.map(Fingerprint::of),
        }
    }

    fn open(now: Instant) -> (Slot, Who) {
        let (mut slot, ann) = (Slot::default(), who(1, Some(b"ann")));
        let question = slot.ask(ann).unwrap();
        assert_eq!(slot.ask(ann), Err(Refusal::Busy));
        let files = [("0", "t0"), ("1", "t1")].map(|(id, token)| (id.to_owned(), token.to_owned()));
        assert!(slot.open(question, "s".into(), files.into(), now));
        (slot, ann)
    }

    #[test]
    fn files_come_once_each_and_then_the_slot_is_free() {
        let now = Instant::now();
        let (mut slot, ann) = open(now);
        assert_eq!(slot.start("s", "0", "t0", ann, now), Ok(()));
        assert_eq!(
            slot.start("s", "0", "t0", ann, now),
            Err(Refusal::Forbidden),
            "it is under way"
        );
        assert!(!slot.finish("s", "0", Outcome::Done, now));
        assert_eq!(
            slot.start("s", "0", "t0", ann, now),
            Err(Refusal::Forbidden),
            "it is there"
        );
        assert_eq!(slot.start("s", "1", "t1", ann, now), Ok(()));
        assert!(!slot.finish("s", "1", Outcome::Failed, now));
        assert_eq!(slot.start("s", "1", "t1", ann, now), Ok(()), "it may be sent again");
        assert!(slot.finish("s", "1", Outcome::Done, now));
        assert!(!slot.is_taken());
    }

    #[test]
    fn nobody_else_sends_into_a_session() {
        let now = Instant::now();
        let (mut slot, ann) = open(now);
        let forbidden = Err(Refusal::Forbidden);
        assert_eq!(slot.start("x", "0", "t0", ann, now), forbidden);
        assert_eq!(slot.start("s", "2", "t0", ann, now), forbidden);
        assert_eq!(slot.start("s", "0", "t1", ann, now), forbidden);
        assert_eq!(slot.start("s", "0", "t0", who(2, Some(b"ann")), now), forbidden);
        assert_eq!(slot.start("s", "0", "t0", who(1, Some(b"bob")), now), forbidden);
        assert_eq!(slot.start("s", "0", "t0", who(1, None), now), forbidden);
        assert_eq!(slot.cancel(Some("s"), who(1, None)), Cancelled::Nothing);
        assert_eq!(slot.cancel(None, ann), Cancelled::Nothing);
        assert_eq!(slot.cancel(Some("s"), ann), Cancelled::Session);
        assert!(!slot.is_taken());
    }

    #[test]
    fn a_wrong_hash_is_forgiven_twice() {
        let now = Instant::now();
        let (mut slot, ann) = open(now);
        for _ in 0..3 {
            assert_eq!(slot.start("s", "0", "t0", ann, now), Ok(()));
            assert!(!slot.finish("s", "0", Outcome::WrongHash, now));
        }
        assert_eq!(slot.start("s", "0", "t0", ann, now), Err(Refusal::Forbidden));
        assert_eq!(slot.start("s", "1", "t1", ann, now), Ok(()));
        assert!(
            slot.finish("s", "1", Outcome::Done, now),
            "what cannot come any more is not waited for"
        );
    }

    #[test]
    fn who_decides_can_be_too_late() {
        let (mut slot, ann) = (Slot::default(), who(1, None));
        let question = slot.ask(ann).unwrap();
        assert_eq!(slot.cancel(Some("any"), who(2, None)), Cancelled::Nothing);
        assert_eq!(slot.cancel(None, ann), Cancelled::Question(question));
        assert!(!slot.open(question, "s".into(), vec![], Instant::now()));
        let next = slot.ask(who(2, None)).unwrap();
        slot.withdraw(question);
        assert!(slot.is_taken(), "that was another question");
        slot.withdraw(next);
        assert!(!slot.is_taken());
    }

    #[test]
    fn a_sender_that_vanishes_frees_the_slot() {
        let now = Instant::now();
        let (mut slot, ann) = open(now);
        assert!(!slot.expire(now + SILENCE - Duration::from_millis(1)));
        assert_eq!(slot.start("s", "0", "t0", ann, now), Ok(()));
        assert!(!slot.expire(now + SILENCE * 10), "an upload has a time of its own");
        assert!(!slot.finish("s", "0", Outcome::Failed, now + SILENCE));
        assert!(!slot.expire(now + SILENCE + LAST_CHANCE), "a file has not been tried");
        assert!(slot.expire(now + SILENCE * 2));
        assert!(!slot.is_taken() && !slot.expire(now + SILENCE * 9));
    }
}
