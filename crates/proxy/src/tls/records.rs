//! TLS records after the handshake, opened and sealed in place.
//!
//! `rustls` does the handshake, the authentication and the key schedule. When it is through, the connection is taken
//! apart (`dangerous_into_kernel_connection`, made for kTLS) and the records are ours: a read of 84 KiB holds five of
//! them, which are opened where they lie, with no copy into a queue and no allocation a record; and a waiting
//! connection holds two keys and no buffers. Record layer: RFC 8446 section 5; RFC 5246 section 6.2, RFC 5288 and
//! RFC 7905 for TLS 1.2.
//!
//! Records that carry no payload (key updates, session tickets, warnings, empty ones) cost us work and the peer next to
//! nothing. After [`MAX_EMPTY`] of them in a row the connection is closed, as the libraries for TLS do it. Before the peer has
//! shown who it is they need not be in a row: [`MAX_EMPTY`] are all that it gets.

use std::ops::Range;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets, ProtocolVersion};
use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

use crate::Error;

/// Header of a record, bytes.
const HEADER: usize = 5;
/// Most plaintext in one record (RFC 8446 section 5.1).
pub(crate) const MAX_PLAIN: usize = 1 << 14;
/// Most ciphertext in one record (RFC 8446 section 5.2).
const MAX_SEALED: usize = MAX_PLAIN + 256;
/// Most of an unfinished post-handshake message that is kept, bytes. Session tickets are far smaller.
const MAX_HANDSHAKE: usize = 16 << 10;
/// Records sealed with one key before a key update: well below 2^24.5 (RFC 8446 section 5.5).
const UPDATE_AFTER: u64 = 1 << 23;
/// Records after which TLS 1.2, which cannot update its keys, is closed.
const LAST_RECORD: u64 = 1 << 24;

/// Records that may carry no payload.
const MAX_EMPTY: u32 = 32;

const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

/// The end of the handshake that remembers the key schedule.
pub(crate) enum Kernel {
    /// We dialled.
    Client(KernelConnection<ClientConnectionData>),
    /// We accepted.
    Server(KernelConnection<ServerConnectionData>),
}

/// One direction: number of the next record and what makes its nonce.
struct Counter {
    iv: [u8; 12],
    next: u64,
}

impl Counter {
    /// The initialisation vector XOR the record's number.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = self.iv;
        for (byte, count) in nonce[4..].iter_mut().zip(self.next.to_be_bytes()) {
            *byte ^= count;
        }
        nonce
    }
}

/// The record layer of one connection, both directions.
pub(crate) struct Records {
    tls13: bool,
    /// AES-GCM in TLS 1.2 sends eight bytes of the nonce with every record.
    explicit: usize,
    opening: OpeningKey,
    opened: Counter,
    sealing: SealingKey,
    sealed: Counter,
    kernel: Kernel,
    /// Beginning of a post-handshake message whose end has not arrived.
    handshake: Vec<u8>,
    /// Records to be sent because of what was received.
    pub(crate) reply: Vec<u8>,
    closed: bool,
    /// Records that carried no payload, since the last that did or, from a stranger, in all.
    empty: u32,
    trusted: bool,
}

/// What [`Records::open`] did.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// Bytes of the input that are done with.
    pub(crate) consumed: usize,
    /// Bytes written at the output position.
    pub(crate) produced: usize,
    /// The peer said that nothing follows.
    pub(crate) end: bool,
}

fn split(secrets: &ConnectionTrafficSecrets) -> Result<(Suite, &[u8], [u8; 12]), Error> {
    let (suite, key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Suite::ChaCha20Poly1305, key, iv),
        _ => return Err(Error::protocol("TLS", "agreed on a cipher we have no records for")),
    };
    let iv = iv
        .as_ref()
        .try_into()
        .map_err(|_| Error::protocol("TLS", "initialisation vector of another length"))?;
    Ok((suite, key.as_ref(), iv))
}

/// An error of the AEAD itself, which means that memory ran out or that this module is wrong.
fn internal(_: sealway_aead::Error) -> Error {
    Error::Tls(rustls::Error::General("record could not be sealed".into()))
}

impl Records {
    /// Takes over after the handshake.
    pub(crate) fn new(secrets: &ExtractedSecrets, kernel: Kernel) -> Result<Self, Error> {
        let version = match &kernel {
            Kernel::Client(kernel) => kernel.protocol_version(),
            Kernel::Server(kernel) => kernel.protocol_version(),
        };
        let tls13 = version == ProtocolVersion::TLSv1_3;
        let (suite, tx_key, tx_iv) = split(&secrets.tx.1)?;
        let (_, rx_key, rx_iv) = split(&secrets.rx.1)?;
        Ok(Records {
            tls13,
            explicit: if !tls13 && suite != Suite::ChaCha20Poly1305 {
                8
            } else {
                0
            },
            opening: OpeningKey::new(suite, rx_key).map_err(internal)?,
            opened: Counter {
                iv: rx_iv,
                next: secrets.rx.0,
            },
            sealing: SealingKey::new(suite, tx_key).map_err(internal)?,
            sealed: Counter {
                iv: tx_iv,
                next: secrets.tx.0,
            },
            kernel,
            handshake: Vec::new(),
            reply: Vec::new(),
            closed: false,
            empty: 0,
            trusted: false,
        })
    }

    /// The peer has shown who it is: records without payload count in a row only.
    pub(crate) fn trust(&mut self) {
        self.trusted = true;
        self.empty = 0;
    }

    /// Bytes that a record adds in front of its plaintext.
    pub(crate) fn front(&self) -> usize {
        HEADER + self.explicit
    }

    /// Seals a record around the plaintext that ends `buffer`; `at` is where [`Records::front`] bytes were left for it.
    ///
    /// At most [`MAX_PLAIN`] bytes may follow the gap.
    pub(crate) fn seal(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        if self.sealed.next >= UPDATE_AFTER && self.tls13 {
            // The plaintext that waits is moved behind the message that announces the new key.
            let mut update = Vec::new();
            self.key_update(&mut update, false)?;
            buffer.splice(at..at, update.iter().copied());
            return self.seal_as(APPLICATION, buffer, at + update.len());
        }
        self.seal_as(APPLICATION, buffer, at)
    }

    fn seal_as(&mut self, kind: u8, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        if self.sealed.next >= LAST_RECORD {
            return Err(Error::protocol("TLS", "sent as many records as one key may seal"));
        }
        let front = self.front();
        let plain = buffer.len() - at - front;
        if self.tls13 {
            buffer.push(kind);
        }
        let body = buffer.len() - at - front;
        let length = (self.explicit + body + Suite::TAG_LEN) as u16;
        let nonce = self.sealed.nonce();
        let outer = if self.tls13 { APPLICATION } else { kind };
        let mut header = [outer, 3, 3, 0, 0];
        header[3..].copy_from_slice(&length.to_be_bytes());
        let aad = Aad::new(self.tls13, &header, self.sealed.next, kind, plain);
        let nonce_once = Nonce::assume_unique(self.sealing.suite(), &nonce).map_err(internal)?;
        let tag = self
            .sealing
            .seal_in_place(nonce_once, aad.bytes(), &mut buffer[at + front..])
            .map_err(internal)?;
        buffer[at..at + HEADER].copy_from_slice(&header);
        if self.explicit > 0 {
            buffer[at + HEADER..at + front].copy_from_slice(&nonce[4..]);
        }
        buffer.extend_from_slice(tag.as_bytes());
        self.sealed.next += 1;
        Ok(())
    }

    /// Appends a record of another kind than application data.
    pub(super) fn push(&mut self, kind: u8, message: &[u8], buffer: &mut Vec<u8>) -> Result<(), Error> {
        let at = buffer.len();
        buffer.resize(at + self.front(), 0);
        buffer.extend_from_slice(message);
        self.seal_as(kind, buffer, at)
    }

    /// Appends `close_notify`.
    pub(crate) fn push_close(&mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.push(ALERT, &[1, 0], buffer)
    }

    /// Announces a new sending key and changes to it (RFC 8446 section 4.6.3).
    pub(crate) fn key_update(&mut self, buffer: &mut Vec<u8>, ask_peer: bool) -> Result<(), Error> {
        self.push(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(ask_peer)], buffer)?;
        let (next, secrets) = match &mut self.kernel {
            Kernel::Client(kernel) => kernel.update_tx_secret()?,
            Kernel::Server(kernel) => kernel.update_tx_secret()?,
        };
        let (suite, key, iv) = split(&secrets)?;
        self.sealing = SealingKey::new(suite, key).map_err(internal)?;
        self.sealed = Counter { iv, next };
        Ok(())
    }

    /// Opens every whole record of `buffer[input]`, writing the plaintext from `out` on, which lies before the input.
    ///
    /// # Errors
    /// [`Error::Protocol`] for a record that is too long, of the wrong kind, not authentic, or one too many without payload:
    /// the connection is to be closed. Nothing of a record that fails is kept.
    pub(crate) fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error> {
        let mut done = Opened {
            end: self.closed,
            ..Opened::default()
        };
        let mut at = input.start;
        while !self.closed {
            let Some(header) = buffer[at..input.end].first_chunk::<HEADER>().copied() else {
                break;
            };
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            if length > MAX_SEALED || header[1] != 3 {
                return Err(Error::protocol("TLS", "record too long or of an unknown version"));
            }
            if input.end - at - HEADER < length {
                break;
            }
            let body = at + HEADER;
            let (kind, plain) = self.open_one(&header, &mut buffer[body..body + length])?;
            let plain = body + plain.start..body + plain.end;
            let payload = kind == APPLICATION && !plain.is_empty();
            match kind {
                APPLICATION => {
                    let len = plain.len();
                    buffer.copy_within(plain, out + done.produced);
                    done.produced += len;
                }
                HANDSHAKE => self.post_handshake(&buffer[plain])?,
                ALERT => self.alert(&buffer[plain])?,
                _ => return Err(Error::protocol("TLS", "record of an unexpected kind")),
            }
            self.count(payload)?;
            at = body + length;
        }
        done.consumed = at - input.start;
        done.end = self.closed;
        Ok(done)
    }

    fn count(&mut self, payload: bool) -> Result<(), Error> {
        match payload {
            true if self.trusted => self.empty = 0,
            true => {}
            // The end is not one of them.
            false => self.empty += u32::from(!self.closed),
        }
        if self.empty > MAX_EMPTY {
            return Err(Error::protocol("TLS", "more than 32 records without payload"));
        }
        Ok(())
    }

    /// Opens one record's body in place; returns its kind and where in the body the plaintext lies.
    fn open_one(&mut self, header: &[u8; HEADER], body: &mut [u8]) -> Result<(u8, Range<usize>), Error> {
        let unauthentic = Error::protocol("TLS", "record is not authentic");
        if self.tls13 && header[0] != APPLICATION {
            return Err(Error::protocol("TLS", "record in the clear after the handshake"));
        }
        let Some(plain) = body.len().checked_sub(self.explicit + Suite::TAG_LEN) else {
            return Err(unauthentic);
        };
        let mut nonce = self.opened.nonce();
        if self.explicit > 0 {
            nonce[..4].copy_from_slice(&self.opened.iv[..4]);
            nonce[4..].copy_from_slice(&body[..self.explicit]);
        }
        let aad = Aad::new(self.tls13, header, self.opened.next, header[0], plain);
        let (sealed, tag) = body[self.explicit..].split_at_mut(plain);
        let tag = Tag::from_slice(tag).map_err(internal)?;
        if self.opening.open_in_place(&nonce, aad.bytes(), sealed, &tag).is_err() {
            return Err(unauthentic);
        }
        self.opened.next = self.opened.next.checked_add(1).ok_or(unauthentic)?;
        if !self.tls13 {
            return Ok((header[0], self.explicit..self.explicit + plain));
        }
        // The kind is the last byte that is not zero; zeros behind it are padding.
        match sealed.iter().rposition(|&byte| byte != 0) {
            Some(at) => Ok((sealed[at], 0..at)),
            None => Err(Error::protocol("TLS", "record without a kind")),
        }
    }

    fn alert(&mut self, message: &[u8]) -> Result<(), Error> {
        match message {
            [_, 0] => {
                self.closed = true;
                Ok(())
            }
            // `user_canceled` is followed by `close_notify`.
            [_, 90] => Ok(()),
            [_, description] => Err(Error::Tls(rustls::Error::AlertReceived((*description).into()))),
            _ => Err(Error::protocol("TLS", "alert of a wrong length")),
        }
    }

    /// Session tickets and key updates. Each may be spread over records, and several may share one.
    fn post_handshake(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !self.tls13 {
            // The one such message of TLS 1.2 is a wish to renegotiate, which may be ignored.
            return Ok(());
        }
        if self.handshake.len() + bytes.len() > MAX_HANDSHAKE {
            return Err(Error::protocol("TLS", "post-handshake message too long"));
        }
        self.handshake.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.handshake);
        let mut rest = pending.as_slice();
        while let [kind, a, b, c, tail @ ..] = rest {
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            let Some(message) = tail.get(..length) else { break };
            rest = &tail[length..];
            match (*kind, message) {
                (KEY_UPDATE, [wanted @ (0 | 1)]) => {
                    if !rest.is_empty() {
                        return Err(Error::protocol("TLS", "data of the old key after a key update"));
                    }
                    self.peer_updated(*wanted == 1)?;
                }
                (NEW_SESSION_TICKET, ticket) => {
                    if let Kernel::Client(kernel) = &mut self.kernel {
                        kernel.handle_new_session_ticket(ticket)?;
                    }
                }
                _ => return Err(Error::protocol("TLS", "unexpected post-handshake message")),
            }
        }
        if !rest.is_empty() {
            self.handshake = rest.to_vec();
        }
        Ok(())
    }

    fn peer_updated(&mut self, answer: bool) -> Result<(), Error> {
        let (next, secrets) = match &mut self.kernel {
            Kernel::Client(kernel) => kernel.update_rx_secret()?,
            Kernel::Server(kernel) => kernel.update_rx_secret()?,
        };
        let (suite, key, iv) = split(&secrets)?;
        self.opening = OpeningKey::new(suite, key).map_err(internal)?;
        self.opened = Counter { iv, next };
        // However often the peer asks before we have written, one answer is enough (RFC 8446 section 4.6.3).
        if answer && self.reply.is_empty() {
            let mut reply = Vec::new();
            self.key_update(&mut reply, false)?;
            self.reply = reply;
        }
        Ok(())
    }
}

/// Additional data of a record.
struct Aad {
    bytes: [u8; 13],
    len: usize,
}

impl Aad {
    fn new(tls13: bool, header: &[u8; HEADER], number: u64, kind: u8, plain: usize) -> Aad {
        let mut bytes = [0; 13];
        if tls13 {
            bytes[..HEADER].copy_from_slice(header);
            return Aad { bytes, len: HEADER };
        }
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..11].copy_from_slice(&[kind, 3, 3]);
        bytes[11..].copy_from_slice(&(plain as u16).to_be_bytes());
        Aad { bytes, len: 13 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
