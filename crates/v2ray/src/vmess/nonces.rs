//! The nonces of chunks: the chunk's number, 16 bits, and ten bytes of the IV.
//!
//! # After 65,536 chunks
//!
//! The number starts again at 0, so nonces repeat under one key. That is a fault of the protocol: every implementation
//! wraps (in v2ray and xray, `GenerateIncreasingNonce` of `common/crypto/auth.go` counts in 16 bits), nothing in the protocol
//! lets a sender ask for a new key, and to refuse would end every long download. So [`Repeating`] wraps as the peers do. What
//! a sender can do is to make its chunks large: at [`super::CHUNK_PAYLOAD`] the first nonce repeats after one GiB, where the
//! peers' chunks of 2 to 8 KiB come to it after 128 to 512 MiB. Where this matters, use TLS outside, or VLESS over TLS.

use sealway_aead::{Error as AeadError, Nonce, NonceSequence, Suite};

use crate::Error;

/// A nonce sequence that begins again when its 16 bits are used up.
pub(super) struct Repeating {
    suite: Suite,
    iv: [u8; 16],
    nonces: NonceSequence,
    laps: u64,
}

impl Repeating {
    pub(super) fn new(suite: Suite, iv: &[u8; 16]) -> Result<Self, Error> {
        Ok(Repeating {
            suite,
            iv: *iv,
            nonces: sequence(suite, iv)?,
            laps: 0,
        })
    }

    pub(super) fn next(&mut self) -> Result<Nonce, Error> {
        match self.nonces.advance() {
            Ok(numbered) => Ok(numbered.nonce),
            Err(AeadError::Exhausted) => {
                self.laps += 1;
                self.nonces = sequence(self.suite, &self.iv)?;
                Ok(self.nonces.advance()?.nonce)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn laps(&self) -> u64 {
        self.laps
    }
}

/// The nonce of chunk `number`, to open with.
pub(super) fn nonce_bytes(number: u16, iv: &[u8; 16]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..2].copy_from_slice(&number.to_be_bytes());
    nonce[2..].copy_from_slice(&iv[2..12]);
    nonce
}

/// A sequence of nonces `number u16 | iv[2..12]`, from 0.
pub(super) fn sequence(suite: Suite, iv: &[u8; 16]) -> Result<NonceSequence, Error> {
    Ok(NonceSequence::counter_then_fixed(
        suite,
        2,
        sealway_aead::CounterOrder::BigEndian,
        &iv[2..12],
    )?)
}
