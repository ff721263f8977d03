//! TLS records after the handshake, opened and sealed in place.
//!
//! A read of 84 KiB holds five of them, which are opened where they lie, with no copy into a queue and no allocation a record; and
//! a waiting connection holds two keys and no buffers. Record layer: RFC 8446 section 5; RFC 5246 section 6.2, RFC 5288 and
//! RFC 7905 for TLS 1.2. Who did the handshake does not matter: whoever knows its key schedule is a [`Schedule`].
//!
//! Records that carry no payload (key updates, session tickets, warnings, empty ones) cost us work and the peer next to
//! nothing. After [`MAX_EMPTY`] of them in a row the connection is closed, as the libraries for TLS do it. Before the peer has
//! shown who it is they need not be in a row: [`MAX_EMPTY`] are all that it gets.
//!
//! Each direction can end by itself ([`Records::end_opening`], [`Records::end_sealing`]), for what goes on without TLS on the same
//! connection. [`Records::open_some`] then opens no further than the caller has looked.

mod half;

use std::ops::Range;

use crate::codec::Kind;
use crate::error::{Alert, Error, unexpected};
use crate::schedule::{Keys, TrafficSecret};

pub use crate::codec::record::{ALERT, APPLICATION, HANDSHAKE, HEAD as HEADER, MAX_PLAIN, MAX_SEALED};
pub use half::{Opening, Sealing};

/// Longest message after the handshake, bytes. Session tickets are far smaller.
pub const MAX_HANDSHAKE: usize = 16 << 10;
/// Records that may carry no payload.
pub const MAX_EMPTY: u32 = 32;
/// Records sealed with one key before a key update: well below 2^24.5 (RFC 8446 section 5.5).
const UPDATE_AFTER: u64 = 1 << 23;

const NEW_SESSION_TICKET: u8 = Kind::NEW_SESSION_TICKET.0;
const KEY_UPDATE: u8 = Kind::KEY_UPDATE.0;

/// Which record layer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// TLS 1.2
    Tls12,
    /// TLS 1.3
    Tls13,
}

/// Who remembers the key schedule of a handshake.
pub trait Schedule: Send + Sync {
    /// The keys to send with after those in use.
    ///
    /// # Errors
    /// If there are none: TLS 1.2 has none.
    fn next_sending(&mut self) -> Result<Keys, Error>;

    /// The keys to receive with after those in use.
    ///
    /// # Errors
    /// As above.
    fn next_receiving(&mut self) -> Result<Keys, Error>;

    /// Whether the peer may send session tickets: a server may.
    fn takes_tickets(&self) -> bool;

    /// A session ticket came: the body of its message.
    ///
    /// # Errors
    /// [`Error::Peer`] if it is malformed.
    fn ticket(&mut self, ticket: &[u8]) -> Result<(), Error>;
}

/// The record layer of one connection, both directions.
pub struct Records {
    version: Version,
    /// `None` when the direction has ended.
    opening: Option<Opening>,
    sealing: Option<Sealing>,
    schedule: Box<dyn Schedule>,
    /// Beginning of a post-handshake message whose end has not arrived.
    handshake: Vec<u8>,
    /// Records to be sent because of what was received.
    pub reply: Vec<u8>,
    closed: bool,
    /// A record could not be opened: none is opened any more.
    failed: bool,
    /// Records that carried no payload, since the last that did or, from a stranger, in all.
    empty: u32,
    trusted: bool,
}

/// What [`Records::open`] did.
#[derive(Debug, Default)]
pub struct Opened {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes written at the output position.
    pub produced: usize,
    /// The peer said that nothing follows.
    pub end: bool,
}

const OPENING_ENDED: Error = Error::Given("opened after the end of TLS in this direction");
const FAILED: Error = Error::Given("opened after a record that could not be");
const SEALING_ENDED: Error = Error::Given("a record after the end of TLS in this direction");

impl Records {
    /// Takes over after a handshake.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn new(version: Version, sending: &Keys, receiving: &Keys, schedule: Box<dyn Schedule>) -> Result<Self, Error> {
        Ok(Records {
            version,
            opening: Some(Opening::new(version, receiving)?),
            sealing: Some(Sealing::new(version, sending)?),
            schedule,
            handshake: Vec::new(),
            reply: Vec::new(),
            closed: false,
            failed: false,
            empty: 0,
            trusted: false,
        })
    }

    /// Takes over after a handshake of this crate, by the secrets of the application's records. `tickets` says whether the peer may
    /// send session tickets, as a server may; they are not kept.
    ///
    /// # Errors
    /// [`Error::Library`] if memory ran out.
    pub fn after(sending: TrafficSecret, receiving: TrafficSecret, tickets: bool) -> Result<Self, Error> {
        let (tx, rx) = (sending.keys(), receiving.keys());
        let own = Own {
            sending,
            receiving,
            tickets,
        };
        Records::new(Version::Tls13, &tx, &rx, Box::new(own))
    }

    /// The version of its records.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The peer has shown who it is: records without payload count in a row only.
    pub fn trust(&mut self) {
        self.trusted = true;
        self.empty = 0;
    }

    /// Bytes that a record adds in front of its plaintext; none if nothing is sealed any more.
    pub fn front(&self) -> usize {
        self.sealing.as_ref().map_or(0, Sealing::front)
    }

    /// Seals a record around the plaintext that ends `buffer`; `at` is where [`Records::front`] bytes were left for it.
    ///
    /// At most [`MAX_PLAIN`] bytes may follow the gap.
    ///
    /// # Errors
    /// Those of [`Sealing::seal`]; [`Error::Given`] after [`Records::end_sealing`]. Whatever fails, `buffer` then ends at `at`.
    pub fn seal(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        let sealed = self.try_to_seal(buffer, at);
        if sealed.is_err() {
            half::take_back(buffer, at);
        }
        sealed
    }

    fn try_to_seal(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<(), Error> {
        let sealing = self.sealing.as_mut().ok_or(SEALING_ENDED)?;
        if self.version == Version::Tls12 || sealing.next() < UPDATE_AFTER {
            return sealing.seal(APPLICATION, buffer, at);
        }
        // The plaintext that waits is moved behind the message that announces the new key.
        let mut update = Vec::new();
        self.key_update(&mut update, false)?;
        buffer.splice(at..at, update.iter().copied());
        self.sealing
            .as_mut()
            .ok_or(SEALING_ENDED)?
            .seal(APPLICATION, buffer, at + update.len())
    }

    /// Appends a record of another kind than application data.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub fn push(&mut self, kind: u8, message: &[u8], buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.sealing.as_mut().ok_or(SEALING_ENDED)?.push(kind, message, buffer)
    }

    /// Appends a record of TLS 1.3 that carries nothing and whose header says that `length` bytes follow it.
    ///
    /// # Errors
    /// [`Error::Given`] for a length that no such record has: 17 is the least, and 16,401 the most.
    pub fn push_nothing(&mut self, length: usize, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let sealing = self.sealing.as_mut().ok_or(SEALING_ENDED)?;
        sealing.push_of_length(APPLICATION, b"", length, buffer)
    }

    /// Appends `close_notify`.
    ///
    /// # Errors
    /// As [`Records::seal`].
    pub fn push_close(&mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.push(ALERT, &Alert::CloseNotify.message(), buffer)
    }

    /// Announces a new sending key and changes to it (RFC 8446 section 4.6.3).
    ///
    /// # Errors
    /// As [`Records::seal`], and those of the schedule.
    pub fn key_update(&mut self, buffer: &mut Vec<u8>, ask_peer: bool) -> Result<(), Error> {
        self.push(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, u8::from(ask_peer)], buffer)?;
        self.sealing = Some(Sealing::new(self.version, &self.schedule.next_sending()?)?);
        Ok(())
    }

    /// What is sent from here on is no TLS. The key is wiped; no reply is made any more.
    pub fn end_sealing(&mut self) {
        self.sealing = None;
    }

    /// What was not opened yet, and all that follows, is no TLS. The key is wiped.
    ///
    /// # Errors
    /// [`Error::Peer`] if the beginning of a message was received, which then has no end.
    pub fn end_opening(&mut self) -> Result<(), Error> {
        self.opening = None;
        match self.handshake.is_empty() {
            true => Ok(()),
            false => Err(unexpected("a message without its end")),
        }
    }

    /// True if what comes is no TLS any more.
    pub fn has_ended_opening(&self) -> bool {
        self.opening.is_none()
    }

    /// True if what is sent is no TLS any more.
    pub fn has_ended_sealing(&self) -> bool {
        self.sealing.is_none()
    }

    /// Opens every whole record of `buffer[input]`, writing the plaintext from `out` on, which lies before the input.
    ///
    /// # Errors
    /// [`Error::Peer`] or [`Error::Unauthentic`] for a record that is too long, of the wrong kind, not authentic, or one too many
    /// without payload: the connection is to be closed. Nothing of a record that fails is kept. [`Error::Given`] after
    /// [`Records::end_opening`].
    pub fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error> {
        self.open_some(buffer, out, input, usize::MAX)
    }

    /// As [`Records::open`], but stops behind so many records with payload, for a caller that has to look at each before it knows
    /// whether what follows is TLS.
    ///
    /// # Errors
    /// Those of [`Records::open`].
    pub fn open_some(
        &mut self,
        buffer: &mut [u8],
        out: usize,
        input: Range<usize>,
        most: usize,
    ) -> Result<Opened, Error> {
        if self.failed {
            return Err(FAILED);
        }
        let opened = self.try_to_open(buffer, out, input, most);
        self.failed = opened.is_err();
        opened
    }

    fn try_to_open(
        &mut self,
        buffer: &mut [u8],
        out: usize,
        input: Range<usize>,
        mut most: usize,
    ) -> Result<Opened, Error> {
        let mut done = Opened::default();
        if self.opening.is_none() {
            return Err(OPENING_ENDED);
        }
        let mut at = input.start;
        while !self.closed && most > 0 {
            let Some(header) = buffer[at..input.end].first_chunk::<HEADER>().copied() else {
                break;
            };
            let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
            if header[1] != 3 {
                return Err(Error::peer(Alert::ProtocolVersion, "record of an unknown version"));
            }
            if length > MAX_SEALED {
                return Err(Error::peer(Alert::RecordOverflow, "record too long"));
            }
            if input.end - at - HEADER < length {
                break;
            }
            let opening = self.opening.as_mut().ok_or(OPENING_ENDED)?;
            let body = at + HEADER;
            let (kind, plain) = opening.open(&header, &mut buffer[body..body + length])?;
            let plain = body + plain.start..body + plain.end;
            let payload = kind == APPLICATION && !plain.is_empty();
            // RFC 8446 section 5.1: nothing stands inside of a message, and no part of one is empty.
            match kind {
                HANDSHAKE if plain.is_empty() => return Err(unexpected("a part of a message with nothing in it")),
                APPLICATION | ALERT if !self.handshake.is_empty() => {
                    return Err(unexpected("a record of another kind inside of a message"));
                }
                APPLICATION => {
                    let len = plain.len();
                    buffer.copy_within(plain, out + done.produced);
                    done.produced += len;
                }
                HANDSHAKE => self.post_handshake(&buffer[plain])?,
                ALERT => self.alert(&buffer[plain])?,
                _ => return Err(unexpected("record of an unexpected kind")),
            }
            self.count(payload)?;
            most -= usize::from(payload);
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
            return Err(unexpected("more than 32 records without payload"));
        }
        Ok(())
    }

    fn alert(&mut self, message: &[u8]) -> Result<(), Error> {
        match message {
            [_, 0] => {
                self.closed = true;
                Ok(())
            }
            // `user_canceled` is followed by `close_notify`.
            [_, 90] => Ok(()),
            [_, description] => Err(Error::Alerted(*description)),
            _ => Err(Error::peer(Alert::DecodeError, "alert of a wrong length")),
        }
    }

    /// Session tickets and key updates. Each may be spread over records, and several may share one.
    fn post_handshake(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.version == Version::Tls12 {
            // The one such message of TLS 1.2 is a wish to renegotiate, which may be ignored.
            return Ok(());
        }
        self.handshake.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.handshake);
        let mut rest = pending.as_slice();
        while let [kind, head @ ..] = rest {
            // What must not come is refused before the rest of it has come.
            let most = match *kind {
                KEY_UPDATE => 1,
                NEW_SESSION_TICKET if self.schedule.takes_tickets() => MAX_HANDSHAKE,
                NEW_SESSION_TICKET => return Err(unexpected("a session ticket from a client")),
                _ => return Err(unexpected("unexpected post-handshake message")),
            };
            let [a, b, c, tail @ ..] = head else { break };
            let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > most {
                return Err(unexpected("post-handshake message too long"));
            }
            let Some(message) = tail.get(..length) else { break };
            rest = &tail[length..];
            match (*kind, message) {
                (KEY_UPDATE, [wanted @ (0 | 1)]) => {
                    if !rest.is_empty() {
                        return Err(unexpected("data of the old key after a key update"));
                    }
                    self.peer_updated(*wanted == 1)?;
                }
                (KEY_UPDATE, _) => return Err(Error::peer(Alert::IllegalParameter, "a key update that means nothing")),
                (_, ticket) => self.schedule.ticket(ticket)?,
            }
        }
        if !rest.is_empty() {
            self.handshake = rest.to_vec();
        }
        Ok(())
    }

    fn peer_updated(&mut self, answer: bool) -> Result<(), Error> {
        self.opening = Some(Opening::new(self.version, &self.schedule.next_receiving()?)?);
        // However often the peer asks before we have written, one answer is enough (RFC 8446 section 4.6.3).
        if answer && self.reply.is_empty() && self.sealing.is_some() {
            let mut reply = Vec::new();
            self.key_update(&mut reply, false)?;
            self.reply = reply;
        }
        Ok(())
    }
}

/// The schedule of a handshake of this crate.
struct Own {
    sending: TrafficSecret,
    receiving: TrafficSecret,
    tickets: bool,
}

impl Schedule for Own {
    fn next_sending(&mut self) -> Result<Keys, Error> {
        self.sending = self.sending.updated();
        Ok(self.sending.keys())
    }

    fn next_receiving(&mut self) -> Result<Keys, Error> {
        self.receiving = self.receiving.updated();
        Ok(self.receiving.keys())
    }

    fn takes_tickets(&self) -> bool {
        self.tickets
    }

    fn ticket(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
