//! The client's side of a handshake (RFC 8446 section 2), driven by bytes.
//!
//! [`Client::start`] gives the first bytes to send. From then on what comes is shown to [`Client::receive`], and what
//! [`Client::take_output`] has is sent, until [`Client::finish`] gives the secrets of the connection. Each state of the handshake is a
//! type that its message uses up, so that no message is taken twice or out of order.
//!
//! Who the server is, is judged by a [`Judge`]. What this end does not do: resumption, early data, certificates of its own (a server
//! that asks for one gets an empty answer).

mod hello;
mod states;

use std::sync::Arc;

use crate::codec::{Joiner, MAX_FLIGHT, MAX_HELLO, MAX_MESSAGE, record};
use crate::error::{Alert, Error, unexpected};
use crate::group::Group;
use crate::records::{Opening, Sealing, Version};
use crate::schedule::{KeyLog, Secrets};
use crate::suite::CipherSuite;

pub(crate) use hello::key_share;
pub use hello::{Hello, Offer};

use states::{Next, State};

/// Records `change_cipher_spec` that a server may send, which mean nothing (RFC 8446 appendix D.4).
pub const MAX_CHANGES: u32 = 32;

/// What a server showed of itself.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its certificates, DER, its own first. Never empty.
    pub chain: &'a [&'a [u8]],
    /// The ClientHello that was answered, the whole message.
    pub client_hello: &'a [u8],
    /// The ServerHello, the whole message.
    pub server_hello: &'a [u8],
}

/// Who decides whether a server is the right one.
pub trait Judge {
    /// Judges a chain of certificates.
    ///
    /// # Errors
    /// [`Error::Certificate`] if it is not accepted.
    fn certificate(&mut self, shown: &Shown<'_>) -> Result<(), Error>;

    /// Judges a signature of the key of the first certificate over `message`.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is not that, or if the scheme is unknown.
    fn signature(&mut self, certificate: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> Result<(), Error>;

    /// Whether a signature of this scheme is taken although the hello does not offer it.
    fn takes(&self, _scheme: u16) -> bool {
        false
    }
}

/// A handshake on its way.
pub struct Client<J> {
    /// `None` after a failure.
    state: Option<State>,
    judge: J,
    joiner: Joiner,
    /// The server's records, once they are sealed.
    opening: Option<Opening>,
    /// Ours, from our Finished on, and for alerts.
    sealing: Option<Sealing>,
    out: Vec<u8>,
    changes: u32,
    failed: bool,
    /// The record `change_cipher_spec` has gone out.
    changed: bool,
    retried: bool,
    log: Option<Arc<dyn KeyLog>>,
    done: Option<Done>,
}

/// What came of the handshake.
struct Done {
    secrets: Secrets,
    suite: CipherSuite,
    group: Group,
    alpn: Option<Vec<u8>>,
}

/// A handshake that is through.
pub struct Finished<J> {
    /// The secrets of the records that follow, both ways.
    pub secrets: Secrets,
    /// The suite.
    pub suite: CipherSuite,
    /// The group that was agreed in.
    pub group: Group,
    /// The application protocol, if the server chose one.
    pub alpn: Option<Vec<u8>>,
    /// Who judged.
    pub judge: J,
}

impl<J: Judge> Client<J> {
    /// Begins: the hello is to be sent.
    ///
    /// # Errors
    /// [`Error::Given`] for a hello with a field that is longer than fits, or that is longer than [`MAX_HELLO`].
    pub fn start(hello: Hello, judge: J, log: Option<Arc<dyn KeyLog>>) -> Result<Self, Error> {
        let message = hello.to_bytes()?;
        if message.len() > MAX_HELLO {
            return Err(Error::Given("a hello that is too long"));
        }
        let mut out = Vec::with_capacity(message.len() + record::HEAD);
        // What a first hello says of its version is that of TLS 1.0, as of all clients.
        record::write(&mut out, record::HANDSHAKE, 1, &message);
        Ok(Client {
            state: Some(State::begin(hello, message)),
            judge,
            joiner: Joiner::new(MAX_HELLO, 2 * MAX_HELLO),
            opening: None,
            sealing: None,
            out,
            changes: 0,
            failed: false,
            changed: false,
            retried: false,
            log,
            done: None,
        })
    }

    /// What is to be sent now.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// True if the handshake is through; what has come and was not taken belongs to the connection.
    pub fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// True if the server has asked for another hello.
    pub fn was_asked_again(&self) -> bool {
        self.retried
    }

    /// Takes what has come: whole records, as far as the handshake goes. Returns how many bytes were taken; those of a record that is
    /// not whole are to be shown again. `random` is asked for nothing but the key of a second hello.
    ///
    /// # Errors
    /// What the server did wrong, or the [`Judge`] said. The handshake is over then, and [`Client::take_output`] has the alert.
    pub fn receive(&mut self, input: &mut [u8], random: &mut dyn FnMut(&mut [u8])) -> Result<usize, Error> {
        if self.failed {
            return Err(Error::Given("a handshake that has failed goes on"));
        }
        let mut at = 0;
        while self.done.is_none() {
            match self.one(&mut input[at..], random) {
                Ok(0) => break,
                Ok(taken) => at += taken,
                Err(error) => {
                    self.give_up(&error);
                    return Err(error);
                }
            }
        }
        Ok(at)
    }

    /// The end of the handshake. `None`: it is not through.
    pub fn finish(self) -> Option<Finished<J>> {
        let done = self.done?;
        Some(Finished {
            secrets: done.secrets,
            suite: done.suite,
            group: done.group,
            alpn: done.alpn,
            judge: self.judge,
        })
    }

    /// Who judged, whatever came of it.
    pub fn into_judge(self) -> J {
        self.judge
    }

    /// Tells the server why it is over.
    fn give_up(&mut self, error: &Error) {
        (self.state, self.failed) = (None, true);
        let Some(alert) = error.alert() else { return };
        match &mut self.sealing {
            Some(sealing) => drop(sealing.push(record::ALERT, &alert.message(), &mut self.out)),
            None => record::write(&mut self.out, record::ALERT, 3, &alert.message()),
        }
    }

    /// Takes one record. `Ok(0)`: it is not whole.
    fn one(&mut self, input: &mut [u8], random: &mut dyn FnMut(&mut [u8])) -> Result<usize, Error> {
        let Some((head, rest)) = input.split_first_chunk_mut::<{ record::HEAD }>() else {
            return Ok(0);
        };
        let (kind, length) = record::length(head)?;
        let Some(content) = rest.get_mut(..length) else {
            return Ok(0);
        };
        match (kind, &mut self.opening) {
            (record::CHANGE_CIPHER_SPEC, _) => {
                self.changes += 1;
                if *content != [1] || self.changes > MAX_CHANGES || !self.joiner.is_between() {
                    return Err(unexpected("a change_cipher_spec that means something"));
                }
            }
            // Nobody vouches for it; but whoever can forge it can also cut the connection. Once there are keys it has to be sealed.
            (record::ALERT, None) => return Err(alerted(content)),
            (record::HANDSHAKE, None) => {
                self.joiner.push(content)?;
                self.messages(random)?;
            }
            (record::APPLICATION, Some(opening)) => {
                let (kind, plain) = opening.open(head, content)?;
                let plain = &content[plain];
                match kind {
                    record::HANDSHAKE if !plain.is_empty() => {
                        self.joiner.push(plain)?;
                        self.messages(random)?;
                    }
                    record::ALERT => return Err(alerted(plain)),
                    record::HANDSHAKE => return Err(unexpected("a record without content")),
                    _ => return Err(unexpected("a record before Finished that is not of the handshake")),
                }
            }
            _ => return Err(unexpected("a record that has no place in the handshake")),
        }
        Ok(record::HEAD + length)
    }

    /// Takes the messages that are whole.
    fn messages(&mut self, random: &mut dyn FnMut(&mut [u8])) -> Result<(), Error> {
        while self.done.is_none() {
            let Some(message) = self.joiner.next_message()? else {
                break;
            };
            let state = self
                .state
                .take()
                .ok_or(Error::Given("a handshake that has failed goes on"))?;
            let log = self.log.as_deref();
            let next = state.take(message, &mut self.judge, log, random)?;
            self.go_on(next)?;
        }
        Ok(())
    }

    fn go_on(&mut self, next: Next) -> Result<(), Error> {
        match next {
            Next::Wait(state) => self.state = Some(state),
            Next::Retry { state, hello } => {
                self.between()?;
                self.change_once();
                record::write(&mut self.out, record::HANDSHAKE, 3, &hello);
                (self.state, self.retried) = (Some(state), true);
            }
            Next::Sealed { state, secrets } => {
                self.between()?;
                self.joiner.limit(MAX_MESSAGE, MAX_FLIGHT);
                self.opening = Some(Opening::new(Version::Tls13, &secrets.1)?);
                self.sealing = Some(Sealing::new(Version::Tls13, &secrets.0)?);
                self.state = Some(state);
            }
            Next::Done { flight, done } => {
                self.between()?;
                self.change_once();
                let sealing = self
                    .sealing
                    .as_mut()
                    .ok_or(Error::Given("a Finished before there are keys"))?;
                sealing.push(record::HANDSHAKE, &flight, &mut self.out)?;
                self.done = Some(done);
            }
        }
        Ok(())
    }

    /// Where keys change, no message may be cut (RFC 8446 section 5.1).
    fn between(&self) -> Result<(), Error> {
        match self.joiner.is_between() {
            true => Ok(()),
            false => Err(unexpected("a message that goes on where the keys change")),
        }
    }

    /// The record that makes it look like TLS 1.2, once (RFC 8446 appendix D.4).
    fn change_once(&mut self) {
        if !self.changed {
            record::write(&mut self.out, record::CHANGE_CIPHER_SPEC, 3, &[1]);
            self.changed = true;
        }
    }
}

fn alerted(content: &[u8]) -> Error {
    match content {
        [_, description] => Error::Alerted(*description),
        _ => Error::peer(Alert::DecodeError, "an alert of a wrong length"),
    }
}

#[cfg(test)]
mod tests;
