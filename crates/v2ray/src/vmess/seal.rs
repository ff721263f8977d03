//! Sealing a body.

use sealway_aead::SealingKey;

use super::body::{Direction, Framing};
use super::lengths::{Draw, Draws, MAX_PADDING, SizeSealer};
use super::nonces::Repeating;
use super::{MAX_CHUNK_PAYLOAD, Session};
use crate::{Error, Protocol};

/// Seals one direction of a body into chunks, one for each payload or datagram.
pub struct ChunkSealer {
    cipher: Option<(SealingKey, Repeating)>,
    sizes: SizeSealer,
    draws: Draws,
    /// What was drawn for a chunk that could not be made: the next one has it.
    drawn: Option<Draw>,
    overhead: usize,
    ended: bool,
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
            drawn: None,
            overhead: framing.overhead,
            ended: false,
        }))
    }

    /// Most bytes that one chunk adds to its payload.
    pub fn max_overhead(&self) -> usize {
        self.sizes.len() + self.overhead + if self.draws.are_padded() { MAX_PADDING } else { 0 }
    }

    /// Seals one payload or datagram into one chunk at the front of `out`, and returns the chunk's length.
    ///
    /// # Errors
    /// [`Error::Buffer`] if the chunk does not fit, [`Error::DoesNotFit`] for a payload of 0 or more than
    /// [`MAX_CHUNK_PAYLOAD`] bytes, [`Error::OutOfOrder`] after the end.
    pub fn seal_to(
        &mut self,
        payload: &[u8],
        out: &mut [u8],
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, Error> {
        if !(1..=MAX_CHUNK_PAYLOAD).contains(&payload.len()) {
            return Err(Protocol::Vmess.does_not_fit(
                match payload {
                    [] => "a chunk without payload",
                    _ => "a payload",
                },
                MAX_CHUNK_PAYLOAD,
                payload.len(),
            ));
        }
        self.chunk(payload, out, random)
    }

    /// Writes the chunk that ends the body, and returns its length. It needs at most [`ChunkSealer::max_overhead`] bytes.
    ///
    /// # Errors
    /// [`Error::Buffer`] if it does not fit, [`Error::OutOfOrder`] after the end.
    pub fn seal_end(&mut self, out: &mut [u8], random: &mut dyn FnMut(&mut [u8])) -> Result<usize, Error> {
        let len = self.chunk(&[], out, random)?;
        self.ended = true;
        Ok(len)
    }

    /// How often the chunk numbers have started again, and the nonces with them.
    pub fn repeats(&self) -> u64 {
        self.cipher.as_ref().map_or(0, |(_, nonces)| nonces.laps())
    }

    fn chunk(&mut self, payload: &[u8], out: &mut [u8], random: &mut dyn FnMut(&mut [u8])) -> Result<usize, Error> {
        if self.ended {
            return Err(Error::OutOfOrder {
                what: "the body has ended; nothing can follow its last chunk",
            });
        }
        let draw = *self.drawn.get_or_insert_with(|| self.draws.next());
        let sealed_len = payload.len() + self.overhead;
        let size = sealed_len + draw.padding;
        let need = self.sizes.len() + size;
        let got = out.len();
        let out = out.get_mut(..need).ok_or(Error::Buffer { need, got })?;
        let (head, rest) = out.split_at_mut(self.sizes.len());
        let (sealed, padding) = rest.split_at_mut(sealed_len);
        // At most 65,535 by the limit on payloads.
        self.sizes.write(size as u16, draw, head)?;
        match &mut self.cipher {
            Some((key, nonces)) => key.seal_to(nonces.next()?, &[], payload, sealed)?,
            None => sealed.copy_from_slice(payload),
        }
        if !padding.is_empty() {
            random(padding);
        }
        self.drawn = None;
        Ok(need)
    }
}

impl std::fmt::Debug for ChunkSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite = self.cipher.as_ref().map(|(key, _)| key.suite());
        f.debug_struct("ChunkSealer")
            .field("suite", &suite)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}
