//! Bringing up a session over a stream that is connected.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_aead::Suite;
use sealway_aead::choose::Offer;
use sealway_session::handshake::{Auth, Config, Handshake, Kem, PeerKey, Refusal, Role, StaticKey};
use sealway_session::{CheckString, Session};
use zeroize::Zeroizing;

use super::connection::Connection;
use crate::Error;
use crate::cancel::Cancel;

/// Bound into every session of this program, so that a session of another one is never taken for it.
const PROLOGUE: &[u8] = b"sealway drop 1";

/// How long an end that is refused may take to hear it.
const PARTING: Duration = Duration::from_millis(500);

/// First byte of a connection that begins a session.
pub(super) const BEGIN: u8 = b'S';

/// First byte of a connection that joins a session.
pub(super) const JOIN: u8 = b'J';

/// First byte of a connection on which an end comes back that has lost its session.
pub(super) const AGAIN: u8 = b'R';

/// How long a handshake may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A moment by which something must be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub(super) fn after(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    /// Lets reads and writes on `stream` wait that long at most.
    pub(super) fn set(self, stream: &TcpStream) -> io::Result<()> {
        let left = self.0.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        stream.set_write_timeout(Some(left))
    }
}

/// Who this end is, and whom it wants to speak to.
#[derive(Clone)]
pub enum Identity {
    /// Both ends know the secret words of a code phrase.
    Code(Zeroizing<Vec<u8>>),
    /// Static keys.
    Keys {
        /// The secret key of this end.
        own: Zeroizing<[u8; 32]>,
        /// Keys the other end may have; `None`: whichever, and somebody compares the check words.
        peers: Option<Vec<[u8; 32]>>,
    },
}

/// How a session is brought up.
#[derive(Clone)]
pub struct Setup {
    /// Who the ends are.
    pub identity: Identity,
    /// Suites this end can do.
    pub offer: Offer,
    /// ML-KEM-1024 rather than 768.
    pub strong: bool,
}

impl Setup {
    /// The public key of this end, if it uses keys.
    fn own_key(&self) -> Option<[u8; 32]> {
        match &self.identity {
            Identity::Code(_) => None,
            Identity::Keys { own, .. } => Some(*StaticKey::from_bytes(own).public()),
        }
    }

    fn config(&self, role: Role) -> Config {
        let auth = match &self.identity {
            Identity::Code(code) => Auth::Code(code.clone()),
            Identity::Keys { own, peers } => Auth::Keys {
                own: StaticKey::from_bytes(own),
                peer: match peers.as_deref() {
                    None => PeerKey::Unknown,
                    Some([one]) => PeerKey::Pinned(*one),
                    Some(some) => PeerKey::OneOf(some.to_vec()),
                },
            },
        };
        let kem = if self.strong { Kem::MlKem1024 } else { Kem::MlKem768 };
        Config {
            role,
            auth,
            offer: self.offer.clone(),
            kem,
            prologue: PROLOGUE.to_vec(),
        }
    }
}

/// A session that stands.
pub struct Peered {
    /// Its first connection.
    pub connection: Connection,
    /// The secrets of it.
    pub session: Arc<Session>,
    /// What both ends seal with.
    pub suite: Suite,
    /// Static key of the other end, if keys were used.
    pub peer_key: Option<[u8; 32]>,
    /// Words that are the same at both ends, unless somebody sits between them.
    pub check: CheckString,
}

/// The byte that says what a connection is for.
pub(super) fn send_byte(stream: &mut TcpStream, byte: u8) -> Result<(), Error> {
    use std::io::Write;
    stream.write_all(&[byte]).map_err(Error::network("the handshake"))
}

/// Hands random bytes of the system to `make`.
pub(super) fn with_random<T>(make: impl FnOnce(&mut dyn FnMut(&mut [u8])) -> T) -> Result<T, Error> {
    let mut failed = None;
    let made = make(&mut |bytes| {
        if let Err(error) = getrandom::fill(bytes) {
            failed = Some(error);
        }
    });
    match failed {
        None => Ok(made),
        Some(error) => Err(Error::Usage(format!("the system gives no random bytes: {error}"))),
    }
}

/// Where a handshake may find that another one has the turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Moment {
    /// All of what the initiator says first has come, and nothing of it was looked at.
    Asked,
    /// The other end has said something, and nothing of it was looked at.
    Answered,
    /// The initiator has accepted the other end, and has not yet said so.
    Accepted,
    /// This end refuses the other one and is about to tell it why, which may take a moment. Nobody need wait for that.
    Refused,
}

/// Carries out the handshake, for as long as `go_on` says yes.
///
/// # Errors
/// [`Error::CodeSpent`] if the one guess at a code was used and wrong; what the session refuses; [`Error::Network`].
pub(super) fn handshake(
    mut stream: TcpStream,
    setup: &Setup,
    role: Role,
    deadline: Deadline,
    cancel: &Cancel,
    go_on: &dyn Fn(Moment) -> bool,
) -> Result<Peered, Error> {
    let watch = cancel.watch(&stream);
    let mut handshake = with_random(|random| Handshake::new(setup.config(role), random))??;
    let result = exchange(&mut stream, &mut handshake, role, deadline, go_on);
    let own = setup.own_key();
    let leftover = match result {
        Ok(leftover) => leftover,
        Err(_) if cancel.is_set() => return Err(Error::Cancelled),
        Err(_) if handshake.guess_spent() => return Err(Error::CodeSpent),
        Err(Error::Session(error)) => {
            if let Some(refusal) = Refusal::of(&error) {
                let _ = go_on(Moment::Refused);
                part(&mut stream, refusal);
            }
            return Err(Error::of_session(error, own));
        }
        Err(error) => return Err(error),
    };
    let done = handshake.finish()?;
    stream.set_read_timeout(None).map_err(Error::network("the handshake"))?;
    stream
        .set_write_timeout(None)
        .map_err(Error::network("the handshake"))?;
    Ok(Peered {
        connection: Connection::new(0, (stream, watch), done.send, done.recv, &leftover)?.known_by(own),
        session: Arc::new(done.session),
        suite: done.suite,
        peer_key: done.peer_key,
        check: done.check,
    })
}

fn exchange(
    stream: &mut TcpStream,
    handshake: &mut Handshake,
    role: Role,
    deadline: Deadline,
    go_on: &dyn Fn(Moment) -> bool,
) -> Result<Vec<u8>, Error> {
    let mut buffer = [0; 4096];
    let (mut written, mut answered, mut asked) = (0, false, role == Role::Initiator);
    loop {
        if let Some(flight) = handshake.write() {
            written += 1;
            // Only the initiator has a second flight.
            if written == 2 && !go_on(Moment::Accepted) {
                return Err(Error::Cancelled);
            }
            deadline.set(stream).map_err(Error::network("the handshake"))?;
            stream.write_all(&flight).map_err(Error::network("the handshake"))?;
        }
        if handshake.is_done() {
            return Ok(Vec::new());
        }
        deadline.set(stream).map_err(Error::network("the handshake"))?;
        let read = match stream.read(&mut buffer) {
            Ok(0) => {
                return Err(handshake
                    .refusal()
                    .map_or_else(|| ended(answered), |refusal| refusal_of(refusal).into()));
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answered => return Err(ended(false)),
            Err(source) => return Err(Error::network("the handshake")(source)),
        };
        if !std::mem::replace(&mut answered, true) && !go_on(Moment::Answered) {
            return Err(Error::Cancelled);
        }
        // What does not even begin as it should waits for no turn.
        let came = &buffer[..read];
        if !asked && handshake.begins(came) && handshake.completes(came) {
            asked = true;
            if !go_on(Moment::Asked) {
                return Err(Error::Cancelled);
            }
        }
        let used = handshake.read(&buffer[..read])?;
        if handshake.is_done() {
            return Ok(buffer[used..read].to_vec());
        }
        if used < read {
            return Err(Error::Protocol("more than a handshake has"));
        }
    }
}

/// Says why this end refuses, for the person at the other one.
fn part(stream: &mut TcpStream, refusal: Refusal) {
    let deadline = Deadline::after(PARTING);
    let said = deadline.set(stream).and_then(|()| stream.write_all(&refusal.encode()));
    // Were it closed with something unread, what was said last would be lost.
    if said.and_then(|()| stream.shutdown(Shutdown::Write)).is_ok() {
        let mut rest = [0; 1024];
        while deadline.set(stream).is_ok() && matches!(stream.read(&mut rest), Ok(1..)) {}
    }
}

fn refusal_of(refusal: Refusal) -> sealway_session::Error {
    sealway_session::Error::Refused(refusal)
}

/// The end of a connection. Before anything was answered it is [`ConnectionAborted`](io::ErrorKind::ConnectionAborted): that end was
/// full, or somebody else's.
fn ended(answered: bool) -> Error {
    Error::Network {
        doing: "the handshake".into(),
        source: match answered {
            true => io::ErrorKind::UnexpectedEof,
            false => io::ErrorKind::ConnectionAborted,
        }
        .into(),
    }
}
