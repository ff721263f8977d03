//! One direction of a connection: a key, its nonce sequence and its limits together.

use crate::derive::Traffic;
use crate::limits::Usage;
use crate::{Error, Limits, NonceSequence, OpeningKey, SealingKey, Tag};

/// Seals message after message; nonces, soft and hard limit are its business, not the caller's.
#[derive(Debug)]
pub struct Sealer {
    key: SealingKey,
    nonces: NonceSequence,
    limits: Limits,
    used: Usage,
}

/// A message was sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sealed {
    /// The tag.
    pub tag: Tag,
    /// Number of the message under this key.
    pub number: u64,
    /// True from the soft limit on: derive the next key and change to it.
    pub rekey: bool,
}

impl Sealer {
    /// Takes a key and a fresh sequence. The limits are the suite's, see [`Limits::of`].
    ///
    /// # Errors
    /// [`Error::NonceLength`] if the sequence was made for a suite with another nonce length.
    pub fn new(key: SealingKey, nonces: NonceSequence) -> Result<Self, Error> {
        nonces.check_fits(key.suite())?;
        let limits = Limits::of(key.suite());
        Ok(Sealer {
            key,
            nonces: nonces.with_limits(limits),
            limits,
            used: Usage::default(),
        })
    }

    /// The same sealer with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.nonces = self.nonces.with_limits(limits);
        self.limits = limits;
        self
    }

    /// Seals `in_out` in place.
    ///
    /// The number of the message is used up once the limits allow it, whatever happens next.
    ///
    /// # Errors
    /// [`Error::Exhausted`] at a hard limit, [`Error::TooLong`] above the suite's limit: the buffer is then untouched.
    #[inline]
    pub fn seal_in_place(&mut self, aad: &[u8], in_out: &mut [u8]) -> Result<Sealed, Error> {
        self.used = self
            .used
            .after(in_out.len() as u64, &self.limits)
            .ok_or(Error::Exhausted)?;
        let step = self.nonces.advance()?;
        let tag = self.key.seal_in_place(step.nonce, aad, in_out)?;
        Ok(Sealed {
            tag,
            number: step.number,
            rekey: self.is_rekey_due(),
        })
    }

    /// True from the soft limit on.
    pub fn is_rekey_due(&self) -> bool {
        self.limits.rekey.is_due(self.used.bytes, self.used.messages)
    }

    /// Messages sealed so far.
    pub fn messages(&self) -> u64 {
        self.used.messages
    }

    /// Payload bytes sealed so far.
    pub fn bytes(&self) -> u64 {
        self.used.bytes
    }
}

/// Opens message after message in the order they were sealed.
///
/// The first message that does not authenticate ends it: nothing after that may be delivered, however good its tag.
#[derive(Debug)]
pub struct Opener {
    key: OpeningKey,
    nonces: NonceSequence,
    dead: bool,
}

impl Opener {
    /// Takes a key and a sequence that starts where the sealer's does.
    ///
    /// # Errors
    /// [`Error::NonceLength`] if the sequence was made for a suite with another nonce length.
    pub fn new(key: OpeningKey, nonces: NonceSequence) -> Result<Self, Error> {
        nonces.check_fits(key.suite())?;
        // Limits bind the sealing end; an opener follows as far as the counter goes.
        let limits = Limits {
            max_messages: u64::MAX,
            max_blocks: u64::MAX,
            ..Limits::of(key.suite())
        };
        Ok(Opener {
            key,
            nonces: nonces.with_limits(limits),
            dead: false,
        })
    }

    /// Opens the next message in place.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not the next message as sealed, and for every call after that: `in_out` is zeroed.
    /// [`Error::Exhausted`] when the counter has ended, [`Error::TooLong`] above the suite's limit; both end it too.
    #[inline]
    pub fn open_in_place(&mut self, aad: &[u8], in_out: &mut [u8], tag: &Tag) -> Result<(), Error> {
        if self.dead {
            in_out.fill(0);
            return Err(Error::Unauthentic);
        }
        let result = match self.nonces.advance() {
            Ok(step) => self.key.open_in_place(&step.nonce.to_bytes(), aad, in_out, tag),
            Err(error) => Err(error),
        };
        self.dead = result.is_err();
        result
    }
}

impl Traffic {
    /// The sealing end: nonces are the vector XOR the message number.
    ///
    /// # Errors
    /// [`Error::Backend`] if memory ran out.
    pub fn into_sealer(self) -> Result<Sealer, Error> {
        Sealer::new(
            SealingKey::new(self.suite(), self.key())?,
            NonceSequence::xor(self.suite(), self.iv())?,
        )
    }

    /// The opening end.
    ///
    /// # Errors
    /// [`Error::Backend`] if memory ran out.
    pub fn into_opener(self) -> Result<Opener, Error> {
        Opener::new(
            OpeningKey::new(self.suite(), self.key())?,
            NonceSequence::xor(self.suite(), self.iv())?,
        )
    }
}
