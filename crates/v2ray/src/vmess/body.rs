//! What both directions of a body have in common.
//!
//! A chunk is `size | sealed payload | padding`. Chunks are numbered from 0 in each direction; the nonce is the number, 16
//! bits, and ten bytes of the IV.
//!
//! # After 65,536 chunks
//!
//! The number starts again at 0, so nonces repeat under one key. That is a fault of the protocol: every implementation
//! wraps (in v2ray and xray, `GenerateIncreasingNonce` of `common/crypto/auth.go` counts in 16 bits), nothing in the protocol
//! lets a sender ask for a new key, and to refuse would end every long download. So [`Repeating`] wraps as the peers do. What
//! a sender can do is to make its chunks large: at [`super::CHUNK_PAYLOAD`] the first nonce repeats after one GiB, where the
//! peers' chunks of 2 to 8 KiB come to it after 128 to 512 MiB. Where this matters, use TLS outside, or VLESS over TLS.

use sealway_aead::{Error as AeadError, Nonce, NonceSequence, Suite};
use zeroize::Zeroizing;

use super::lengths::{Draws, sequence};
use super::session::suite_key;
use super::{Options, Security, Session, kdf};
use crate::Error;
use crate::address::Network;

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

/// The two directions of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Request,
    Response,
}

/// How a direction is framed.
pub(super) struct Framing {
    /// Suite and key of the payload, unless it is not sealed.
    pub(super) payload: Option<(Suite, Zeroizing<Vec<u8>>)>,
    pub(super) iv: [u8; 16],
    /// Suite, key and IV of the sizes, if they are sealed.
    pub(super) sizes: Option<(Suite, Zeroizing<Vec<u8>>, [u8; 16])>,
    pub(super) draws: Draws,
    /// Bytes that sealing adds to the payload.
    pub(super) overhead: usize,
}

impl Framing {
    /// The framing of a direction, or `None` if the body is raw.
    pub(super) fn new(session: &Session, direction: Direction) -> Option<Self> {
        if session.is_raw() {
            return None;
        }
        let (key, iv) = match direction {
            Direction::Request => (Zeroizing::new(session.key), session.iv),
            Direction::Response => session.response_keys(),
        };
        let options = session.options;
        let suite = session.security.suite();
        let sealed_sizes = options.has(Options::AUTHENTICATED_LENGTH);
        // A plain stream knows neither sealed sizes nor padding; plain datagrams are framed like sealed ones.
        let padded = options.has(Options::GLOBAL_PADDING)
            && (session.security != Security::None || session.network == Network::Udp);
        Some(Framing {
            payload: suite.map(|suite| (suite, suite_key(suite, &key))),
            iv,
            sizes: suite.filter(|_| sealed_sizes).map(|suite| {
                // Both directions use the request's key and IV here.
                let key = Zeroizing::new(kdf::CHUNK_LENGTH.derive::<16>(&session.key));
                (suite, suite_key(suite, &key), session.iv)
            }),
            draws: Draws::new(
                &iv,
                padded,
                options.has(Options::CHUNK_MASKING) && !(sealed_sizes && suite.is_some()),
            ),
            overhead: if suite.is_some() { Suite::TAG_LEN } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests;
