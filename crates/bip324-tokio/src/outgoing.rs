//! Packets of one direction on their way out.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::AsyncWrite;

use crate::stream::Outgoing;

use super::TransportError;

impl Outgoing {
    /// Waits for room for a message.
    pub(super) fn poll_room<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<Result<(), TransportError>> {
        while !self.in_the_way()?.is_empty() {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes and flushes everything.
    pub(super) fn poll_flush<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<Result<(), TransportError>> {
        while !self.rest()?.is_empty() {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        if self.is_unflushed() {
            let done = ready!(io.poll_flush(cx));
            self.flushed(done)?;
        }
        Poll::Ready(Ok(()))
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
        Poll::Ready(self.flushed(done))
    }

    fn poll_write<W: AsyncWrite>(&mut self, cx: &mut Context<'_>, io: Pin<&mut W>) -> Poll<Result<(), TransportError>> {
        let written = ready!(io.poll_write(cx, self.rest()?));
        Poll::Ready(self.wrote(written))
    }
}
