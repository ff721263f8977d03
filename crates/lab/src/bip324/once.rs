//! What a connection costs once: keys, the agreement, the key schedule, the whole handshake at both ends.

use std::rc::Rc;

use sealway_bip324::{Connection, ELLSWIFT_LEN, Event, LocalKey, Options, Role, SessionKeys};
use secp256k1::SecretKey;
use secp256k1::ellswift::{ElligatorSwift, ElligatorSwiftParty};

use super::links::{Link, MAGIC, failed};
use crate::result::Case;
use crate::run::{Cell, CellError};
use crate::workload::chunk::{Chunk, chunked};
use crate::workload::engine::{Engine, Sealway};

/// Operations that are timed together.
pub(super) const CHUNK: usize = 8;

/// What is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Once {
    /// A key and its 64-byte encoding, of random bytes that are there.
    Key,
    /// ECDH and the hash over it, in libsecp256k1, which both libraries stand on.
    Ecdh,
    /// HKDF of the shared secret: four keys, two terminators, the session id.
    Schedule,
    /// ECDH and key schedule.
    Agree,
    /// Both ends of a whole handshake, their keys among it, without garbage and decoys: until each has opened the other's
    /// version packet.
    Handshake,
}

impl Once {
    pub(super) const ALL: [Once; 5] = [Once::Handshake, Once::Key, Once::Agree, Once::Ecdh, Once::Schedule];

    /// The case's word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Once::Key => "key",
            Once::Ecdh => "ecdh",
            Once::Schedule => "key-schedule",
            Once::Agree => "agree",
            Once::Handshake => "handshake",
        }
    }
}

/// What an operation gives: an encoding, a shared secret or a session id, in its first bytes.
pub(super) type Answer = [u8; ELLSWIFT_LEN];

pub(super) fn answer(bytes: &[u8]) -> Answer {
    let mut answer = [0; ELLSWIFT_LEN];
    answer[..bytes.len()].copy_from_slice(bytes);
    answer
}

/// Does one operation for a connection; whatever it needs first is made by [`Work::prepare`].
pub(super) trait Work {
    type Ready;

    /// What is there before the clock starts.
    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError>;

    /// The operation.
    fn work(&self, ready: Self::Ready) -> Result<Answer, CellError>;

    /// What it must give.
    fn expected(&self, link: &Link) -> Result<Answer, CellError>;
}

/// An operation on several connections in turn.
struct Several<W: Work> {
    work: W,
    links: Rc<Vec<Link>>,
    at: usize,
    ready: Vec<W::Ready>,
    answers: Vec<Answer>,
    expected: Vec<Answer>,
    failure: Option<CellError>,
}

impl<W: Work> Several<W> {
    fn new(work: W, links: Rc<Vec<Link>>) -> Result<Self, CellError> {
        let expected = links.iter().take(CHUNK * 4).map(|link| work.expected(link));
        Ok(Several {
            expected: expected.collect::<Result<_, _>>()?,
            work,
            links,
            at: 0,
            ready: Vec::with_capacity(CHUNK),
            answers: Vec::with_capacity(CHUNK),
            failure: None,
        })
    }
}

impl<W: Work> Chunk for Several<W> {
    fn reset(&mut self) {
        self.at = (self.at + CHUNK) % self.expected.len().max(1);
        self.answers.clear();
        self.ready.clear();
        for link in self.links.iter().skip(self.at).take(CHUNK) {
            match self.work.prepare(link) {
                Ok(ready) => self.ready.push(ready),
                Err(error) => self.failure = Some(error),
            }
        }
    }

    fn work(&mut self) -> Result<(), CellError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        for ready in self.ready.drain(..) {
            self.answers.push(self.work.work(ready)?);
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        if self.expected[self.at..].starts_with(&self.answers) && !self.answers.is_empty() {
            return Ok(());
        }
        Err(CellError::wrong("a handshake step gave another result than it must"))
    }

    fn counted(&self) -> (u64, u64) {
        (self.answers.len() as u64, 0)
    }
}

/// A cell for an operation.
pub(super) fn cell<W: Work + Clone + 'static>(
    case: Case,
    subject: &'static str,
    work: W,
    links: &Rc<Vec<Link>>,
) -> Cell {
    let links = Rc::clone(links);
    chunked(case, subject, move || Several::new(work.clone(), Rc::clone(&links)))
}

/// Our cells of an operation.
pub(super) fn own(once: Once, case: Case, links: &Rc<Vec<Link>>) -> Cell {
    match once {
        Once::Key => cell(case, Sealway::NAME, Key, links),
        Once::Ecdh => cell(case, Sealway::NAME, Ecdh, links),
        Once::Schedule => cell(case, Sealway::NAME, Schedule, links),
        Once::Agree => cell(case, Sealway::NAME, Agree, links),
        Once::Handshake => cell(case, Sealway::NAME, Handshake, links),
    }
}

#[derive(Clone)]
struct Key;

impl Work for Key {
    type Ready = [[u8; 32]; 2];

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        Ok(link.secrets)
    }

    fn work(&self, [secret, auxiliary]: Self::Ready) -> Result<Answer, CellError> {
        let key = LocalKey::new(&secret, &auxiliary).map_err(failed)?;
        Ok(*key.encoding())
    }

    /// An encoding has no other to be compared with, as our own is random; it is right if the other end agrees with it.
    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        let [secret, theirs] = link.secrets;
        let encoding = self.work(link.secrets)?;
        let here = LocalKey::with_encoding(&secret, encoding).map_err(failed)?;
        let there = LocalKey::with_encoding(&theirs, link.encodings[1]).map_err(failed)?;
        let here = here.agree(&link.encodings[1], Role::Initiator, MAGIC).map_err(failed)?;
        let there = there.agree(&encoding, Role::Responder, MAGIC).map_err(failed)?;
        if here.session_id() == there.session_id() {
            return Ok(encoding);
        }
        Err(CellError::wrong("an encoding is not that of its key"))
    }
}

#[derive(Clone)]
struct Ecdh;

/// A shared secret by libsecp256k1.
fn shared(link: &Link, party: ElligatorSwiftParty) -> Result<Answer, CellError> {
    let secret = match party {
        ElligatorSwiftParty::A => link.secrets[0],
        ElligatorSwiftParty::B => link.secrets[1],
    };
    let [a, b] = link.encodings.map(ElligatorSwift::from_array);
    let secret = SecretKey::from_slice(&secret).map_err(failed)?;
    let shared = ElligatorSwift::shared_secret(a, b, secret, party, None);
    Ok(answer(shared.as_secret_bytes()))
}

impl Work for Ecdh {
    type Ready = (ElligatorSwift, ElligatorSwift, SecretKey);

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        let [a, b] = link.encodings.map(ElligatorSwift::from_array);
        Ok((a, b, SecretKey::from_slice(&link.secrets[0]).map_err(failed)?))
    }

    fn work(&self, (a, b, secret): Self::Ready) -> Result<Answer, CellError> {
        let shared = ElligatorSwift::shared_secret(a, b, secret, ElligatorSwiftParty::A, None);
        Ok(answer(shared.as_secret_bytes()))
    }

    /// The other end's.
    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        shared(link, ElligatorSwiftParty::B)
    }
}

#[derive(Clone)]
struct Schedule;

impl Work for Schedule {
    type Ready = [u8; 32];

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        let shared = shared(link, ElligatorSwiftParty::A)?;
        shared.first_chunk().copied().ok_or_else(|| failed("no secret"))
    }

    fn work(&self, shared: Self::Ready) -> Result<Answer, CellError> {
        let keys = SessionKeys::derive(&shared, MAGIC).map_err(failed)?;
        Ok(answer(&keys.session_id()))
    }

    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        Ok(answer(&link.session_id))
    }
}

#[derive(Clone)]
struct Agree;

impl Work for Agree {
    type Ready = (LocalKey, [u8; ELLSWIFT_LEN]);

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        let [theirs, own] = link.encodings;
        let key = LocalKey::with_encoding(&link.secrets[1], own).map_err(failed)?;
        Ok((key, theirs))
    }

    fn work(&self, (key, theirs): Self::Ready) -> Result<Answer, CellError> {
        let keys = key.agree(&theirs, Role::Responder, MAGIC).map_err(failed)?;
        Ok(answer(&keys.session_id()))
    }

    /// The connection's, which the other end derived.
    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        Ok(answer(&link.session_id))
    }
}

#[derive(Clone)]
struct Handshake;

impl Work for Handshake {
    type Ready = [[u8; 32]; 2];

    fn prepare(&self, link: &Link) -> Result<Self::Ready, CellError> {
        Ok(link.secrets)
    }

    fn work(&self, secrets: Self::Ready) -> Result<Answer, CellError> {
        let [first, second] = secrets;
        let key = LocalKey::new(&first, &second).map_err(failed)?;
        let mut here = Connection::initiator(MAGIC, key, Options::default()).map_err(failed)?;
        let key = LocalKey::new(&second, &first).map_err(failed)?;
        let mut there = Connection::responder(MAGIC, key, Options::default()).map_err(failed)?;
        for _ in 0..2 {
            let n = there.handle_input(here.output()).map_err(failed)?;
            here.advance_output(n);
            let n = here.handle_input(there.output()).map_err(failed)?;
            there.advance_output(n);
        }
        match (here.poll_event(), there.poll_event()) {
            (Some(Event::Established { session_id: a }), Some(Event::Established { session_id: b })) if a == b => {
                Ok(answer(&a))
            }
            _ => Err(CellError::wrong("the two ends did not come together")),
        }
    }

    /// By the steps themselves.
    fn expected(&self, link: &Link) -> Result<Answer, CellError> {
        let [first, second] = link.secrets;
        let there = LocalKey::new(&second, &first).map_err(failed)?;
        let encoding = LocalKey::new(&first, &second).map_err(failed)?;
        let keys = there
            .agree(encoding.encoding(), Role::Responder, MAGIC)
            .map_err(failed)?;
        Ok(answer(&keys.session_id()))
    }
}
