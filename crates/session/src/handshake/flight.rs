//! The flights as bytes.

use sealway_aead::Suite;
use sealway_aead::choose::Offer;

use super::{Kem, Mode};
use crate::Error;

/// First bytes of flight 1: protocol, role, version.
pub(super) const MAGIC_INITIATOR: [u8; 4] = *b"SWI\x01";
/// First bytes of flight 2.
pub(super) const MAGIC_RESPONDER: [u8; 4] = *b"SWR\x01";

/// Bytes of flight 1 that say how long it is.
pub(super) const FIRST_PREFIX: usize = 8;
/// Bytes of flight 2 that say how long it is.
pub(super) const SECOND_PREFIX: usize = 7;

/// Length of X25519 keys, SPAKE2 shares, nonces, commitments and confirmations.
pub(super) const PART: usize = 32;
/// Length of a static key as sealed in flight 2.
pub(super) const SEALED_KEY: usize = PART + Suite::TAG_LEN;

const fn suite_id(suite: Suite) -> u8 {
    match suite {
        Suite::Aes128Gcm => 1,
        Suite::Aes256Gcm => 2,
        Suite::ChaCha20Poly1305 => 3,
        Suite::XChaCha20Poly1305 => 4,
    }
}

fn suite_from_id(id: u8) -> Result<Suite, Error> {
    Suite::ALL
        .into_iter()
        .find(|&suite| suite_id(suite) == id)
        .ok_or(Error::Malformed { what: "cipher suite" })
}

fn put_offer(offer: &Offer, out: &mut Vec<u8>) {
    let suites = offer.suites();
    out.push(u8::from(offer.aes_hardware()));
    // An offer has each suite once, so four at most.
    out.push(u8::try_from(suites.len()).unwrap_or(u8::MAX));
    out.extend(suites.iter().map(|&suite| suite_id(suite)));
}

/// How many suites follow, from the byte that says so.
fn suite_count(byte: u8) -> Result<usize, Error> {
    match usize::from(byte) {
        0 => Err(Error::Suites(sealway_aead::Error::EmptyOffer)),
        n if n <= Suite::ALL.len() => Ok(n),
        _ => Err(Error::Malformed {
            what: "offer of suites",
        }),
    }
}

/// Reads a message of known length from its start.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(Error::Malformed { what: "length" })?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, Error> {
        self.array().map(|[byte]| byte)
    }

    fn magic(&mut self, magic: [u8; 4]) -> Result<(), Error> {
        if self.array()? == magic {
            Ok(())
        } else {
            Err(Error::OtherProtocol)
        }
    }

    fn offer(&mut self) -> Result<Offer, Error> {
        let aes_hardware = match self.byte()? {
            0 => false,
            1 => true,
            _ => {
                return Err(Error::Malformed {
                    what: "offer of suites",
                });
            }
        };
        let count = suite_count(self.byte()?)?;
        let suites = self.bytes(count)?.iter().map(|&id| suite_from_id(id));
        let suites = suites.collect::<Result<Vec<_>, _>>()?;
        Offer::new(&suites, aes_hardware).map_err(Error::Suites)
    }

    fn share(&mut self, mode: Mode) -> Result<Option<[u8; PART]>, Error> {
        match mode {
            Mode::Code => self.array().map(Some),
            Mode::Keys => Ok(None),
        }
    }

    fn end(&self) -> Result<(), Error> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Error::Malformed { what: "length" })
        }
    }
}

/// Flight 1.
pub(super) struct First<'a> {
    pub(super) mode: Mode,
    pub(super) kem: Kem,
    pub(super) offer: Offer,
    pub(super) ephemeral: [u8; PART],
    pub(super) kem_key: &'a [u8],
    /// With a code phrase only.
    pub(super) share: Option<[u8; PART]>,
    pub(super) commitment: [u8; PART],
}

impl<'a> First<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC_INITIATOR.to_vec();
        out.extend([self.mode.id(), self.kem.id()]);
        put_offer(&self.offer, &mut out);
        out.extend(self.ephemeral);
        out.extend(self.kem_key);
        out.extend(self.share.into_iter().flatten());
        out.extend(self.commitment);
        out
    }

    fn head(reader: &mut Reader<'_>) -> Result<(Mode, Kem), Error> {
        reader.magic(MAGIC_INITIATOR)?;
        let mode = Mode::from_id(reader.byte()?).ok_or(Error::Malformed { what: "mode" })?;
        let kem = Kem::from_id(reader.byte()?).ok_or(Error::Malformed {
            what: "key encapsulation",
        })?;
        Ok((mode, kem))
    }

    /// Its length, from its first [`FIRST_PREFIX`] bytes, which are looked at before more is read.
    pub(super) fn length(prefix: &[u8; FIRST_PREFIX], mode: Mode, weakest: Kem) -> Result<usize, Error> {
        let (theirs, kem) = Self::head(&mut Reader(prefix))?;
        if theirs != mode {
            return Err(Error::OtherMode { theirs });
        }
        if kem < weakest {
            return Err(Error::WeakKem { theirs: kem });
        }
        let count = suite_count(prefix[FIRST_PREFIX - 1])?;
        Ok(FIRST_PREFIX + count + PART + kem.public_key_len() + share_len(mode) + PART)
    }

    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader(bytes);
        let (mode, kem) = Self::head(&mut reader)?;
        let first = First {
            mode,
            kem,
            offer: reader.offer()?,
            ephemeral: reader.array()?,
            kem_key: reader.bytes(kem.public_key_len())?,
            share: reader.share(mode)?,
            commitment: reader.array()?,
        };
        reader.end()?;
        Ok(first)
    }
}

/// Flight 2 up to what is sealed or confirmed.
pub(super) struct Second<'a> {
    pub(super) suite: Suite,
    pub(super) offer: Offer,
    pub(super) ephemeral: [u8; PART],
    pub(super) ciphertext: &'a [u8],
    /// With a code phrase only.
    pub(super) share: Option<[u8; PART]>,
    pub(super) nonce: [u8; PART],
}

impl<'a> Second<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC_RESPONDER.to_vec();
        out.push(suite_id(self.suite));
        put_offer(&self.offer, &mut out);
        out.extend(self.ephemeral);
        out.extend(self.ciphertext);
        out.extend(self.share.into_iter().flatten());
        out.extend(self.nonce);
        out
    }

    /// Length of flight 2, all of it, from its first [`SECOND_PREFIX`] bytes.
    pub(super) fn length(prefix: &[u8; SECOND_PREFIX], mode: Mode, kem: Kem) -> Result<usize, Error> {
        Reader(prefix).magic(MAGIC_RESPONDER)?;
        let count = suite_count(prefix[SECOND_PREFIX - 1])?;
        Ok(SECOND_PREFIX + count + PART + kem.ciphertext_len() + share_len(mode) + PART + tail_len(mode))
    }

    /// The flight, then what is sealed in it, then the confirmation; with the length of the first.
    pub(super) fn decode(bytes: &'a [u8], mode: Mode, kem: Kem) -> Result<(Self, Parts<'a>), Error> {
        let clear_len = bytes.len().saturating_sub(tail_len(mode));
        let (clear, tail) = bytes.split_at(clear_len);
        let mut reader = Reader(clear);
        reader.magic(MAGIC_RESPONDER)?;
        let second = Second {
            suite: suite_from_id(reader.byte()?)?,
            offer: reader.offer()?,
            ephemeral: reader.array()?,
            ciphertext: reader.bytes(kem.ciphertext_len())?,
            share: reader.share(mode)?,
            nonce: reader.array()?,
        };
        reader.end()?;
        let mut reader = Reader(tail);
        let sealed = reader.bytes(tail_len(mode) - PART)?;
        let confirmation = reader.array()?;
        Ok((
            second,
            Parts {
                clear,
                sealed,
                confirmation,
            },
        ))
    }
}

/// Flight 2 taken apart.
pub(super) struct Parts<'a> {
    pub(super) clear: &'a [u8],
    /// The static key; empty with a code phrase.
    pub(super) sealed: &'a [u8],
    pub(super) confirmation: [u8; PART],
}

/// Length of flight 3.
pub(super) const fn third_len(mode: Mode) -> usize {
    let key = match mode {
        Mode::Code => 0,
        Mode::Keys => PART,
    };
    key + PART + Suite::TAG_LEN + PART
}

/// Flight 3: what is sealed, and the confirmation.
pub(super) fn split_third(bytes: &[u8]) -> Result<(&[u8], &[u8; PART]), Error> {
    bytes.split_last_chunk().ok_or(Error::Malformed { what: "length" })
}

const fn share_len(mode: Mode) -> usize {
    match mode {
        Mode::Code => PART,
        Mode::Keys => 0,
    }
}

/// Length of what stands behind the clear part of flight 2.
const fn tail_len(mode: Mode) -> usize {
    match mode {
        Mode::Code => PART,
        Mode::Keys => SEALED_KEY + PART,
    }
}
