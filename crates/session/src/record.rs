//! Records: what is sealed, how it is framed, and when its key is replaced.
//!
//! ```text
//! 0      key phase (bit 7), 0 (bit 6), kind (bits 5 to 0)
//! 1..4   payload length, big-endian, at most 2^20
//! 4..8   stream, big-endian
//! 8..    ciphertext of the payload, then a tag of 16 bytes
//! ```
//!
//! The header is the associated data. The nonce is the key's vector XOR the number of the record in its direction, which goes
//! on when the key changes and is not sent. The caller owns one buffer for header, payload and tag; sealing and opening work in it, and nothing is copied or
//! allocated.

mod epoch;
mod recv;
mod send;

pub(crate) use epoch::Epochs;
pub use recv::{Opened, RecvHalf};
pub use sealway_aead::RekeyPolicy;
pub use send::SendHalf;

pub use crate::terms::{MAX_KIND, MAX_PAYLOAD};

use crate::Error;

/// Bytes before the payload.
pub const HEADER_LEN: usize = 8;
/// Bytes after it.
pub const TAG_LEN: usize = 16;
/// What a record has beside its payload.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;
/// The kind of the closing record.
pub(crate) const CLOSE: u8 = 63;

/// The bit of the first byte that changes with the key.
const PHASE: u8 = 0x80;

/// How far a direction is.
#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    Open,
    Closed,
    Dead,
}

/// What a header says.
#[derive(Clone, Copy)]
struct Header {
    phase: bool,
    kind: u8,
    len: usize,
    stream: u32,
}

impl Header {
    /// The bytes; `len` is at most [`MAX_PAYLOAD`].
    fn encode(self) -> [u8; HEADER_LEN] {
        let [_, a, b, c] = u32::try_from(self.len).unwrap_or(u32::MAX).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        let phase = if self.phase { PHASE } else { 0 };
        [phase | self.kind, a, b, c, s, t, u, v]
    }

    fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let [first, a, b, c, s, t, u, v] = *bytes;
        let header = Header {
            phase: first & PHASE != 0,
            kind: first & !PHASE,
            len: usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX),
            stream: u32::from_be_bytes([s, t, u, v]),
        };
        let fits = match header.kind {
            0..=MAX_KIND => header.len <= MAX_PAYLOAD,
            CLOSE => header.len == 0 && header.stream == 0,
            _ => false,
        };
        if fits {
            Ok(header)
        } else {
            Err(Error::BadHeader { header: *bytes })
        }
    }
}
