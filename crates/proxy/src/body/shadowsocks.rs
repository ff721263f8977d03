//! The chunks of Shadowsocks on a stream, and what its datagrams draw at random.

use std::ops::Range;

use sealway_v2ray::Step;
use sealway_v2ray::shadowsocks::edition2022::{AnswerSealer, MAX_PADDING, open_answer};
use sealway_v2ray::shadowsocks::{CHUNK_OVERHEAD, ChunkOpener, ChunkSealer, Key, MAX_SALT, Opened as Chunk};

use crate::clock::Clock;
use crate::layer::{Open, Opened, Seal};
use crate::{Error, random};

/// A salt, drawn for one direction of one connection or for one datagram.
pub(crate) struct Salt {
    bytes: [u8; MAX_SALT],
    len: usize,
}

impl Salt {
    /// A fresh one.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no random bytes.
    pub(crate) fn draw(key: &Key) -> Result<Self, Error> {
        let mut salt = Salt {
            bytes: [0; MAX_SALT],
            len: key.method().salt_len(),
        };
        random::fill(&mut salt.bytes[..salt.len])?;
        Ok(salt)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// How many bytes hide the length of a datagram: of queries of names and their answers, which tell by it what is asked for.
pub(crate) fn padding(port: u16, len: usize) -> Result<u16, Error> {
    const NAMES: u16 = 53;
    match MAX_PADDING.checked_sub(len) {
        Some(room) if port == NAMES && room > 0 => {
            let drawn = usize::from(u16::from_ne_bytes(random::bytes()?));
            Ok((drawn % room + 1) as u16)
        }
        _ => Ok(0),
    }
}

/// The chunks of Shadowsocks, as the client behind the beginning of an answer.
pub(crate) struct ShadowsocksOpen(State);

enum State {
    /// The salt of an answer of 2017 is to come.
    Salt(Key),
    /// The header of an answer of 2022 is to come.
    Header { key: Key, salt: Salt, clock: Clock },
    /// Nothing but chunks.
    Chunks(ChunkOpener),
}

impl ShadowsocksOpen {
    /// A request's chunks, as the server.
    pub(crate) fn request(chunks: ChunkOpener) -> Self {
        ShadowsocksOpen(State::Chunks(chunks))
    }

    /// An answer of 2017, as the client.
    pub(crate) fn classic(key: Key) -> Self {
        ShadowsocksOpen(State::Salt(key))
    }

    /// An answer of 2022 to the request with this salt, as the client.
    pub(crate) fn edition2022(key: Key, salt: Salt, clock: Clock) -> Self {
        ShadowsocksOpen(State::Header { key, salt, clock })
    }

    /// Reads what stands in front of the chunks. `None`: more is to come.
    fn begin(&self, bytes: &[u8]) -> Result<Option<(ChunkOpener, usize)>, Error> {
        match &self.0 {
            State::Salt(key) => match bytes.get(..key.method().salt_len()) {
                Some(salt) => Ok(Some((ChunkOpener::new(key, salt)?, salt.len()))),
                None => Ok(None),
            },
            State::Header { key, salt, clock } => match open_answer(bytes, key, salt.bytes(), clock())? {
                Step::Done { value, used } => Ok(Some((value, used))),
                Step::More(_) => Ok(None),
            },
            State::Chunks(_) => Ok(None),
        }
    }
}

impl Open for ShadowsocksOpen {
    fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error> {
        let mut done = Opened::default();
        let mut at = input.start;
        if !matches!(self.0, State::Chunks(_)) {
            let Some((chunks, used)) = self.begin(&buffer[input.clone()])? else {
                return Ok(done);
            };
            self.0 = State::Chunks(chunks);
            at += used;
        }
        if let State::Chunks(chunks) = &mut self.0 {
            while at < input.end {
                let Chunk::Chunk { payload, used } = chunks.open_next(&mut buffer[at..input.end])? else {
                    break;
                };
                let len = payload.len();
                buffer.copy_within(at + payload.start..at + payload.end, out + done.produced);
                done.produced += len;
                at += used;
            }
        }
        done.consumed = at - input.start;
        Ok(done)
    }

    fn may_end(&self) -> bool {
        match &self.0 {
            // A server that has nothing to say does not begin.
            State::Salt(_) | State::Header { .. } => true,
            State::Chunks(chunks) => chunks.may_end(),
        }
    }
}

/// Seals payload into chunks.
pub(crate) struct ShadowsocksSeal(pub(crate) ChunkSealer);

impl Seal for ShadowsocksSeal {
    fn max_payload(&self) -> usize {
        self.0.max_payload()
    }

    fn overhead(&self) -> usize {
        CHUNK_OVERHEAD
    }

    fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        Ok(self.0.seal(payload, out)?)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}

/// Seals an answer of 2022, whose header names the length of the first payload.
pub(crate) struct AnswerSeal {
    pub(crate) sealer: AnswerSealer,
    pub(crate) clock: Clock,
}

impl Seal for AnswerSeal {
    fn max_payload(&self) -> usize {
        self.sealer.max_payload()
    }

    fn overhead(&self) -> usize {
        AnswerSealer::MAX_OVERHEAD
    }

    fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        Ok(self.sealer.seal(payload, (self.clock)(), out)?)
    }

    fn end(&mut self, _: &mut Vec<u8>) -> Result<(), Error> {
        Ok(())
    }
}
