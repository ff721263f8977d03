//! The framing of messages before BIP324: a header of 24 bytes, then the payload.
//!
//! ```text
//! magic       4 bytes
//! type       12 bytes, padded with zeros
//! length      4 bytes, little-endian
//! checksum    4 bytes, the first of SHA-256 of SHA-256 of the payload
//! ```

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
    /// The message type.
    pub command: Command,
    /// Bytes of payload that follow.
    pub payload_len: u32,
    /// What the payload's checksum is to be.
    pub checksum: [u8; 4],
}

impl Header {
    /// Reads a header of a network, for payloads of at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::V1Magic`] for another network, [`Error::V1TooLong`] above the limit, [`Error::V1CommandByte`] for a type
    /// with a byte outside 0x20 to 0x7e, or with one after its end. Each ends the connection.
    pub fn decode(magic: Magic, limit: u32, bytes: &[u8; HEADER_LEN]) -> Result<Self, Error> {
        let header = Self::fields(bytes);
        if header.magic != magic {
            return Err(Error::V1Magic { got: header.magic });
        }
        // BIP324 lets 0x7f through, v1 does not.
        if let Some(at) = header.command.iter().position(|byte| *byte == 0x7f) {
            return Err(Error::V1CommandByte { at, got: 0x7f });
        }
        let command = Command::from_wire(&header.command).map_err(|error| match error {
            Error::CommandByte { at, got } => Error::V1CommandByte { at, got },
            error => error,
        })?;
        if header.payload_len > limit {
            return Err(Error::V1TooLong {
                claimed: header.payload_len,
                limit,
            });
        }
        Ok(Header {
            magic,
            command,
            payload_len: header.payload_len,
            checksum: header.checksum,
        })
    }

    fn fields(bytes: &[u8; HEADER_LEN]) -> Fields {
        let mut fields = Fields {
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
        bytes[4..16].copy_from_slice(self.command.as_bytes());
        bytes[16..20].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[20..].copy_from_slice(&self.checksum);
        bytes
    }

    /// Sees that a payload is the one that the header is of.
    ///
    /// # Errors
    /// [`Error::V1Checksum`] if its length or its checksum is another.
    pub fn check(&self, payload: &[u8]) -> Result<(), Error> {
        if payload.len() as u64 == u64::from(self.payload_len) && checksum(payload) == self.checksum {
            Ok(())
        } else {
            Err(Error::V1Checksum)
        }
    }
}

struct Fields {
    magic: Magic,
    command: [u8; COMMAND_LEN],
    payload_len: u32,
    checksum: [u8; 4],
}

/// The checksum of a payload.
pub fn checksum(payload: &[u8]) -> [u8; 4] {
    let digest = Sha256::digest(Sha256::digest(payload));
    [digest[0], digest[1], digest[2], digest[3]]
}

/// Reads a whole message from the front of what has come; gives it with the bytes it has, or `None` if it is not whole.
///
/// A payload that is not whole costs no memory here, and is looked at once: keep the header meanwhile if it is long.
///
/// # Errors
/// As [`Header::decode`], and [`Error::V1Checksum`].
pub fn decode(magic: Magic, limit: u32, input: &[u8]) -> Result<Option<(Message<'_>, usize)>, Error> {
    let Some((header, rest)) = input.split_first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let header = Header::decode(magic, limit, header)?;
    let Some(payload) = rest.get(..header.payload_len as usize) else {
        return Ok(None);
    };
    header.check(payload)?;
    let message = Message {
        command: header.command,
        payload,
    };
    Ok(Some((message, HEADER_LEN + payload.len())))
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
        command: message.command,
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
        let (message, used) = decode(Magic::MAINNET, PAYLOAD_MAX, VERACK).unwrap().unwrap();
        assert_eq!(
            (message.command.name(), message.payload, used),
            ("verack", &b""[..], 24)
        );
        let mut out = Vec::new();
        encode(Magic::MAINNET, &message, &mut out).unwrap();
        assert_eq!(out, VERACK);
    }

    #[test]
    fn a_message_is_the_same_whatever_follows() {
        let message = Message {
            command: "ping".parse().unwrap(),
            payload: b"12345678",
        };
        let mut out = Vec::new();
        encode(Magic::SIGNET, &message, &mut out).unwrap();
        for n in 0..out.len() {
            assert_eq!(decode(Magic::SIGNET, PAYLOAD_MAX, &out[..n]), Ok(None), "{n}");
        }
        out.extend_from_slice(b"more");
        assert_eq!(decode(Magic::SIGNET, PAYLOAD_MAX, &out), Ok(Some((message, 32))));
        assert_eq!(decode(Magic::SIGNET, 8, &out), Ok(Some((message, 32))));
        let long = decode(Magic::SIGNET, 7, &out[..24]);
        assert_eq!(long, Err(Error::V1TooLong { claimed: 8, limit: 7 }));
    }

    #[test]
    fn every_flipped_bit_shows() {
        let message = Message {
            command: "ping".parse().unwrap(),
            payload: b"12345678",
        };
        let mut good = Vec::new();
        encode(Magic::SIGNET, &message, &mut good).unwrap();
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            match decode(Magic::SIGNET, 1000, &bad) {
                // A longer length: the rest is awaited.
                Ok(None) => assert!((128..160).contains(&bit), "{bit}"),
                // Another type.
                Ok(Some((other, _))) => assert!(other.command != message.command && (32..128).contains(&bit), "{bit}"),
                Err(_) => {}
            }
        }
        let mut del = *VERACK;
        del[5] = 0x7f;
        let refused = decode(Magic::MAINNET, 0, &del);
        assert_eq!(refused, Err(Error::V1CommandByte { at: 1, got: 0x7f }));
        del[5] = 0;
        let refused = decode(Magic::MAINNET, 0, &del);
        assert_eq!(refused, Err(Error::V1CommandByte { at: 2, got: b'r' }));
    }
}
