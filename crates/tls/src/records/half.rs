//! One direction of the record layer: a key, its counter, and how a record is laid out.

use std::ops::Range;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};
use zeroize::{Zeroize, Zeroizing};

use super::{ALERT, APPLICATION, HEADER, MAX_PLAIN, Version};
use crate::error::{Alert, Error};
use crate::schedule::Keys;

/// Records after which TLS 1.2, which cannot update its keys, is closed.
pub(super) const LAST_RECORD: u64 = 1 << 24;

/// An error of the AEAD itself, which means that memory ran out or that this module is wrong.
fn internal(_: sealway_aead::Error) -> Error {
    Error::Library("record could not be sealed")
}

/// Takes what was not sealed off the end of a buffer.
pub(super) fn take_back(buffer: &mut Vec<u8>, at: usize) {
    if let Some(plain) = buffer.get_mut(at..) {
        plain.zeroize();
    }
    buffer.truncate(at);
}

/// Number of the next record, and what makes its nonce.
struct Counter {
    iv: Zeroizing<[u8; 12]>,
    next: u64,
}

impl Counter {
    /// The initialisation vector XOR the record's number.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = *self.iv;
        for (byte, count) in nonce[4..].iter_mut().zip(self.next.to_be_bytes()) {
            *byte ^= count;
        }
        nonce
    }
}

/// AES-GCM in TLS 1.2 sends eight bytes of the nonce with every record.
fn explicit(version: Version, suite: Suite) -> usize {
    match version {
        Version::Tls12 if suite != Suite::ChaCha20Poly1305 => 8,
        _ => 0,
    }
}

/// Seals records, in their order.
pub struct Sealing {
    version: Version,
    key: SealingKey,
    counter: Counter,
}

impl Sealing {
    /// With these keys.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn new(version: Version, keys: &Keys) -> Result<Self, Error> {
        Ok(Sealing {
            version,
            key: SealingKey::new(keys.suite(), keys.key()).map_err(internal)?,
            counter: Counter {
                iv: Zeroizing::new(*keys.iv()),
                next: keys.next(),
            },
        })
    }

    /// Bytes that a record adds in front of its plaintext.
    pub fn front(&self) -> usize {
        HEADER + explicit(self.version, self.key.suite())
    }

    /// Number of the next record.
    pub(super) fn next(&self) -> u64 {
        self.counter.next
    }

    /// Seals a record of this kind around the plaintext that ends `buffer`; `at` is where [`Sealing::front`] bytes were left for it.
    ///
    /// # Errors
    /// [`Error::Given`] after as many records as one key may seal, the last of which is kept for an alert, or for a plaintext that
    /// no record can hold. Whatever fails, `buffer` then ends at `at`: plaintext that was not sealed is wiped.
    pub fn seal(&mut self, kind: u8, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        self.seal_padded(kind, 0, buffer, at)
    }

    fn seal_padded(&mut self, kind: u8, padding: usize, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        let sealed = self.try_to_seal(kind, padding, buffer, at);
        if sealed.is_err() {
            take_back(buffer, at);
        }
        sealed
    }

    fn try_to_seal(&mut self, kind: u8, padding: usize, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        if self.counter.next >= LAST_RECORD - u64::from(kind != ALERT) {
            return Err(Error::Given("sent as many records as one key may seal"));
        }
        let front = self.front();
        let plain = buffer.len().checked_sub(at + front);
        let plain = plain.ok_or(Error::Given("no room left for a record's header"))?;
        if plain + padding > MAX_PLAIN {
            return Err(Error::Given("a record that is too long"));
        }
        if self.version == Version::Tls13 {
            buffer.push(kind);
            buffer.resize(buffer.len() + padding, 0);
        }
        self.seal_content(kind, buffer, at)
    }

    /// Seals what is whole but for the header, however long.
    fn seal_content(&mut self, kind: u8, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        let tls13 = self.version == Version::Tls13;
        let front = self.front();
        let plain = buffer.len() - at - front;
        let length = (buffer.len() - at - HEADER + Suite::TAG_LEN) as u16;
        let nonce = self.counter.nonce();
        let mut header = [if tls13 { APPLICATION } else { kind }, 3, 3, 0, 0];
        header[3..].copy_from_slice(&length.to_be_bytes());
        let aad = Aad::new(self.version, &header, self.counter.next, plain);
        let once = Nonce::assume_unique(self.key.suite(), &nonce).map_err(internal)?;
        let body = &mut buffer[at + front..];
        let tag = self.key.seal_in_place(once, aad.bytes(), body).map_err(internal)?;
        buffer[at..at + HEADER].copy_from_slice(&header);
        buffer[at + HEADER..at + front].copy_from_slice(&nonce[4..][..front - HEADER]);
        buffer.extend_from_slice(tag.as_bytes());
        self.counter.next += 1;
        Ok(())
    }

    /// A record with content that no end of ours sends: too much of it, or without a kind.
    #[cfg(test)]
    pub(super) fn seal_any(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut wire = vec![0; self.front()];
        wire.extend_from_slice(content);
        self.seal_content(kind, &mut wire, 0).map(|()| wire).unwrap_or_default()
    }

    /// Appends a record.
    ///
    /// # Errors
    /// Those of [`Sealing::seal`].
    pub fn push(&mut self, kind: u8, message: &[u8], buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.push_padded(kind, message, 0, buffer)
    }

    /// Appends a record of TLS 1.3 whose header says that `length` bytes follow it: behind the message come zeros (RFC 8446
    /// section 5.4).
    ///
    /// # Errors
    /// [`Error::Given`] if the message does not fit in, or if no record is that long; those of [`Sealing::seal`].
    pub fn push_of_length(
        &mut self,
        kind: u8,
        message: &[u8],
        length: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if self.version != Version::Tls13 || length > MAX_PLAIN + 1 + Suite::TAG_LEN {
            return Err(Error::Given("a padded record that no end may send"));
        }
        let padding = length.checked_sub(message.len() + 1 + Suite::TAG_LEN);
        let padding = padding.ok_or(Error::Given("a message that does not fit in its record"))?;
        self.push_padded(kind, message, padding, buffer)
    }

    fn push_padded(&mut self, kind: u8, message: &[u8], padding: usize, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let at = buffer.len();
        buffer.resize(at + self.front(), 0);
        buffer.extend_from_slice(message);
        self.seal_padded(kind, padding, buffer, at)
    }
}

/// Opens records, in their order.
pub struct Opening {
    version: Version,
    key: OpeningKey,
    counter: Counter,
}

impl Opening {
    /// With these keys.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn new(version: Version, keys: &Keys) -> Result<Self, Error> {
        Ok(Opening {
            version,
            key: OpeningKey::new(keys.suite(), keys.key()).map_err(internal)?,
            counter: Counter {
                iv: Zeroizing::new(*keys.iv()),
                next: keys.next(),
            },
        })
    }

    /// Opens one record's body in place; returns its kind and where in the body the plaintext lies.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] for what was not sealed so; the body is then zeroed. [`Error::Peer`] for a record in the clear, one
    /// without a kind, or one with more than [`MAX_PLAIN`] bytes in it, padding and all.
    pub fn open(&mut self, header: &[u8; HEADER], body: &mut [u8]) -> Result<(u8, Range<usize>), Error> {
        let tls13 = self.version == Version::Tls13;
        if tls13 && header[0] != APPLICATION {
            return Err(Error::peer(
                Alert::UnexpectedMessage,
                "record in the clear after the handshake",
            ));
        }
        let explicit = explicit(self.version, self.key.suite());
        let Some(plain) = body.len().checked_sub(explicit + Suite::TAG_LEN) else {
            return Err(Error::Unauthentic);
        };
        let mut nonce = self.counter.nonce();
        if explicit > 0 {
            nonce[..4].copy_from_slice(&self.counter.iv[..4]);
            nonce[4..].copy_from_slice(&body[..explicit]);
        }
        let aad = Aad::new(self.version, header, self.counter.next, plain);
        let (sealed, tag) = body[explicit..].split_at_mut(plain);
        let tag = Tag::from_slice(tag).map_err(internal)?;
        if self.key.open_in_place(&nonce, aad.bytes(), sealed, &tag).is_err() {
            return Err(Error::Unauthentic);
        }
        self.counter.next = self.counter.next.checked_add(1).ok_or(Error::Unauthentic)?;
        // The kind is one byte of it in TLS 1.3 (RFC 8446 section 5.4).
        if plain > MAX_PLAIN + usize::from(tls13) {
            return Err(Error::peer(Alert::RecordOverflow, "more in a record than it may hold"));
        }
        if !tls13 {
            return Ok((header[0], explicit..explicit + plain));
        }
        // The kind is the last byte that is not zero; zeros behind it are padding.
        match sealed.iter().rposition(|&byte| byte != 0) {
            Some(at) => Ok((sealed[at], 0..at)),
            None => Err(Error::peer(Alert::UnexpectedMessage, "record without a kind")),
        }
    }
}

/// Additional data of a record.
struct Aad {
    bytes: [u8; 13],
    len: usize,
}

impl Aad {
    fn new(version: Version, header: &[u8; HEADER], number: u64, plain: usize) -> Aad {
        let mut bytes = [0; 13];
        if version == Version::Tls13 {
            bytes[..HEADER].copy_from_slice(header);
            return Aad { bytes, len: HEADER };
        }
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..11].copy_from_slice(&[header[0], 3, 3]);
        bytes[11..].copy_from_slice(&(plain as u16).to_be_bytes());
        Aad { bytes, len: 13 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
