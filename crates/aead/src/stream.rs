//! One direction of a connection: a key, its nonce sequence and its limits together.

use crate::derive::Traffic;
use crate::limits::Usage;
use crate::nonce::Numbered;
use crate::{Error, Limits, NonceSequence, OpeningKey, RekeyPolicy, SealingKey, Suite, Tag};

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
    /// Takes a key and a fresh sequence. The limits are those of the sequence: the suite's, see [`Limits::of`], unless it
    /// was given stricter ones.
    ///
    /// # Errors
    /// [`Error::SuiteMismatch`] if the sequence was made for another suite.
    pub fn new(key: SealingKey, nonces: NonceSequence) -> Result<Self, Error> {
        nonces.check_fits(key.suite())?;
        Ok(Sealer {
            key,
            limits: nonces.limits(),
            nonces,
            used: Usage::default(),
        })
    }

    /// The same sealer with the soft limit of `limits`, and with hard limits that are never higher than before.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.nonces = self.nonces.with_limits(limits);
        self.limits = self.nonces.limits();
        self
    }

    /// The limits in force, the end of the counter field aside.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Seals `in_out` in place.
    ///
    /// # Errors
    /// [`Error::Exhausted`] at a hard limit, [`Error::TooLong`] above the suite's limit: no number is used up and the
    /// buffer is untouched. [`Error::Backend`] if memory ran out: the number is used up, so the peer cannot open what
    /// follows, and the buffer is zeroed.
    #[inline]
    pub fn seal_in_place(&mut self, aad: &[u8], in_out: &mut [u8]) -> Result<Sealed, Error> {
        let step = self.step(in_out.len())?;
        let tag = self.key.seal_in_place(step.nonce, aad, in_out)?;
        Ok(Sealed {
            tag,
            number: step.number,
            rekey: self.is_rekey_due(),
        })
    }

    /// Seals `plaintext` into `sealed`: the ciphertext, then the tag, which the answer repeats.
    ///
    /// # Errors
    /// [`Error::OutputLength`] unless `sealed` is exactly 16 bytes longer than `plaintext`: no number is used up then.
    /// Otherwise as [`Sealer::seal_in_place`], with `sealed` in place of the buffer.
    #[inline]
    pub fn seal_to(&mut self, aad: &[u8], plaintext: &[u8], sealed: &mut [u8]) -> Result<Sealed, Error> {
        let need = plaintext.len().saturating_add(Suite::TAG_LEN);
        let got = sealed.len();
        if got != need {
            return Err(Error::OutputLength { need, got });
        }
        let step = self.step(plaintext.len())?;
        self.key.seal_to(step.nonce, aad, plaintext, sealed)?;
        Ok(Sealed {
            tag: Tag::from_slice(&sealed[plaintext.len()..])?,
            number: step.number,
            rekey: self.is_rekey_due(),
        })
    }

    /// The nonce of the next message, counted and within the limits.
    #[inline(always)]
    fn step(&mut self, len: usize) -> Result<Numbered, Error> {
        // Refused before it is counted: a number used up here would leave a gap that no opener gets over.
        let (suite, len) = (self.key.suite(), len as u64);
        if len > suite.max_message_len() {
            return Err(Error::TooLong { suite, len });
        }
        let used = self.used.after(len, &self.limits).ok_or(Error::Exhausted)?;
        let step = self.nonces.advance()?;
        self.used = used;
        Ok(step)
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
/// The first error of any kind ends it: nothing after that may be delivered, however good its tag. Hard limits bind the
/// sealing end; an opener follows it as far as the counter field goes.
#[derive(Debug)]
pub struct Opener {
    key: OpeningKey,
    nonces: NonceSequence,
    bytes: u64,
    dead: bool,
}

/// A message was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opened {
    /// Number of the message under this key.
    pub number: u64,
    /// True from the soft limit on: the peer, if its policy is the one set here, will change to the next key.
    pub rekey: bool,
}

impl Opener {
    /// Takes a key and a sequence that starts where the sealer's does. The soft limit is that of the sequence.
    ///
    /// # Errors
    /// [`Error::SuiteMismatch`] if the sequence was made for another suite.
    pub fn new(key: OpeningKey, nonces: NonceSequence) -> Result<Self, Error> {
        nonces.check_fits(key.suite())?;
        Ok(Opener {
            key,
            nonces: nonces.following_peer(),
            bytes: 0,
            dead: false,
        })
    }

    /// The same opener with the soft limit that the peer keeps to; it decides [`Opened::rekey`] and nothing else.
    #[must_use]
    pub fn with_rekey(mut self, policy: RekeyPolicy) -> Self {
        let limits = self.nonces.limits().with_rekey(policy);
        self.nonces = self.nonces.with_limits(limits);
        self
    }

    /// Opens the next message in place.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not the next message as sealed, and for every call after any error: `in_out` is
    /// zeroed. [`Error::Exhausted`] when the counter has ended, [`Error::TooLong`] above the suite's limit: `in_out` is
    /// untouched.
    #[inline]
    pub fn open_in_place(&mut self, aad: &[u8], in_out: &mut [u8], tag: &Tag) -> Result<Opened, Error> {
        if self.dead {
            in_out.fill(0);
            return Err(Error::Unauthentic);
        }
        let len = in_out.len();
        self.next(len, |key, nonce| key.open_in_place(nonce, aad, in_out, tag))
    }

    /// Opens the next message, `sealed` with its tag last, into `plaintext`.
    ///
    /// # Errors
    /// [`Error::TooShort`] if `sealed` cannot hold a tag, [`Error::OutputLength`] unless `plaintext` is exactly 16 bytes
    /// shorter than `sealed`; otherwise as [`Opener::open_in_place`], with `plaintext` in place of the buffer.
    #[inline]
    pub fn open_to(&mut self, aad: &[u8], sealed: &[u8], plaintext: &mut [u8]) -> Result<Opened, Error> {
        if self.dead {
            plaintext.fill(0);
            return Err(Error::Unauthentic);
        }
        let len = plaintext.len();
        self.next(len, |key, nonce| key.open_to(nonce, aad, sealed, plaintext))
    }

    /// Takes the next number and opens with it. Whatever goes wrong ends the stream.
    #[inline(always)]
    fn next(
        &mut self,
        len: usize,
        open: impl FnOnce(&OpeningKey, &[u8]) -> Result<(), Error>,
    ) -> Result<Opened, Error> {
        let result = match self.nonces.advance() {
            Ok(step) => open(&self.key, &step.nonce.to_bytes()).map(|()| step),
            Err(error) => Err(error),
        };
        self.dead = result.is_err();
        let step = result?;
        self.bytes = self.bytes.saturating_add(len as u64);
        Ok(Opened {
            number: step.number,
            rekey: step.rekey || self.bytes >= self.nonces.limits().rekey.bytes,
        })
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
