//! The server's side of a handshake of TLS 1.3.
//!
//! Two ways begin alike and end alike:
//!
//! - A plain server is a [`Server`]: bytes of the client go in, bytes for it come out, until there are [`Records`].
//! - A server of REALITY has read the client's hello itself, and knows what the flight of the site that it stands for looks like: a
//!   [`Shape`]. [`answer_in_shape`] gives its own flight, which looks the same from outside, and [`AwaitFinished`] waits for the rest.
//!
//! Who the server is, an [`Identity`] says: it has the certificates and signs with their key.
//!
//! There is no resumption, no early data and no client certificate: what a client offers of these is passed over.

mod await_finished;
mod await_hello;
mod ed25519;
mod flight;
mod shape;

use std::sync::Arc;

pub use await_finished::AwaitFinished;
pub use await_hello::AwaitHello;
pub use ed25519::{ED25519, Ed25519};
pub use shape::{Lengths, Shape, answer_in_shape};

use crate::codec::{ClientHello, Numbers, record};
use crate::error::Error;
use crate::group::Group;
use crate::records::Records;
use crate::schedule::KeyLog;
use crate::suite::CipherSuite;

/// Most records with a change_cipher_spec, which mean nothing in TLS 1.3, that a plain server drops.
pub const MAX_CHANGES: u32 = 32;

/// Who the server is.
pub trait Identity: Send + Sync {
    /// The certificates to show this client, its own first, as DER. `server_hello` is the whole message that goes before them.
    ///
    /// # Errors
    /// Whatever keeps it from having any; [`Error::Peer`] with the alert for the client, such as
    /// [`Alert::UnrecognizedName`](crate::Alert::UnrecognizedName).
    fn certificates(&self, client: &ClientHello<'_>, server_hello: &[u8]) -> Result<Vec<Vec<u8>>, Error>;

    /// Signs `content` with the key of the first certificate: the number of the scheme and the signature. `offered` are the schemes
    /// that the client takes.
    ///
    /// # Errors
    /// [`Error::Peer`] with [`Alert::HandshakeFailure`](crate::Alert::HandshakeFailure) if the client takes none that the key can
    /// do; [`Error::Library`] if it could not be done.
    fn sign(&self, offered: Numbers<'_>, content: &[u8]) -> Result<(u16, Vec<u8>), Error>;
}

/// What a plain server agrees to.
#[derive(Clone)]
pub struct Config {
    /// Who it is.
    pub identity: Arc<dyn Identity>,
    /// Suites, the one it likes best first.
    pub suites: Vec<CipherSuite>,
    /// Groups, the one it likes best first. The first of which the client has sent a share is taken; a client that has sent none is
    /// asked for one.
    pub groups: Vec<Group>,
    /// Application protocols, the one it likes best first. Without any, what a client offers is passed over; otherwise a client that
    /// offers others only is refused.
    pub alpn: Vec<Vec<u8>>,
    /// Where secrets are written to. Usually nowhere.
    pub key_log: Option<Arc<dyn KeyLog>>,
}

impl Config {
    /// With every suite and group, no application protocol and no key log.
    pub fn new(identity: Arc<dyn Identity>) -> Config {
        Config {
            identity,
            suites: CipherSuite::ALL.to_vec(),
            groups: Group::ALL.to_vec(),
            alpn: Vec::new(),
            key_log: None,
        }
    }
}

/// What was agreed on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Agreed {
    /// The suite.
    pub suite: CipherSuite,
    /// The group.
    pub group: Group,
    /// The application protocol, if there is one.
    pub alpn: Option<Vec<u8>>,
    /// The name that the client asked for, as it came.
    pub server_name: Option<Vec<u8>>,
}

/// A connection whose handshake is through.
pub struct Connected {
    /// Its record layer.
    pub records: Records,
    /// What was agreed on.
    pub agreed: Agreed,
}

enum State {
    Hello(Box<AwaitHello>),
    Finished(Box<AwaitFinished>),
    Done(Box<Connected>),
    Dead,
}

/// A plain server: both of its states, one after the other.
pub struct Server {
    config: Arc<Config>,
    state: State,
}

const DEAD: Error = Error::Given("a handshake that has failed already");

impl Server {
    /// For one connection.
    pub fn new(config: Arc<Config>) -> Self {
        Server {
            config,
            state: State::Hello(Box::default()),
        }
    }

    /// Reads what the client has sent, opens it in place, and appends to `out` what is to be sent to it. Returns the bytes of the
    /// input that are done with; the rest is to be given again with what follows it. Once [`Server::is_done`], nothing more is read.
    ///
    /// # Errors
    /// Whatever is wrong, and then never anything else. `out` has the alert that the client is owed.
    pub fn read(
        &mut self,
        input: &mut [u8],
        random: &mut dyn FnMut(&mut [u8]),
        out: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let rest = input.get_mut(used..).unwrap_or_default();
            let step = match &mut self.state {
                State::Hello(state) => state
                    .read(&self.config, rest, random, out)
                    .map(|(took, next)| (took, next.map(|next| State::Finished(Box::new(next))))),
                State::Finished(state) => state
                    .read(rest, out)
                    .map(|(took, next)| (took, next.map(|next| State::Done(Box::new(next))))),
                State::Done(_) => return Ok(used),
                State::Dead => return Err(DEAD),
            };
            let (took, next) = step.inspect_err(|error| {
                if let (State::Hello(_), Some(alert)) = (&self.state, error.alert()) {
                    record::write(out, record::ALERT, 3, &alert.message());
                }
                self.state = State::Dead;
            })?;
            used += took;
            match next {
                Some(next) => self.state = next,
                None => return Ok(used),
            }
        }
    }

    /// True if the handshake is through.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    /// The connection.
    ///
    /// # Errors
    /// [`Error::Given`] if the handshake is not through.
    pub fn finish(self) -> Result<Connected, Error> {
        match self.state {
            State::Done(connected) => Ok(*connected),
            State::Dead => Err(DEAD),
            _ => Err(Error::Given("a handshake that is not through")),
        }
    }
}

#[cfg(test)]
mod tests;
