//! Sealing a body.

use std::collections::VecDeque;
use std::ops::Range;

use sealway_aead::{SealingKey, Suite};

use super::body::{Direction, Framing};
use super::lengths::{Draw, Draws, MAX_PADDING, SizeSealer};
use super::nonces::Repeating;
use super::{MAX_CHUNK_PAYLOAD, Session};
use crate::{Error, Protocol};

/// Seals one direction of a body into chunks.
///
/// In place: [`ChunkSealer::plan`] says where in a buffer the payloads of the coming chunks go; read into those places,
/// then [`ChunkSealer::seal_planned`] turns the buffer into chunks that lie one behind the other, to be written in one go.
/// Out of place: [`ChunkSealer::seal_to`] makes one chunk of one payload or datagram.
pub struct ChunkSealer {
    cipher: Option<(SealingKey, Repeating)>,
    sizes: SizeSealer,
    draws: Draws,
    /// Draws of chunks that are planned but not sealed.
    ahead: VecDeque<Draw>,
    overhead: usize,
    ended: bool,
}

/// Places for payloads in a buffer. Keep it and plan into it again.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    ranges: Vec<Range<usize>>,
}

impl Slots {
    /// Where each payload goes, in order. All are equally long.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Bytes of payload that go into all of them.
    pub fn capacity(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }
}

impl ChunkSealer {
    /// The sealer of a request's body, as the client; `None` if the body is raw.
    ///
    /// # Errors
    /// [`Error::Aead`] if memory ran out.
    pub fn request(session: &Session) -> Result<Option<Self>, Error> {
        Self::new(session, Direction::Request)
    }

    /// The sealer of a response's body, as the server; `None` if the body is raw.
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
            Some((suite, key)) => Some((SealingKey::new(*suite, key)?, Repeating::new(*suite, &framing.iv)?)),
            None => None,
        };
        Ok(Some(ChunkSealer {
            cipher,
            sizes: match &framing.sizes {
                Some((suite, key, iv)) => SizeSealer::sealed(*suite, key, iv)?,
                None => SizeSealer::Plain,
            },
            draws: framing.draws,
            ahead: VecDeque::new(),
            overhead: framing.overhead,
            ended: false,
        }))
    }

    /// Bytes of a chunk that stand before its payload.
    pub fn head_len(&self) -> usize {
        self.sizes.len()
    }

    /// Most bytes that one chunk adds to its payload.
    pub fn max_overhead(&self) -> usize {
        self.head_len() + self.overhead + if self.draws.are_padded() { MAX_PADDING } else { 0 }
    }

    /// Plans as many chunks of `payload` bytes each as fit into a buffer of `room` bytes.
    ///
    /// # Errors
    /// [`Error::Buffer`] if not even one is sure to fit; [`Error::DoesNotFit`] if `payload` is 0 or above
    /// [`MAX_CHUNK_PAYLOAD`].
    pub fn plan(&mut self, room: usize, payload: usize, slots: &mut Slots) -> Result<(), Error> {
        self.check_payload(payload)?;
        slots.ranges.clear();
        let mut at = 0;
        loop {
            let number = slots.ranges.len();
            while self.ahead.len() <= number {
                let draw = self.draws.next();
                self.ahead.push_back(draw);
            }
            let start = at + self.head_len();
            let end = start + payload + self.overhead + self.ahead[number].padding;
            if end > room {
                break;
            }
            slots.ranges.push(start..start + payload);
            at = end;
        }
        if slots.ranges.is_empty() {
            return Err(Error::Buffer {
                need: self.max_overhead() + payload,
                got: room,
            });
        }
        Ok(())
    }

    /// Seals the first `filled` bytes of payload that stand in the planned places, and returns how many bytes of the buffer
    /// are chunks now. The last chunk may be shorter than planned; unused places are given up.
    ///
    /// `random` fills the padding.
    ///
    /// # Errors
    /// [`Error::Buffer`] if `filled` is more than was planned or the buffer is shorter than the one planned for;
    /// [`Error::OutOfOrder`] after the end.
    pub fn seal_planned(
        &mut self,
        buffer: &mut [u8],
        slots: &mut Slots,
        filled: usize,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, Error> {
        if filled > slots.capacity() {
            return Err(Error::Buffer {
                need: filled,
                got: slots.capacity(),
            });
        }
        let mut left = filled;
        let mut at = 0;
        for range in &slots.ranges {
            if left == 0 {
                break;
            }
            let len = left.min(range.len());
            at += self.seal_in_place(buffer.get_mut(at..).unwrap_or_default(), len, random)?;
            left -= len;
        }
        slots.ranges.clear();
        Ok(at)
    }

    /// Seals one chunk in place: the payload of `len` bytes stands in `buffer` behind [`ChunkSealer::head_len`] free bytes.
    /// Returns the length of the chunk.
    ///
    /// # Errors
    /// [`Error::Buffer`] if the chunk does not fit, [`Error::DoesNotFit`] for a payload of 0 or more than
    /// [`MAX_CHUNK_PAYLOAD`] bytes, [`Error::OutOfOrder`] after the end.
    pub fn seal_in_place(
        &mut self,
        buffer: &mut [u8],
        len: usize,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, Error> {
        self.check_payload(len)?;
        self.chunk(buffer, len, None, random)
    }

    /// Seals one payload or datagram into one chunk at the front of `out`, and returns the chunk's length.
    ///
    /// # Errors
    /// As [`ChunkSealer::seal_in_place`].
    pub fn seal_to(
        &mut self,
        payload: &[u8],
        out: &mut [u8],
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, Error> {
        self.check_payload(payload.len())?;
        self.chunk(out, payload.len(), Some(payload), random)
    }

    /// Writes the chunk that ends the body, and returns its length. It needs at most [`ChunkSealer::max_overhead`] bytes.
    ///
    /// # Errors
    /// [`Error::Buffer`] if it does not fit, [`Error::OutOfOrder`] after the end.
    pub fn seal_end(&mut self, out: &mut [u8], random: &mut dyn FnMut(&mut [u8])) -> Result<usize, Error> {
        let len = self.chunk(out, 0, None, random)?;
        self.ended = true;
        Ok(len)
    }

    /// How often the chunk numbers have started again, and the nonces with them.
    pub fn repeats(&self) -> u64 {
        self.cipher.as_ref().map_or(0, |(_, nonces)| nonces.laps())
    }

    fn check_payload(&self, len: usize) -> Result<(), Error> {
        if (1..=MAX_CHUNK_PAYLOAD).contains(&len) {
            return Ok(());
        }
        Err(Error::DoesNotFit {
            protocol: Protocol::Vmess,
            what: if len == 0 {
                "a chunk without payload"
            } else {
                "a payload"
            },
            limit: MAX_CHUNK_PAYLOAD,
            got: len,
        })
    }

    /// Makes a chunk of a payload that stands at its place in `out` already, or else in `from`.
    fn chunk(
        &mut self,
        out: &mut [u8],
        len: usize,
        from: Option<&[u8]>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, Error> {
        if self.ended {
            return Err(Error::OutOfOrder {
                what: "the body has ended; nothing can follow its last chunk",
            });
        }
        let draw = match self.ahead.front() {
            Some(draw) => *draw,
            None => {
                let draw = self.draws.next();
                self.ahead.push_back(draw);
                draw
            }
        };
        let size = len + self.overhead + draw.padding;
        let need = self.head_len() + size;
        let got = out.len();
        let out = out.get_mut(..need).ok_or(Error::Buffer { need, got })?;
        let (head, rest) = out.split_at_mut(self.sizes.len());
        let (sealed, padding) = rest.split_at_mut(len + self.overhead);
        // At most 65,535 by the limit on payloads.
        self.sizes.write(size as u16, draw, head)?;
        match (&mut self.cipher, from) {
            (Some((key, nonces)), Some(payload)) => key.seal_to(nonces.next()?, &[], payload, sealed)?,
            (Some((key, nonces)), None) => {
                let (payload, tag) = sealed.split_at_mut(len);
                tag.copy_from_slice(&key.seal_in_place(nonces.next()?, &[], payload)?.0);
            }
            (None, Some(payload)) => sealed.copy_from_slice(payload),
            (None, None) => {}
        }
        if !padding.is_empty() {
            random(padding);
        }
        self.ahead.pop_front();
        Ok(need)
    }
}

impl std::fmt::Debug for ChunkSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite: Option<Suite> = self.cipher.as_ref().map(|(key, _)| key.suite());
        f.debug_struct("ChunkSealer")
            .field("suite", &suite)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
