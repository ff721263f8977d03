//! The framing of messages before BIP324: a header of 24 bytes, then the payload.
//!
//! ```text
//! magic       4 bytes
//! type       12 bytes, padded with zeros
//! length      4 bytes, little-endian
//! checksum    4 bytes, the first of SHA-256 of SHA-256 of the payload
//! ```

use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::{Error, Magic};

use super::{COMMAND_LEN, Command, Message};

/// Bytes of a header.
pub const HEADER_LEN: usize = 24;

/// The longest payload that Bitcoin Core takes, bytes.
pub const PAYLOAD_MAX: u32 = 4_000_000;

/// A header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// The network.
    pub magic: Magic,
    /// The message type as it came, with its padding. [`Header::message`] looks at it.
    pub command: [u8; COMMAND_LEN],
    /// Bytes of payload that follow.
    pub payload_len: u32,
    /// What the payload's checksum is to be.
    pub checksum: [u8; 4],
}

impl Header {
    /// Reads a header of a network, for payloads of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::V1Magic`] for another network, [`Error::V1TooLong`] above the limit. Each ends the connection: where the next
    /// message begins is not known.
    pub fn decode(magic: Magic, limit: u32, bytes: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let header = Self::fields(bytes);
        if header.magic != magic {
            return Err(Error::V1Magic { got: header.magic });
        }
        if header.payload_len > limit {
            return Err(Error::V1TooLong {
                claimed: header.payload_len,
                limit,
            });
        }
        Ok(header)
    }

    fn fields(bytes: &[u8; HEADER_LEN]) -> Self {
        let mut fields = Header {
            magic: Magic([0; 4]),
            command: [0; COMMAND_LEN],
            payload_len: 0,
            checksum: [0; 4],
        };
        let mut length = [0; 4];
        let mut rest = &bytes[..];
        for field in [
            &mut fields.magic.0[..],
            &mut fields.command,
            &mut length,
            &mut fields.checksum,
        ] {
            let (head, tail) = rest.split_at(field.len());
            field.copy_from_slice(head);
            rest = tail;
        }
        fields.payload_len = u32::from_le_bytes(length);
        fields
    }

    /// The bytes of the header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..4].copy_from_slice(&self.magic.0);
        bytes[4..16].copy_from_slice(&self.command);
        bytes[16..20].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[20..].copy_from_slice(&self.checksum);
        bytes
    }

    /// The message of this header and its whole payload.
    ///
    /// # Errors
    /// [`Error::V1Checksum`] if the payload has another length or checksum, then [`Error::V1CommandByte`] for a type with a
    /// byte outside 0x20 to 0x7e, or with one after its end. As in Bitcoin Core, such a message is to be dropped, and the
    /// connection may go on.
    pub fn message<'a>(&self, payload: &'a [u8]) -> Result<Message<'a>, Error> {
        if payload.len() as u64 != u64::from(self.payload_len) || checksum(payload) != self.checksum {
            return Err(Error::V1Checksum);
        }
        // BIP324 lets 0x7f through, v1 does not.
        if let Some(at) = self.command.iter().position(|byte| *byte == 0x7f) {
            return Err(Error::V1CommandByte { at, got: 0x7f });
        }
        let command = Command::from_wire(&self.command).map_err(|error| match error {
            Error::CommandByte { at, got } => Error::V1CommandByte { at, got },
            error => error,
        })?;
        Ok(Message { command, payload })
    }
}

/// The checksum of a payload.
pub fn checksum(payload: &[u8]) -> [u8; 4] {
    let digest = Sha256::digest(Sha256::digest(payload));
    [digest[0], digest[1], digest[2], digest[3]]
}

/// A message at the front of what has come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decoded<'a> {
    /// The message, or why it is to be dropped: see [`Header::message`].
    pub message: Result<Message<'a>, Error>,
    /// Bytes of it, the header included: the next one follows.
    pub len: usize,
}

/// Reads a whole message from the front of what has come; `None` if it is not whole.
///
/// A payload that is not whole costs no memory here, and is looked at once: keep the header meanwhile if it is long.
///
/// # Errors
/// As [`Header::decode`].
pub fn decode(magic: Magic, limit: u32, input: &[u8]) -> Result<Option<Decoded<'_>>, Error> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let header = Header::decode(magic, limit, header)?;
    let Some(payload) = rest.get(..header.payload_len as usize) else {
        return Ok(None);
    };
    Ok(Some(Decoded {
        message: header.message(payload),
        len: HEADER_LEN + payload.len(),
    }))
}

/// Appends a message.
///
/// # Errors
/// [`Error::ContentsTooLong`] for a payload that the length cannot say; `out` is then as it was.
pub fn encode(magic: Magic, message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let got = message.payload.len();
    let Ok(payload_len) = u32::try_from(got) else {
        return Err(Error::ContentsTooLong {
            got,
            limit: u32::MAX as usize,
        });
    };
    let header = Header {
        magic,
        command: *message.command.as_bytes(),
        payload_len,
        checksum: checksum(message.payload),
    };
    out.reserve(HEADER_LEN + got);
    out.extend_from_slice(&header.encode());
    out.extend_from_slice(message.payload);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `verack` of Bitcoin, as it has been on the wire since 2009: its payload is empty, the checksum that of nothing.
    const VERACK: &[u8; 24] = b"\xf9\xbe\xb4\xd9verack\0\0\0\0\0\0\0\0\0\0\x5d\xf6\xe0\xe2";

    #[test]
    fn a_known_message_both_ways() {
        let decoded = decode(Magic::MAINNET, PAYLOAD_MAX, VERACK).unwrap().unwrap();
        let message = decoded.message.unwrap();
        assert_eq!(
            (message.command.name(), message.payload, decoded.len),
            ("verack", &b""[..], 24)
        );
        let mut out = Vec::new();
        encode(Magic::MAINNET, &message, &mut out).unwrap();
        assert_eq!(out, VERACK);
    }

    /// A ping and its wire form.
    fn ping() -> (Message<'static>, Vec<u8>) {
        let message = Message {
            command: "ping".parse().unwrap(),
            payload: b"12345678",
        };
        let mut out = Vec::new();
        encode(Magic::SIGNET, &message, &mut out).unwrap();
        (message, out)
    }

    #[test]
    fn a_message_is_the_same_whatever_follows() {
        let (message, mut out) = ping();
        for n in 0..out.len() {
            assert_eq!(decode(Magic::SIGNET, PAYLOAD_MAX, &out[..n]), Ok(None), "{n}");
        }
        out.extend_from_slice(b"more");
        let decoded = Decoded {
            message: Ok(message),
            len: 32,
        };
        assert_eq!(decode(Magic::SIGNET, PAYLOAD_MAX, &out), Ok(Some(decoded.clone())));
        assert_eq!(decode(Magic::SIGNET, 8, &out), Ok(Some(decoded)));
        let long = decode(Magic::SIGNET, 7, &out[..24]);
        assert_eq!(long, Err(Error::V1TooLong { claimed: 8, limit: 7 }));
    }

    #[test]
    fn every_flipped_bit_shows() {
        let (message, good) = ping();
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let decoded = decode(Magic::SIGNET, 1000, &bad);
            match bit / 8 {
                0..4 => assert!(matches!(decoded, Err(Error::V1Magic { .. })), "{bit}"),
                4..16 => {
                    let decoded = decoded.unwrap().unwrap();
                    assert_eq!(decoded.len, good.len());
                    match decoded.message {
                        Ok(other) => assert!(other.command != message.command, "{bit}"),
                        Err(error) => assert!(matches!(error, Error::V1CommandByte { .. }), "{bit}"),
                    }
                }
                16..20 => match decoded {
                    // A longer length: the rest is awaited. A shorter one: another payload.
                    Ok(None) | Err(Error::V1TooLong { .. }) => {}
                    other => assert_eq!(other.unwrap().unwrap().message, Err(Error::V1Checksum), "{bit}"),
                },
                _ => {
                    let dropped = Decoded {
                        message: Err(Error::V1Checksum),
                        len: good.len(),
                    };
                    assert_eq!(decoded, Ok(Some(dropped)), "{bit}");
                }
            }
        }
    }

    #[test]
    fn types_that_v1_does_not_allow() {
        for (byte, refused) in [
            (0x7f, Error::V1CommandByte { at: 1, got: 0x7f }),
            (0, Error::V1CommandByte { at: 2, got: b'r' }),
        ] {
            let mut verack = *VERACK;
            verack[5] = byte;
            let decoded = decode(Magic::MAINNET, 0, &verack).unwrap().unwrap();
            assert_eq!((decoded.message, decoded.len), (Err(refused), 24));
        }
    }
}
