//! Who is let in: from the first bytes of a connection to a client that has the key, or to the reason why not.

use std::fmt;

use super::AuthKey;
use super::session_id::{self, Claim, Refusal, Terms};
use crate::codec::record::{HANDSHAKE, HEAD};
use crate::codec::{ClientHello, Joiner, Kind, MAX_HELLO, Message};
use crate::group::{Group, X25519Secret};

/// Most bytes of a connection that are looked at for a hello: the longest one, in records that are not all tiny.
pub const MAX_SEEN: usize = 2 * MAX_HELLO;

/// What the first bytes of a connection are.
#[derive(Debug, Eq, PartialEq)]
pub enum Heard {
    /// Not known yet.
    More,
    /// A hello: the whole message. It came in the first so many bytes, and others may follow.
    Hello(Vec<u8>, usize),
    /// No hello of TLS.
    Other,
}

/// A hello of which a part has come, in one record or in several.
#[derive(Debug)]
pub struct Hearing {
    seen: usize,
    joiner: Joiner,
}

impl Default for Hearing {
    fn default() -> Self {
        Hearing {
            seen: 0,
            joiner: Joiner::new(MAX_HELLO, MAX_HELLO),
        }
    }
}

impl Hearing {
    /// Looks at the first bytes of a connection: the same as before and what has been added. Each record is looked at once.
    pub fn look(&mut self, bytes: &[u8]) -> Heard {
        loop {
            let rest = bytes.get(self.seen..).unwrap_or_default();
            // A byte that is wrong is not waited behind.
            let expected = [HANDSHAKE, 3];
            if rest.iter().zip(expected).any(|(byte, expected)| *byte != expected) {
                return Heard::Other;
            }
            let Some(head) = rest.first_chunk::<HEAD>() else {
                return Heard::More;
            };
            let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
            if len == 0 || self.seen + HEAD + len > MAX_SEEN {
                return Heard::Other;
            }
            let Some(content) = rest.get(HEAD..HEAD + len) else {
                return Heard::More;
            };
            if content[0] != Kind::CLIENT_HELLO.0 && self.seen == 0 {
                return Heard::Other;
            }
            if self.joiner.push(content).is_err() {
                return Heard::Other;
            }
            self.seen += HEAD + len;
            match self.joiner.next_message() {
                Ok(Some(message)) => return Heard::Hello(message.bytes.to_vec(), self.seen),
                Ok(None) => {}
                Err(_) => return Heard::Other,
            }
        }
    }
}

/// A client that has the key.
#[derive(Debug)]
pub struct Admitted {
    /// The key of its hello.
    pub key: AuthKey,
    /// What it says of itself.
    pub claim: Claim,
    /// The random of its hello, by which a repetition is known.
    pub random: [u8; 32],
}

/// Why a client is not let in.
#[derive(Debug, Eq, PartialEq)]
pub enum Denied {
    /// Its hello is malformed.
    Malformed,
    /// It does not offer TLS 1.3.
    Version,
    /// It asks for a name that is none of the server's.
    Name(String),
    /// It has no key share of X25519, or its session id was not sealed with the key of this server.
    Unauthentic,
    /// It has the key, and is refused for what it says of itself.
    Claim(Claim, Refusal),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Malformed => f.write_str("failed to read client hello"),
            Denied::Version => f.write_str("unsupported TLS version: the client does not offer TLS 1.3"),
            Denied::Name(name) => write!(f, "server name mismatch: {}", name.escape_debug()),
            Denied::Unauthentic => f.write_str("authentication failed or validation criteria not met"),
            Denied::Claim(claim, refusal) => {
                f.write_str("authentication failed or validation criteria not met: ")?;
                let [x, y, z] = claim.version;
                match refusal {
                    Refusal::Version => write!(f, "the client's version {x}.{y}.{z} is not one that may come"),
                    Refusal::Time(by) => write!(f, "the client's clock differs by {by} s (version {x}.{y}.{z})"),
                    Refusal::ShortId => write!(f, "the client has no short id of this server (version {x}.{y}.{z})"),
                }
            }
        }
    }
}

/// What a server lets clients in by.
pub struct Gate {
    secret: X25519Secret,
    names: Vec<String>,
    terms: Terms,
}

impl Gate {
    /// With a private key, and names that are compared as they are; an empty one is for clients that name none.
    pub fn new(private: &[u8; 32], names: Vec<String>, terms: Terms) -> Self {
        Gate {
            secret: X25519Secret::new(private),
            names,
            terms,
        }
    }

    /// Whether the client with this hello, a whole message, is let in. `now` is the Unix time in milliseconds.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn admit(&self, hello: &[u8], now: u64) -> Result<Admitted, Denied> {
        let message = Message::first(hello, MAX_HELLO).ok().flatten();
        let read = message.and_then(|message| ClientHello::read(message).ok());
        let parsed = read.ok_or(Denied::Malformed)?;
        let name = parsed.extensions.server_name().map_err(|_| Denied::Malformed)?;
        let name = name.unwrap_or_default();
        if parsed.offers_tls13() != Ok(true) {
            return Err(Denied::Version);
        }
        if !self.names.iter().any(|known| known.as_bytes() == name) {
            return Err(Denied::Name(String::from_utf8_lossy(name).into_owned()));
        }
        let shares = parsed.extensions.key_shares().map_err(|_| Denied::Malformed)?;
        let share = |group: Group| {
            let key = shares?.get(group.id()).filter(|key| key.len() == group.client_len())?;
            key.get(group.client_x25519_at()?..)?.try_into().ok()
        };
        let share: [u8; 32] = share(Group::X25519)
            .or_else(|| share(Group::X25519MlKem768))
            .ok_or(Denied::Unauthentic)?;
        let key = AuthKey::new(&self.secret, &share, parsed.random).map_err(|_| Denied::Unauthentic)?;
        let claim = session_id::open(&key, hello).map_err(|_| Denied::Unauthentic)?;
        match self.terms.check(&claim, now) {
            Ok(()) => Ok(Admitted {
                key,
                claim,
                random: *parsed.random,
            }),
            Err(refusal) => Err(Denied::Claim(claim, refusal)),
        }
    }
}

#[cfg(test)]
mod tests;
