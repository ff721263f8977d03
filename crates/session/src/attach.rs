//! More connections of a session, in one round trip and without public-key work.
//!
//! Whoever dials sends a hello: a token that names the index, a nonce and a MAC. The other end answers with a nonce and a MAC.
//! Keys follow from the index and both nonces. Either end of a session may dial; that they do not take the same index at the
//! same time is the application's business, and the second is refused.

use std::fmt;

use subtle::ConstantTimeEq;

use crate::record::{RecvHalf, SendHalf};
pub use crate::session::slots::WINDOW;
use crate::session::{Session, Slot, mac};
use crate::terms::Role;
use crate::{Error, Zeroizing};

/// Length of a token.
pub const TOKEN_LEN: usize = 32;
/// Length of the dialler's hello: token, nonce, MAC.
pub const HELLO_LEN: usize = TOKEN_LEN + NONCE_LEN + MAC_LEN;
/// Length of the answer: nonce, MAC.
pub const ANSWER_LEN: usize = NONCE_LEN + MAC_LEN;

const NONCE_LEN: usize = 16;
const MAC_LEN: usize = 32;

const HELLO: &str = "sealway session attach hello";
const ANSWER: &str = "sealway session attach answer";

/// An extra connection.
#[derive(Debug)]
pub struct Attached {
    /// Its index.
    pub index: u32,
    /// What this end sends.
    pub send: SendHalf,
    /// What it receives.
    pub recv: RecvHalf,
}

/// The role of whoever dialled and both nonces: what MACs and keys are bound to, beside the secret of the index.
#[derive(Clone, Copy)]
struct Context {
    bytes: [u8; 1 + 2 * NONCE_LEN],
}

impl Context {
    /// What the hello is bound to: the first 17 bytes.
    fn new(dialler: Role, nonce: &[u8; NONCE_LEN]) -> Self {
        let mut bytes = [0; 1 + 2 * NONCE_LEN];
        bytes[0] = dialler.id();
        bytes[1..=NONCE_LEN].copy_from_slice(nonce);
        Context { bytes }
    }

    fn hello(&self) -> &[u8] {
        &self.bytes[..=NONCE_LEN]
    }

    /// With the nonce of the answer.
    fn answered(mut self, nonce: &[u8; NONCE_LEN]) -> Self {
        self.bytes[1 + NONCE_LEN..].copy_from_slice(nonce);
        self
    }

    fn whole(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes of a message of fixed length as they come.
struct Incoming<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Incoming<N> {
    const fn new() -> Self {
        Incoming { bytes: [0; N], have: 0 }
    }

    /// Takes what is missing; true once nothing is.
    fn take(&mut self, input: &[u8]) -> (usize, bool) {
        let used = input.len().min(N - self.have);
        self.bytes[self.have..self.have + used].copy_from_slice(&input[..used]);
        self.have += used;
        (used, self.have == N)
    }

    /// The `M` bytes from `start` on.
    fn part<const M: usize>(&self, start: usize) -> [u8; M] {
        let mut part = [0; M];
        part.copy_from_slice(&self.bytes[start..start + M]);
        part
    }
}

/// The end that dials.
pub struct AttachInitiator {
    session: Session,
    output: Option<Vec<u8>>,
    state: Dialled,
}

enum Dialled {
    Waiting {
        slot: Slot,
        context: Context,
        answer: Box<Incoming<ANSWER_LEN>>,
    },
    Done(Box<Attached>),
    Dead,
}

impl AttachInitiator {
    /// Takes an index, from 1 on, and 16 bytes of a cryptographic generator. The index is used from now on, whatever happens.
    ///
    /// # Errors
    /// [`Error::IndexTaken`].
    pub fn new(session: &Session, index: u32, random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        let slot = session.with_slots(|slots| slots.take(index))?;
        let mut nonce = [0; NONCE_LEN];
        random(&mut nonce);
        let context = Context::new(session.role(), &nonce);
        let mut hello = Vec::with_capacity(HELLO_LEN);
        hello.extend_from_slice(&slot.token);
        hello.extend_from_slice(&nonce);
        hello.extend_from_slice(&*mac(&slot.secret, HELLO, context.hello())?);
        Ok(AttachInitiator {
            session: session.clone(),
            output: Some(hello),
            state: Dialled::Waiting {
                slot,
                context,
                answer: Box::new(Incoming::new()),
            },
        })
    }

    /// The hello, once.
    pub fn write(&mut self) -> Option<Vec<u8>> {
        self.output.take()
    }

    /// Reads up to the end of the answer and says how much that was; what follows are records.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], and [`Error::Dead`] from then on.
    pub fn read(&mut self, input: &[u8]) -> Result<usize, Error> {
        let used = match &mut self.state {
            Dialled::Waiting { answer, .. } => match answer.take(input) {
                (used, false) => return Ok(used),
                (used, true) => used,
            },
            Dialled::Done(_) => return Ok(0),
            Dialled::Dead => return Err(Error::Dead),
        };
        if let Dialled::Waiting { slot, context, answer } = std::mem::replace(&mut self.state, Dialled::Dead) {
            let (nonce, theirs) = (answer.part(0), answer.part(NONCE_LEN));
            let context = context.answered(&nonce);
            check(&mac(&slot.secret, ANSWER, context.whole())?, &theirs)?;
            let index = slot.index;
            let (send, recv) = self.session.attach(slot, context.whole())?;
            self.state = Dialled::Done(Box::new(Attached { index, send, recv }));
        }
        Ok(used)
    }

    /// True once the connection may be used and nothing is left to be written.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, Dialled::Done(_)) && self.output.is_none()
    }

    /// The connection.
    ///
    /// # Errors
    /// [`Error::NotDone`] before [`AttachInitiator::is_done`].
    pub fn finish(self) -> Result<Attached, Error> {
        match (self.state, self.output) {
            (Dialled::Done(attached), None) => Ok(*attached),
            _ => Err(Error::NotDone),
        }
    }
}

/// The end that is dialled.
pub struct AttachResponder {
    session: Session,
    nonce: [u8; NONCE_LEN],
    output: Option<Vec<u8>>,
    state: Answered,
}

enum Answered {
    Waiting(Box<Incoming<HELLO_LEN>>),
    Done(Box<Attached>),
    Dead,
}

impl AttachResponder {
    /// Takes 16 bytes of a cryptographic generator.
    pub fn new(session: &Session, random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut nonce = [0; NONCE_LEN];
        random(&mut nonce);
        AttachResponder {
            session: session.clone(),
            nonce,
            output: None,
            state: Answered::Waiting(Box::new(Incoming::new())),
        }
    }

    /// Reads up to the end of the hello and says how much that was; what follows are records.
    ///
    /// # Errors
    /// [`Error::UnknownToken`] for a token of no open index, used ones included; [`Error::Unauthentic`] for a hello that the
    /// other end of the session did not make: the index stays open then. [`Error::Dead`] after either.
    pub fn read(&mut self, input: &[u8]) -> Result<usize, Error> {
        let used = match &mut self.state {
            Answered::Waiting(hello) => match hello.take(input) {
                (used, false) => return Ok(used),
                (used, true) => used,
            },
            Answered::Done(_) => return Ok(0),
            Answered::Dead => return Err(Error::Dead),
        };
        if let Answered::Waiting(hello) = std::mem::replace(&mut self.state, Answered::Dead) {
            let (token, nonce, theirs) = (
                hello.part::<TOKEN_LEN>(0),
                hello.part(TOKEN_LEN),
                hello.part(TOKEN_LEN + NONCE_LEN),
            );
            let context = Context::new(self.session.role().other(), &nonce);
            // In one go, so that of two equal hellos one at most is answered.
            let slot = self.session.with_slots(|slots| {
                let index = slots.find(&token)?.ok_or(Error::UnknownToken)?;
                check(&mac(&slots.get(index)?.secret, HELLO, context.hello())?, &theirs)?;
                slots.take(index)
            })?;
            let context = context.answered(&self.nonce);
            let mut answer = Vec::with_capacity(ANSWER_LEN);
            answer.extend_from_slice(&self.nonce);
            answer.extend_from_slice(&*mac(&slot.secret, ANSWER, context.whole())?);
            let index = slot.index;
            let (send, recv) = self.session.attach(slot, context.whole())?;
            self.output = Some(answer);
            self.state = Answered::Done(Box::new(Attached { index, send, recv }));
        }
        Ok(used)
    }

    /// The answer, once there is one.
    pub fn write(&mut self) -> Option<Vec<u8>> {
        self.output.take()
    }

    /// True once the connection may be used and nothing is left to be written.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, Answered::Done(_)) && self.output.is_none()
    }

    /// The connection.
    ///
    /// # Errors
    /// [`Error::NotDone`] before [`AttachResponder::is_done`].
    pub fn finish(self) -> Result<Attached, Error> {
        match (self.state, self.output) {
            (Answered::Done(attached), None) => Ok(*attached),
            _ => Err(Error::NotDone),
        }
    }
}

impl fmt::Debug for AttachInitiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachInitiator(done: {})", self.is_done())
    }
}

impl fmt::Debug for AttachResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachResponder(done: {})", self.is_done())
    }
}

fn check(ours: &Zeroizing<[u8; MAC_LEN]>, theirs: &[u8; MAC_LEN]) -> Result<(), Error> {
    if bool::from(ours.ct_eq(theirs)) {
        Ok(())
    } else {
        Err(Error::Unauthentic)
    }
}
