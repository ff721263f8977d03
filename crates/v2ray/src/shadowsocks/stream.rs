//! One direction of a stream: messages under one key, numbered from 0, and chunks of two messages each.

use std::ops::Range;

use sealway_aead::{CounterOrder, NonceSequence, OpeningKey, SealingKey, Suite, Tag};

use super::{CHUNK_PAYLOAD, Key};
use crate::{Error, Protocol};

const TAG: usize = Suite::TAG_LEN;
/// Bytes in front of a chunk's payload.
const HEAD: usize = 2 + TAG;

/// What did not authenticate.
pub(super) fn unauthentic(error: sealway_aead::Error) -> Error {
    match error {
        sealway_aead::Error::Unauthentic => Protocol::Shadowsocks.unauthentic(),
        error => Error::Aead(error),
    }
}

pub(super) fn malformed(problem: &'static str) -> Error {
    Protocol::Shadowsocks.malformed(problem)
}

/// Seals one direction.
#[derive(Debug)]
pub struct ChunkSealer {
    key: SealingKey,
    nonces: NonceSequence,
    most: usize,
}

impl ChunkSealer {
    /// The direction that begins with this salt.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn new(key: &Key, salt: &[u8]) -> Result<Self, Error> {
        let suite = key.method().suite();
        // A counter, least significant byte first, of eight bytes, and zeros that it never comes to.
        let rest = [0; Suite::MAX_NONCE_LEN];
        let fixed = &rest[..suite.nonce_len() - 8];
        Ok(ChunkSealer {
            key: SealingKey::new(suite, key.subkey(salt).as_ref())?,
            nonces: NonceSequence::counter_then_fixed(suite, 8, CounterOrder::LittleEndian, fixed)?,
            most: key.method().max_chunk(),
        })
    }

    /// Most payload to seal into one chunk.
    pub fn max_payload(&self) -> usize {
        self.most.min(CHUNK_PAYLOAD)
    }

    /// Appends one chunk.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] for more payload than a chunk of the method takes; [`Error::Aead`] when the nonces are used up.
    pub fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let len = self.check(payload.len())?;
        self.message(out, |out| out.extend_from_slice(&len.to_be_bytes()))?;
        self.message(out, |out| out.extend_from_slice(payload))
    }

    /// The length of a payload, if it fits.
    pub(super) fn check(&self, len: usize) -> Result<u16, Error> {
        let fits = u16::try_from(len).ok().filter(|_| len <= self.most);
        fits.ok_or(Protocol::Shadowsocks.does_not_fit("a payload", self.most, len))
    }

    /// Appends one message: what `write` appends, sealed.
    pub(super) fn message(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        let at = out.len();
        write(out);
        let nonce = self.nonces.advance()?.nonce;
        let tag = self.key.seal_in_place(nonce, &[], &mut out[at..])?;
        out.extend_from_slice(tag.as_bytes());
        Ok(())
    }
}

/// What is known of the message that comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// It is a length.
    Length,
    /// It is a payload of this many bytes; its length, which is open, stands in front of it.
    Payload(usize),
    /// It is a payload of this many bytes, of which a header told.
    Told(usize),
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
    /// Part of a chunk. Show the same bytes again with at least this many more behind them.
    More(usize),
}

/// Opens one direction, chunk by chunk, in the buffer it was read into.
#[derive(Debug)]
pub struct ChunkOpener {
    key: OpeningKey,
    number: u64,
    most: usize,
    next: Next,
}

impl ChunkOpener {
    /// The direction that begins with this salt.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn new(key: &Key, salt: &[u8]) -> Result<Self, Error> {
        Ok(ChunkOpener {
            key: OpeningKey::new(key.method().suite(), key.subkey(salt).as_ref())?,
            number: 0,
            most: key.method().max_chunk(),
            next: Next::Length,
        })
    }

    /// Opens a message in place, `text` and its tag.
    pub(super) fn message<'a>(&mut self, sealed: &'a mut [u8]) -> Result<&'a mut [u8], Error> {
        let len = sealed.len().saturating_sub(TAG);
        let (text, tag) = sealed.split_at_mut(len);
        let tag = Tag::from_slice(tag)?;
        let mut nonce = [0; Suite::MAX_NONCE_LEN];
        nonce[..8].copy_from_slice(&self.number.to_le_bytes());
        let nonce = &nonce[..self.key.suite().nonce_len()];
        self.key.open_in_place(nonce, &[], text, &tag).map_err(unauthentic)?;
        // 2^64 messages do not come.
        self.number = self.number.wrapping_add(1);
        Ok(text)
    }

    /// The message that comes next is a payload of this length.
    pub(super) fn expect(&mut self, len: usize) {
        self.next = Next::Told(len);
    }

    /// Looks at the front of `wire` and opens the chunk that stands there, if it is whole.
    ///
    /// Where it is not, its length may be open already: the same bytes must be shown again.
    ///
    /// # Errors
    /// [`Error::Unauthentic`], and [`Error::TooLong`] for a length that the method forbids. Nothing can follow either.
    pub fn open_next(&mut self, wire: &mut [u8]) -> Result<Opened, Error> {
        if self.next == Next::Length {
            let Some(head) = wire.get_mut(..HEAD) else {
                return Ok(Opened::More(HEAD - wire.len()));
            };
            let len = self.message(head)?;
            let len = usize::from(u16::from_be_bytes([len[0], len[1]]));
            if len > self.most {
                return Err(Protocol::Shadowsocks.too_long("a chunk", self.most));
            }
            self.next = Next::Payload(len);
        }
        let (front, len) = match self.next {
            Next::Told(len) => (0, len),
            Next::Payload(len) => (HEAD, len),
            Next::Length => return Ok(Opened::More(1)),
        };
        let (used, have) = (front + len + TAG, wire.len());
        let Some(sealed) = wire.get_mut(front..used) else {
            return Ok(Opened::More(used - have));
        };
        self.message(sealed)?;
        self.next = Next::Length;
        Ok(Opened::Chunk {
            payload: front..front + len,
            used,
        })
    }

    /// Whether the stream may end where all bytes shown have been used.
    pub fn may_end(&self) -> bool {
        self.next == Next::Length
    }
}
