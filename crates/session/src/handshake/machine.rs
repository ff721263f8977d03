//! The handshake as a machine driven by bytes.

use std::fmt;

use super::flight::{FIRST_PREFIX, First, MAGIC_INITIATOR, MAGIC_RESPONDER, SECOND_PREFIX, Second, third_len};
use super::step::{Answered, Initiator, Responder};
use super::{Config, Established, Mode, Role};
use crate::Error;
use crate::refusal::{MAGIC_REFUSAL, Refusal};

/// One end of a handshake: give it what came, send what it writes, until both ends are done.
///
/// The caller bounds the time. When anything fails, the connection is closed, without a word but for a [`Refusal`].
pub struct Handshake {
    role: Role,
    mode: Mode,
    state: State,
    /// What has come of the flight that is awaited.
    input: Vec<u8>,
    output: Option<Vec<u8>>,
    guess_spent: bool,
}

enum State {
    AwaitFirst(Box<Responder>),
    AwaitSecond(Box<Initiator>),
    AwaitThird(Box<Answered>),
    Done(Box<Established>),
    Dead,
}

impl Handshake {
    /// Starts. `random` fills its argument from a cryptographic generator; it is called now and never again.
    ///
    /// # Errors
    /// [`Error::EmptyCode`]; [`Error::Aead`] if memory ran out.
    pub fn new(config: Config, random: &mut dyn FnMut(&mut [u8])) -> Result<Self, Error> {
        let (role, mode) = (config.role, config.auth.mode());
        let (state, output) = match role {
            Role::Initiator => {
                let (initiator, flight) = Initiator::start(config, random)?;
                (State::AwaitSecond(Box::new(initiator)), Some(flight))
            }
            Role::Responder => (State::AwaitFirst(Box::new(Responder::start(config, random)?)), None),
        };
        Ok(Handshake {
            role,
            mode,
            state,
            input: Vec::new(),
            output,
            guess_spent: false,
        })
    }

    /// Reads up to the end of the flight that is awaited and says how much that was; the bytes after it are for the next call
    /// or, once this end is done, records. Any cut of the input is as good as any other.
    ///
    /// # Errors
    /// [`Error::OtherProtocol`], [`Error::Malformed`], [`Error::OtherMode`], [`Error::WeakKem`], [`Error::Suites`],
    /// [`Error::OtherSuite`], [`Error::UnknownPeer`], [`Error::Refused`], [`Error::Unauthentic`]: it has failed, and [`Error::Dead`] is all it says
    /// from then on.
    pub fn read(&mut self, input: &[u8]) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            // Looked at again whenever more has come: it checks the prefix, and knows more once that is whole.
            let need = match self.expected(&self.input) {
                Ok(Some(need)) => need,
                Ok(None) => return Ok(used),
                Err(error) => return Err(self.fail(error)),
            };
            let missing = need.saturating_sub(self.input.len());
            if missing == 0 {
                let flight = std::mem::take(&mut self.input);
                self.step(&flight).map_err(|error| self.fail(error))?;
                return Ok(used);
            }
            if used == input.len() {
                return Ok(used);
            }
            let take = missing.min(input.len() - used);
            self.input.extend_from_slice(&input[used..used + take]);
            used += take;
        }
    }

    /// Whether with `input` all of the flight that is awaited has come, so that [`Handshake::read`] would act on it. A responder that
    /// was told a code phrase can wait here for its turn: nothing was looked at, and no guess is spent. Also true where reading it
    /// would fail.
    pub fn completes(&self, input: &[u8]) -> bool {
        let have = [&self.input[..], input].concat();
        // A flight is longer than its prefix, so once that is whole this is the length of all.
        match self.expected(&have) {
            Ok(need) => need.is_some_and(|need| have.len() >= need),
            Err(_) => true,
        }
    }

    /// Whether with `input` what has come is how a flight begins that this end can read. It looks at the prefix only; a caller who
    /// finds it wrong lets [`Handshake::read`] say so, and keeps nobody waiting for that.
    pub fn begins(&self, input: &[u8]) -> bool {
        self.expected(&[&self.input[..], input].concat()).is_ok()
    }

    /// What an end that has closed the connection said of why, in place of the flight that was awaited.
    pub fn refusal(&self) -> Option<Refusal> {
        Refusal::parse(&self.input)
    }

    /// Length of what is to come next if that begins with `have`, as far as that is known: of the prefix of a flight, then of all of it.
    /// Checks what has come of the prefix.
    fn expected(&self, have: &[u8]) -> Result<Option<usize>, Error> {
        let begins = |magic: [u8; 4]| have.iter().zip(magic).all(|(&a, b)| a == b);
        let starts = |magic: [u8; 4]| {
            if begins(magic) {
                Ok(())
            } else {
                Err(Error::OtherProtocol)
            }
        };
        match &self.state {
            State::AwaitFirst(responder) => {
                starts(MAGIC_INITIATOR)?;
                have.first_chunk::<FIRST_PREFIX>().map_or(Ok(FIRST_PREFIX), |prefix| {
                    First::length(prefix, responder.mode(), responder.weakest())
                })
            }
            // Beyond the bytes that both have in common.
            State::AwaitSecond(_) if have.len() > 2 && begins(MAGIC_REFUSAL) => Ok(Refusal::LEN),
            State::AwaitSecond(initiator) => {
                starts(MAGIC_RESPONDER)?;
                have.first_chunk::<SECOND_PREFIX>().map_or(Ok(SECOND_PREFIX), |prefix| {
                    Second::length(prefix, initiator.mode(), initiator.kem())
                })
            }
            State::AwaitThird(answered) => Ok(third_len(answered.mode())),
            State::Done(_) => return Ok(None),
            State::Dead => return Err(Error::Dead),
        }
        .map(Some)
    }

    /// Takes a whole flight.
    fn step(&mut self, flight: &[u8]) -> Result<(), Error> {
        if let (State::AwaitSecond(_), true) = (&self.state, flight.starts_with(&MAGIC_REFUSAL)) {
            return Err(Refusal::parse(flight).map_or(Error::OtherProtocol, Error::Refused));
        }
        match std::mem::replace(&mut self.state, State::Dead) {
            State::AwaitFirst(responder) => {
                let (answer, answered) = responder.first(flight)?;
                self.output = Some(answer);
                // The confirmation in it tells whoever asked whether the code they used is the right one.
                self.guess_spent = self.mode == Mode::Code;
                self.state = State::AwaitThird(Box::new(answered));
            }
            State::AwaitSecond(initiator) => match initiator.second(flight) {
                Ok((answer, established)) => {
                    self.output = Some(answer);
                    self.state = State::Done(established);
                }
                Err(error) => {
                    // With a code phrase this is a wrong confirmation and nothing else; that we go away says so.
                    self.guess_spent = self.mode == Mode::Code && error == Error::Unauthentic;
                    return Err(error);
                }
            },
            State::AwaitThird(answered) => {
                self.state = State::Done(answered.third(flight)?);
                self.guess_spent = false;
            }
            state @ (State::Done(_) | State::Dead) => self.state = state,
        }
        Ok(())
    }

    /// Ends it: secrets are wiped, and nothing is left to be sent.
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Dead;
        self.input = Vec::new();
        self.output = None;
        error
    }

    /// The next flight to send, once.
    pub fn write(&mut self) -> Option<Vec<u8>> {
        self.output.take()
    }

    /// True once this end has read and written all it has to.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_)) && self.output.is_none()
    }

    /// True if somebody may have tried a code phrase on this end and it did not end well: a responder from the moment it has
    /// a flight to answer with until the other end has proved that it knows the code, an initiator if the responder did not.
    ///
    /// The code must not be used again then: each use is one more guess. Bytes that are no handshake spend nothing. Always
    /// false with keys.
    pub const fn guess_spent(&self) -> bool {
        self.guess_spent
    }

    /// This end's role.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What was agreed on.
    ///
    /// # Errors
    /// [`Error::NotDone`] before [`Handshake::is_done`], [`Error::Dead`] after an error.
    pub fn finish(self) -> Result<Established, Error> {
        match (self.state, self.output) {
            (State::Done(established), None) => Ok(*established),
            (State::Dead, _) => Err(Error::Dead),
            _ => Err(Error::NotDone),
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("role", &self.role)
            .field("mode", &self.mode)
            .field("done", &self.is_done())
            .field("guess_spent", &self.guess_spent)
            .finish_non_exhaustive()
    }
}
