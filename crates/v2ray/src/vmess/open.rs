//! Opening a body.

use std::ops::Range;

use sealway_aead::{OpeningKey, Tag};

use super::Session;
use super::body::{Direction, Framing};
use super::lengths::{Draw, Draws, SizeOpener, without_padding};
use super::nonces::nonce_bytes;
use super::request::unauthentic;
use crate::{Error, Protocol};

/// Opens one direction of a body, chunk by chunk, in the buffer it was read into.
pub struct ChunkOpener {
    cipher: Option<OpeningKey>,
    iv: [u8; 16],
    /// Number of the next chunk.
    number: u16,
    sizes: SizeOpener,
    draws: Draws,
    overhead: usize,
    /// The chunk whose size has been read: bytes behind the size field, and what was drawn for it.
    pending: Option<(usize, Draw)>,
    ended: bool,
}

/// What stands at the front of the bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Opened {
    /// A chunk, now open.
    Chunk {
        /// Where its payload stands.
        payload: Range<usize>,
        /// How many bytes the chunk took; go on behind them.
        used: usize,
    },
    /// The chunk that ends the body.
    End {
        /// How many bytes it took.
        used: usize,
    },
    /// Part of a chunk. Show the same bytes again with at least this many more behind them.
    More(usize),
}

impl ChunkOpener {
    /// The opener of a request's body, as the server; `None` if the body is raw.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn request(session: &Session) -> Result<Option<Self>, Error> {
        Self::new(session, Direction::Request)
    }

    /// The opener of a response's body, as the client; `None` if the body is raw.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn response(session: &Session) -> Result<Option<Self>, Error> {
        Self::new(session, Direction::Response)
    }

    fn new(session: &Session, direction: Direction) -> Result<Option<Self>, Error> {
        let Some(framing) = Framing::new(session, direction) else {
            return Ok(None);
        };
        let cipher = match &framing.payload {
            Some((suite, key)) => Some(OpeningKey::new(*suite, key)?),
            None => None,
        };
        Ok(Some(ChunkOpener {
            cipher,
            iv: framing.iv,
            number: 0,
            sizes: match &framing.sizes {
                Some((suite, key, iv)) => SizeOpener::Sealed {
                    key: Box::new(OpeningKey::new(*suite, key)?),
                    iv: *iv,
                    number: 0,
                },
                None => SizeOpener::Plain,
            },
            draws: framing.draws,
            overhead: framing.overhead,
            pending: None,
            ended: false,
        }))
    }

    /// Opens the chunk at the front of `wire` in place. Call it again with what lies behind until it asks for more.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] and [`Error::Malformed`]; the stream is then lost, for the next chunk cannot be found.
    /// [`Error::OutOfOrder`] for bytes behind the end.
    pub fn open_next(&mut self, wire: &mut [u8]) -> Result<Opened, Error> {
        if self.ended {
            return Err(Error::OutOfOrder {
                what: "the body has ended; what follows is not part of it",
            });
        }
        let head = self.sizes.len();
        let Some((field, rest)) = wire.split_at_mut_checked(head) else {
            return Ok(Opened::More(head - wire.len()));
        };
        let (size, draw) = match self.pending {
            Some(pending) => pending,
            None => {
                let draw = self.draws.next();
                *self.pending.insert((self.sizes.read(field, draw)?, draw))
            }
        };
        let sealed_len = without_padding(size, draw, self.overhead)?;
        let have = rest.len();
        let Some(body) = rest.get_mut(..size) else {
            return Ok(Opened::More(size - have));
        };
        let len = sealed_len - self.overhead;
        if let Some(key) = &self.cipher {
            let (payload, tag) = body[..sealed_len].split_at_mut(len);
            let tag = Tag::from_slice(tag)?;
            key.open_in_place(&nonce_bytes(self.number, &self.iv), &[], payload, &tag)
                .map_err(unauthentic)?;
        }
        self.number = self.number.wrapping_add(1);
        self.pending = None;
        let used = head + size;
        if len == 0 {
            self.ended = true;
            return Ok(Opened::End { used });
        }
        Ok(Opened::Chunk {
            payload: head..head + len,
            used,
        })
    }

    /// Whether the chunk that ends the body has come.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// To be called when the connection has ended, with the number of bytes not used yet. The body may end so on the border
    /// of a chunk, for some peers send no last chunk.
    ///
    /// # Errors
    /// [`Error::Malformed`] if it ended within a chunk: someone cut it off.
    pub fn finish(&self, unused: usize) -> Result<(), Error> {
        if unused == 0 && self.pending.is_none() {
            return Ok(());
        }
        Err(Protocol::Vmess.malformed("the connection ended within a chunk"))
    }
}

impl std::fmt::Debug for ChunkOpener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite = self.cipher.as_ref().map(OpeningKey::suite);
        f.debug_struct("ChunkOpener")
            .field("suite", &suite)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
