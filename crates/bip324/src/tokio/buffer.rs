//! Buffers that are filled from a stream and emptied into one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::stream::{ReadBuffer, WriteBuffer};

impl ReadBuffer {
    /// Reads once, at least with room for more of a frame of `want` bytes; gives how many bytes came, 0 at the end of the
    /// stream. Memory follows what has come of the frame.
    pub(super) fn poll_fill<R: AsyncRead>(
        &mut self,
        cx: &mut Context<'_>,
        io: Pin<&mut R>,
        want: usize,
    ) -> Poll<io::Result<usize>> {
        let n = ready!(poll_read(cx, io, self.room(want)))?;
        self.came(n);
        Poll::Ready(Ok(n))
    }
}

/// Reads once; gives how many bytes came.
pub(super) fn poll_read<R: AsyncRead>(
    cx: &mut Context<'_>,
    io: Pin<&mut R>,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::new(room);
    ready!(io.poll_read(cx, &mut room))?;
    Poll::Ready(Ok(room.filled().len()))
}

impl WriteBuffer {
    /// Writes until there is room for a frame.
    pub(super) fn poll_room<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<io::Result<()>> {
        while !self.in_the_way().is_empty() {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes and flushes everything.
    pub(super) fn poll_flush<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<io::Result<()>> {
        while !self.rest().is_empty() {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        if self.unflushed {
            ready!(io.poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write<W: AsyncWrite>(&mut self, cx: &mut Context<'_>, io: Pin<&mut W>) -> Poll<io::Result<()>> {
        let n = ready!(io.poll_write(cx, self.rest()))?;
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.wrote(n);
        Poll::Ready(Ok(()))
    }
}
