//! What a connection costs once: keys, the agreement, HKDF and the key schedule, the whole handshake at both ends.

use std::rc::Rc;

use sealway_aead::derive::{Hash, Prk};
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
    /// HKDF-Expand, once: 32 bytes of what was extracted.
    Expand,
    /// HKDF-Extract of the shared secret and one HKDF-Expand.
    Hkdf,
    /// HKDF of the shared secret: four keys, two terminators, the session id.
    Schedule,
    /// ECDH and key schedule.
    Agree,
    /// Both ends of a whole handshake, their keys among it, without garbage and decoys: until each has opened the other's
    /// version packet.
    Handshake,
}

impl Once {
    pub(super) const ALL: [Once; 7] = [
        Once::Handshake,
        Once::Key,
        Once::Agree,
        Once::Ecdh,
        Once::Schedule,
        Once::Hkdf,
        Once::Expand,
    ];

    /// The case's word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Once::Key => "key",
            Once::Ecdh => "ecdh",
            Once::Expand => "expand",
            Once::Hkdf => "hkdf",
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

/// One operation for a connection, of what `prepare` has made of it before the clock starts.
struct Step<R, W> {
    prepare: fn(&Link) -> Result<R, CellError>,
    work: W,
    /// What it must give.
    expected: fn(&Link) -> Result<Answer, CellError>,
}

/// An operation on several connections in turn.
struct Several<R, W> {
    step: Rc<Step<R, W>>,
    links: Rc<Vec<Link>>,
    at: usize,
    ready: Vec<R>,
    answers: Vec<Answer>,
    expected: Vec<Answer>,
    failure: Option<CellError>,
}

impl<R, W> Several<R, W> {
    fn new(step: Rc<Step<R, W>>, links: Rc<Vec<Link>>) -> Result<Self, CellError> {
        let expected = links.iter().take(CHUNK * 4).map(step.expected);
        Ok(Several {
            expected: expected.collect::<Result<_, _>>()?,
            step,
            links,
            at: 0,
            ready: Vec::with_capacity(CHUNK),
            answers: Vec::with_capacity(CHUNK),
            failure: None,
        })
    }
}

impl<R, W: Fn(R) -> Result<Answer, CellError>> Chunk for Several<R, W> {
    fn reset(&mut self) {
        self.at = (self.at + CHUNK) % self.expected.len().max(1);
        self.answers.clear();
        self.ready.clear();
        for link in self.links.iter().skip(self.at).take(CHUNK) {
            match (self.step.prepare)(link) {
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
            self.answers.push((self.step.work)(ready)?);
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

/// Where an operation is measured.
pub(super) struct At<'a> {
    pub(super) case: Case,
    pub(super) subject: &'a str,
    pub(super) links: &'a Rc<Vec<Link>>,
}

impl At<'_> {
    /// A cell for an operation: `work` on what `prepare` has made, which must give what is `expected`.
    pub(super) fn cell<R: 'static, W>(
        self,
        prepare: fn(&Link) -> Result<R, CellError>,
        work: W,
        expected: fn(&Link) -> Result<Answer, CellError>,
    ) -> Cell
    where
        W: Fn(R) -> Result<Answer, CellError> + 'static,
    {
        let step = Step {
            prepare,
            work,
            expected,
        };
        let (step, links) = (Rc::new(step), Rc::clone(self.links));
        let make = move || Several::new(Rc::clone(&step), Rc::clone(&links));
        chunked(self.case, self.subject, make)
    }
}

/// Both secret keys.
pub(super) fn secrets(link: &Link) -> Result<[[u8; 32]; 2], CellError> {
    Ok(link.secrets)
}

/// The session id that the handshake's own derivation gave.
pub(super) fn session_id(link: &Link) -> Result<Answer, CellError> {
    Ok(answer(&link.session_id))
}

/// Both encodings and a secret key, as libsecp256k1 takes them.
pub(super) type Points = (ElligatorSwift, ElligatorSwift, SecretKey);

pub(super) fn points(link: &Link, secret: usize) -> Result<Points, CellError> {
    let [a, b] = link.encodings.map(ElligatorSwift::from_array);
    Ok((a, b, SecretKey::from_slice(&link.secrets[secret]).map_err(failed)?))
}

/// Our cells of an operation.
pub(super) fn own(once: Once, case: Case, links: &Rc<Vec<Link>>) -> Cell {
    let subject = Sealway::NAME;
    let at = At { case, subject, links };
    match once {
        Once::Key => at.cell(secrets, key, agreed_key),
        Once::Ecdh => at.cell(
            |link| points(link, 0),
            |points| Ok(shared(points, ElligatorSwiftParty::A)),
            // The other end's.
            |link| Ok(shared(points(link, 1)?, ElligatorSwiftParty::B)),
        ),
        Once::Expand => at.cell(|link| Ok(extract(&secret(link)?)), |prk| expand(&prk), session_id),
        Once::Hkdf => at.cell(secret, |secret| expand(&extract(&secret)), session_id),
        Once::Schedule => at.cell(
            secret,
            |secret| {
                let keys = SessionKeys::derive(&secret, MAGIC).map_err(failed)?;
                Ok(answer(&keys.session_id()))
            },
            session_id,
        ),
        Once::Agree => at.cell(
            |link| {
                let [theirs, own] = link.encodings;
                let key = LocalKey::with_encoding(&link.secrets[1], own).map_err(failed)?;
                Ok((key, theirs))
            },
            |(key, theirs)| {
                let keys = key.agree(&theirs, Role::Responder, MAGIC).map_err(failed)?;
                Ok(answer(&keys.session_id()))
            },
            // The connection's, which the other end derived.
            session_id,
        ),
        Once::Handshake => at.cell(secrets, handshake, by_steps),
    }
}

fn key([secret, auxiliary]: [[u8; 32]; 2]) -> Result<Answer, CellError> {
    Ok(*LocalKey::new(&secret, &auxiliary).map_err(failed)?.encoding())
}

/// An encoding has no other to be compared with, as our own is random; it is right if the other end agrees with it.
fn agreed_key(link: &Link) -> Result<Answer, CellError> {
    let [secret, theirs] = link.secrets;
    let encoding = key(link.secrets)?;
    let here = LocalKey::with_encoding(&secret, encoding).map_err(failed)?;
    let there = LocalKey::with_encoding(&theirs, link.encodings[1]).map_err(failed)?;
    let here = here.agree(&link.encodings[1], Role::Initiator, MAGIC).map_err(failed)?;
    let there = there.agree(&encoding, Role::Responder, MAGIC).map_err(failed)?;
    if here.session_id() == there.session_id() {
        return Ok(encoding);
    }
    Err(CellError::wrong("an encoding is not that of its key"))
}

/// A shared secret by libsecp256k1.
fn shared((a, b, secret): Points, party: ElligatorSwiftParty) -> Answer {
    let shared = ElligatorSwift::shared_secret(a, b, secret, party, None);
    answer(shared.as_secret_bytes())
}

/// The secret that both ends of a connection share.
fn secret(link: &Link) -> Result<[u8; 32], CellError> {
    let shared = shared(points(link, 0)?, ElligatorSwiftParty::A);
    shared.first_chunk().copied().ok_or_else(|| failed("no secret"))
}

/// What everything of a connection is expanded from.
fn extract(secret: &[u8; 32]) -> Prk {
    let mut salt = *b"bitcoin_v2_shared_secret....";
    salt[24..].copy_from_slice(&MAGIC.0);
    Prk::extract(Hash::Sha256, &salt, secret)
}

/// The session id, which is expanded as each of the keys is.
fn expand(prk: &Prk) -> Result<Answer, CellError> {
    let mut id = [0; 32];
    prk.expand_raw(b"session_id", &mut id).map_err(failed)?;
    Ok(answer(&id))
}

fn handshake([first, second]: [[u8; 32]; 2]) -> Result<Answer, CellError> {
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

/// What a handshake must give, by its steps.
fn by_steps(link: &Link) -> Result<Answer, CellError> {
    let [first, second] = link.secrets;
    let there = LocalKey::new(&second, &first).map_err(failed)?;
    let encoding = LocalKey::new(&first, &second).map_err(failed)?;
    let keys = there
        .agree(encoding.encoding(), Role::Responder, MAGIC)
        .map_err(failed)?;
    Ok(answer(&keys.session_id()))
}
