//! The size field before each chunk, and the length of the padding behind it.

use sealway_aead::{OpeningKey, SealingKey, Suite};
use sha3::Shake128;
use sha3::digest::{ExtendableOutput, Update, XofReader};

use super::nonces::{Repeating, nonce_bytes};
use super::request::unauthentic;
use crate::{Error, Protocol};

/// Most padding behind a chunk, bytes.
pub const MAX_PADDING: usize = 63;
/// Bytes SHAKE128 gives at a time.
const RATE: usize = 168;

/// SHAKE128 of an IV, read as 16-bit words.
pub(super) struct Words {
    reader: sha3::Shake128Reader,
    block: [u8; RATE],
    at: usize,
}

impl Words {
    pub(super) fn new(iv: &[u8; 16]) -> Self {
        let mut hash = Shake128::default();
        hash.update(iv);
        Words {
            reader: hash.finalize_xof(),
            block: [0; RATE],
            at: RATE,
        }
    }

    pub(super) fn next(&mut self) -> u16 {
        if self.at >= RATE {
            self.reader.read(&mut self.block);
            self.at = 0;
        }
        let word = u16::from_be_bytes([self.block[self.at], self.block[self.at + 1]]);
        self.at += 2;
        word
    }
}

/// What the next chunk's framing draws from SHAKE128.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Draw {
    /// Bytes of padding behind the chunk.
    pub(super) padding: usize,
    /// XORed into the size.
    mask: u16,
}

/// The source of draws. The padding is drawn before the mask.
pub(super) struct Draws {
    words: Option<Box<Words>>,
    padded: bool,
    masked: bool,
}

impl Draws {
    pub(super) fn new(iv: &[u8; 16], padded: bool, masked: bool) -> Self {
        Draws {
            words: (padded || masked).then(|| Box::new(Words::new(iv))),
            padded,
            masked,
        }
    }

    pub(super) fn next(&mut self) -> Draw {
        let Some(words) = &mut self.words else {
            return Draw::default();
        };
        let padding = if self.padded { usize::from(words.next() % 64) } else { 0 };
        let mask = if self.masked { words.next() } else { 0 };
        Draw { padding, mask }
    }

    pub(super) fn are_padded(&self) -> bool {
        self.padded
    }
}

/// Writes size fields.
pub(super) enum SizeSealer {
    /// Two bytes, masked or not.
    Plain,
    /// The size less 16, sealed: 18 bytes.
    Sealed(Box<(SealingKey, Repeating)>),
}

impl SizeSealer {
    pub(super) fn len(&self) -> usize {
        match self {
            SizeSealer::Plain => 2,
            SizeSealer::Sealed(_) => 18,
        }
    }

    /// Writes the field of a chunk whose sealed payload and padding have `size` bytes. `out` has [`SizeSealer::len`] bytes.
    pub(super) fn write(&mut self, size: u16, draw: Draw, out: &mut [u8]) -> Result<(), Error> {
        match self {
            SizeSealer::Plain => out.copy_from_slice(&(size ^ draw.mask).to_be_bytes()),
            SizeSealer::Sealed(sealed) => {
                let (key, nonces) = &mut **sealed;
                let plain = size.wrapping_sub(Suite::TAG_LEN as u16).to_be_bytes();
                key.seal_to(nonces.next()?, &[], &plain, out)?;
            }
        }
        Ok(())
    }

    pub(super) fn sealed(suite: Suite, key: &[u8], iv: &[u8; 16]) -> Result<Self, Error> {
        let key = SealingKey::new(suite, key)?;
        Ok(SizeSealer::Sealed(Box::new((key, Repeating::new(suite, iv)?))))
    }
}

/// Reads size fields.
pub(super) enum SizeOpener {
    /// Two bytes, masked or not.
    Plain,
    /// The size less 16, sealed: 18 bytes.
    Sealed {
        /// Opens it.
        key: Box<OpeningKey>,
        /// The IV of the request.
        iv: [u8; 16],
        /// Number of the next field.
        number: u16,
    },
}

impl SizeOpener {
    pub(super) fn len(&self) -> usize {
        match self {
            SizeOpener::Plain => 2,
            SizeOpener::Sealed { .. } => 18,
        }
    }

    /// The bytes of sealed payload and padding that follow. `field` has [`SizeOpener::len`] bytes.
    pub(super) fn read(&mut self, field: &[u8], draw: Draw) -> Result<usize, Error> {
        let mut size = [0; 2];
        match self {
            SizeOpener::Plain => {
                size.copy_from_slice(field);
                Ok(usize::from(u16::from_be_bytes(size) ^ draw.mask))
            }
            SizeOpener::Sealed { key, iv, number } => {
                key.open_to(&nonce_bytes(*number, iv), &[], field, &mut size)
                    .map_err(unauthentic)?;
                *number = number.wrapping_add(1);
                Ok(usize::from(u16::from_be_bytes(size)) + Suite::TAG_LEN)
            }
        }
    }
}

/// The length a chunk's own bytes have, the padding taken off.
pub(super) fn without_padding(size: usize, draw: Draw, overhead: usize) -> Result<usize, Error> {
    match size.checked_sub(draw.padding) {
        Some(sealed) if sealed >= overhead => Ok(sealed),
        _ => Err(Protocol::Vmess.malformed("a chunk is shorter than its tag and padding")),
    }
}
