//! A client's session, both ways.

use std::collections::VecDeque;
use std::ops::Range;

use super::open::{answer_session, open_answer};
use super::{PacketSealer, SessionKey};
use crate::shadowsocks::key::BlockCipher;
use crate::shadowsocks::stream::malformed;
use crate::shadowsocks::{Key, KeyChain, Window};
use crate::{Destination, Error, Protocol};

/// Sessions of the server that answers are taken from: the latest one, and the one before it, for the server may have been
/// started again.
const SERVERS: usize = 2;
/// Sessions of the server that are known to be over. What they said could come again while its time is good.
const OVER: usize = 64;

/// A client's session: seals what is sent, and opens what the server answers.
pub struct ClientSession {
    sealer: PacketSealer,
    key: Key,
    block: Option<BlockCipher>,
    /// Those of the server, the latest one last.
    servers: Vec<Server>,
    /// Those that made room for later ones, the latest last.
    over: VecDeque<u64>,
}

struct Server {
    session: u64,
    key: SessionKey,
    window: Window,
}

impl ClientSession {
    /// A session. `session` is a random number.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn new(keys: &KeyChain, session: u64) -> Result<Self, Error> {
        let key = keys.own().clone();
        Ok(ClientSession {
            sealer: PacketSealer::client(keys, session)?,
            block: key.method().has_identities().then(|| key.block_cipher()),
            key,
            servers: Vec::new(),
            over: VecDeque::new(),
        })
    }

    /// How many sessions of the server are kept.
    #[cfg(test)]
    pub(in crate::shadowsocks) fn servers_len(&self) -> usize {
        self.servers.len()
    }

    /// What seals.
    pub const fn sealer(&self) -> &PacketSealer {
        &self.sealer
    }

    /// Opens an answer in place. Returns whom it comes from, and where the payload lies.
    ///
    /// # Errors
    /// As [`super::Front::open`], and [`Error::Replayed`] for a number that came before; [`Error::Malformed`] for an answer to
    /// another session, or of one of the server that is over.
    pub fn open(&mut self, datagram: &mut [u8], now: i64) -> Result<(Destination, Range<usize>), Error> {
        let shown = answer_session(datagram, self.block.as_ref())?;
        // Where sessions do not show, all have one key.
        let known = match shown {
            Some(session) => self.servers.iter().position(|server| server.session == session),
            None => self.servers.len().checked_sub(1),
        };
        let fresh = match known {
            Some(_) => None,
            None => Some(SessionKey::new(&self.key, shown.unwrap_or_default())?),
        };
        let key = match (&fresh, known) {
            (None, Some(at)) => &self.servers[at].key,
            (Some(fresh), _) => fresh,
            (None, None) => return Err(malformed("an answer of no session")),
        };
        let packet = open_answer(key, self.block.as_ref(), datagram, now)?;
        if packet.client != Some(self.sealer.session()) {
            return Err(malformed("an answer to another session"));
        }
        let at = match self.servers.iter().position(|server| server.session == packet.session) {
            Some(at) => at,
            None if self.over.contains(&packet.session) => {
                return Err(malformed("an answer of a session of the server that is over"));
            }
            None => {
                if self.servers.len() >= SERVERS {
                    if self.over.len() >= OVER {
                        self.over.pop_front();
                    }
                    self.over.push_back(self.servers.remove(0).session);
                }
                self.servers.push(Server {
                    session: packet.session,
                    key: match fresh {
                        Some(key) => key,
                        None => SessionKey::new(&self.key, packet.session)?,
                    },
                    window: Window::default(),
                });
                self.servers.len() - 1
            }
        };
        if !self.servers[at].window.take(packet.packet) {
            return Err(Protocol::Shadowsocks.replayed());
        }
        Ok((packet.peer, packet.payload))
    }
}

impl std::fmt::Debug for ClientSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientSession")
            .field("sealer", &self.sealer)
            .finish_non_exhaustive()
    }
}
