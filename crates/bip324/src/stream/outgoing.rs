//! Messages of one direction on their way out.

use std::io;

use crate::message::{Message, v1};
use crate::{CONTENTS_MAX, Error, HEADER_LEN, Kind, LENGTH_LEN, Magic, OVERHEAD, PacketSealer, TAG_LEN};

use super::TransportError;
use crate::buffer::WriteBuffer;

/// What was sent in one direction, since the connection was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// Bytes sealed and taken for sending.
    pub bytes: u64,
    /// Messages, without the version packet.
    pub messages: u64,
    /// Decoys.
    pub decoys: u64,
}

/// What has bytes to be written.
pub trait Output {
    /// What is to be written.
    ///
    /// # Errors
    /// [`Error::Closed`] after a write failed.
    fn rest(&self) -> Result<&[u8], TransportError>;

    /// Says how a write ended. To have written nothing is a failure.
    ///
    /// # Errors
    /// That of the write: nothing more is to be written then.
    fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError>;

    /// True if something was written that has not been flushed.
    fn is_unflushed(&self) -> bool;

    /// Says how a flush went, or the end of the direction.
    ///
    /// # Errors
    /// That of the flush: nothing more is to be written then.
    fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError>;
}

/// A write of no bytes would be repeated for ever.
pub(super) fn some(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        written => written,
    }
}

/// One direction of a connection, on its way out: a [`PacketSealer`] makes packets of messages, a [`Magic`] messages of v1.
pub struct Outgoing<F> {
    framing: F,
    buffer: WriteBuffer,
    failed: bool,
    /// Something was written that has not been flushed.
    unflushed: bool,
    sent: Sent,
}

impl<F> Outgoing<F> {
    /// A direction that takes nothing more while `limit` bytes wait.
    pub fn new(framing: F, limit: usize) -> Self {
        Self::after(framing, limit, Sent::default())
    }

    pub(super) fn after(framing: F, limit: usize, sent: Sent) -> Self {
        Outgoing {
            framing,
            buffer: WriteBuffer::new(limit),
            failed: false,
            unflushed: false,
            sent,
        }
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    /// Bytes that wait to be written.
    pub fn waiting(&self) -> usize {
        self.buffer.waiting()
    }

    /// What is to be written before a message is taken; nothing if there is room.
    ///
    /// # Errors
    /// As [`Output::rest`].
    pub fn in_the_way(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.in_the_way())
    }

    fn check(&self) -> Result<(), TransportError> {
        if self.failed { Err(Error::Closed.into()) } else { Ok(()) }
    }
}

impl Outgoing<PacketSealer> {
    /// Seals a packet of parts that lie apart. A packet number is used up, so nothing may come between this and telling the
    /// caller that the message was taken.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] above 2^24 - 1 bytes, after which the direction may go on. Otherwise it is over.
    pub fn seal(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), TransportError> {
        self.check()?;
        let got = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        if got > CONTENTS_MAX {
            let limit = CONTENTS_MAX;
            return Err(Error::ContentsTooLong { got, limit }.into());
        }
        let wire = self.buffer.tail();
        let start = wire.len();
        wire.reserve(got + OVERHEAD);
        wire.extend_from_slice(&[0; LENGTH_LEN + HEADER_LEN]);
        for part in parts {
            wire.extend_from_slice(part);
        }
        wire.extend_from_slice(&[0; TAG_LEN]);
        if let Err(error) = self.framing.seal_in_place(kind, &[], &mut wire[start..]) {
            wire.truncate(start);
            self.failed = true;
            return Err(error.into());
        }
        self.sent.bytes += (got + OVERHEAD) as u64;
        match kind {
            Kind::Genuine => self.sent.messages += 1,
            Kind::Decoy => self.sent.decoys += 1,
        }
        Ok(())
    }
}

impl Outgoing<Magic> {
    /// Takes a message of v1.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] for a payload that a length cannot say, after which the direction may go on.
    pub fn encode(&mut self, message: &Message<'_>) -> Result<(), TransportError> {
        self.check()?;
        v1::encode(self.framing, message, self.buffer.tail())?;
        self.sent.messages += 1;
        self.sent.bytes += (v1::HEADER_LEN + message.payload.len()) as u64;
        Ok(())
    }
}

impl<F> Output for Outgoing<F> {
    fn rest(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.rest())
    }

    fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError> {
        let written = some(written);
        self.failed |= written.is_err();
        self.buffer.wrote(written?);
        self.unflushed = true;
        Ok(())
    }

    fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError> {
        self.failed |= done.is_err();
        self.unflushed &= done.is_err();
        Ok(done?)
    }
}
