//! Packets of one direction on their way out.

use std::io;

use crate::{CONTENTS_MAX, Error, HEADER_LEN, Kind, LENGTH_LEN, OVERHEAD, PacketSealer, TAG_LEN};

use super::TransportError;
use super::buffer::WriteBuffer;

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

pub(crate) struct Outgoing {
    sealer: PacketSealer,
    buffer: WriteBuffer,
    failed: bool,
    pub(crate) sent: Sent,
}

impl Outgoing {
    pub(crate) fn new(sealer: PacketSealer, limit: usize, sent: Sent) -> Self {
        Outgoing {
            sealer,
            buffer: WriteBuffer::new(limit),
            failed: false,
            sent,
        }
    }

    /// Bytes that wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.buffer.waiting()
    }

    /// Seals a packet of parts that lie apart. A packet number is used up, so nothing may come between this and telling the
    /// caller that the message was taken.
    pub(crate) fn seal(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), TransportError> {
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
        if let Err(error) = self.sealer.seal_in_place(kind, &[], &mut wire[start..]) {
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

    /// What is to be written before a message is taken; nothing if there is room.
    pub(crate) fn in_the_way(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.in_the_way())
    }

    /// What is to be written.
    pub(crate) fn rest(&self) -> Result<&[u8], TransportError> {
        self.check()?;
        Ok(self.buffer.rest())
    }

    /// Says how a write ended.
    pub(crate) fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError> {
        let written = written.and_then(|n| {
            if n == 0 {
                Err(io::ErrorKind::WriteZero.into())
            } else {
                Ok(n)
            }
        });
        self.failed |= written.is_err();
        self.buffer.wrote(written?);
        Ok(())
    }

    /// True if something was written that has not been flushed.
    pub(crate) fn is_unflushed(&self) -> bool {
        self.buffer.unflushed
    }

    /// Says how a flush, or the end of the direction, went.
    pub(crate) fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError> {
        self.failed |= done.is_err();
        self.buffer.unflushed &= done.is_err();
        Ok(done?)
    }

    fn check(&self) -> Result<(), TransportError> {
        if self.failed { Err(Error::Closed.into()) } else { Ok(()) }
    }
}
