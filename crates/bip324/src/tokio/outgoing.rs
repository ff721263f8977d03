//! Packets of one direction on their way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::AsyncWrite;

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

pub(super) struct Outgoing {
    sealer: PacketSealer,
    buffer: WriteBuffer,
    failed: bool,
    pub(super) sent: Sent,
}

impl Outgoing {
    pub(super) fn new(sealer: PacketSealer, limit: usize, sent: Sent) -> Self {
        Outgoing {
            sealer,
            buffer: WriteBuffer::new(limit),
            failed: false,
            sent,
        }
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.waiting()
    }

    /// Seals a packet of parts that lie apart. A packet number is used up, so nothing may come between this and telling the
    /// caller that the message was taken.
    pub(super) fn seal(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), TransportError> {
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

    /// Waits for room for a message.
    pub(super) fn poll_room<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        io: Pin<&mut W>,
    ) -> Poll<Result<(), TransportError>> {
        self.check()?;
        let done = ready!(self.buffer.poll_room(cx, io));
        Poll::Ready(self.noted(done))
    }

    /// Writes and flushes everything.
    pub(super) fn poll_flush<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        io: Pin<&mut W>,
    ) -> Poll<Result<(), TransportError>> {
        self.check()?;
        let done = ready!(self.buffer.poll_flush(cx, io));
        Poll::Ready(self.noted(done))
    }

    /// Writes what can be written at once.
    pub(super) fn push<W: AsyncWrite>(&mut self, cx: &mut Context<'_>, io: Pin<&mut W>) -> Result<(), TransportError> {
        match self.poll_flush(cx, io) {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
    }

    /// Writes everything, then ends the direction.
    pub(super) fn poll_shutdown<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<Result<(), TransportError>> {
        ready!(self.poll_flush(cx, io.as_mut()))?;
        let done = ready!(io.poll_shutdown(cx));
        Poll::Ready(self.noted(done))
    }

    fn noted(&mut self, done: std::io::Result<()>) -> Result<(), TransportError> {
        self.failed |= done.is_err();
        Ok(done?)
    }

    fn check(&self) -> Result<(), TransportError> {
        if self.failed { Err(Error::Closed.into()) } else { Ok(()) }
    }
}
