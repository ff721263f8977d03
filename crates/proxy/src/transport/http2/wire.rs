//! The way between the library and a [`Stream`].
//!
//! The library flushes after every frame. What it writes is sealed at once and collected, and leaves when it has had its turn:
//! many frames, one system call. It reads as much as it can get, so each turn has an end.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::PIECE;
use crate::Error;
use crate::stream::Stream;
use crate::stream::adapter::{Io, io_error};

/// Sealed bytes that are collected before the socket has to take them.
const COLLECTED: usize = 128 << 10;

/// A turn that wrote this many bytes wrote much.
const MUCH: usize = 32 << 10;

/// Bytes that the library reads in one turn.
const TURN: usize = 256 << 10;

/// As [`TURN`], of a stranger: each may be the head of a request, which is larger once it is read.
const STRANGERS_TURN: usize = 16 << 10;

struct Inner {
    io: Io,
    /// Bytes that may still be read in this turn.
    left: usize,
    /// Bytes read so far.
    received: u64,
    trusted: bool,
    /// The last turn wrote much, so the next one likely does.
    much: bool,
}

/// A stream that the library and the driver of the connection share.
#[derive(Clone)]
pub(super) struct Wire(Arc<Mutex<Inner>>);

impl Wire {
    pub(super) fn new(stream: Stream) -> Self {
        Wire(Arc::new(Mutex::new(Inner {
            io: Io(stream),
            left: STRANGERS_TURN,
            received: 0,
            trusted: false,
            much: false,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer has shown who it is.
    pub(super) fn trust(&self) {
        let mut inner = self.inner();
        inner.trusted = true;
        inner.io.0.trust();
    }

    /// Bytes read so far.
    pub(super) fn received(&self) -> u64 {
        self.inner().received
    }

    /// Lets the library have its turn, then writes what it has said.
    pub(super) fn turn<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Result<Poll<T>, Error> {
        {
            let mut inner = self.inner();
            inner.left = if inner.trusted { TURN } else { STRANGERS_TURN };
        }
        let polled = poll(cx);
        let mut inner = self.inner();
        inner.much = inner.io.0.collected() >= MUCH;
        match inner.io.0.poll_flush(cx) {
            Poll::Ready(Err(error)) if polled.is_pending() => Err(error),
            _ => Ok(polled),
        }
    }

    /// Leaves in good order. The library must have let go of it.
    pub(super) async fn leave(self) {
        if let Some(inner) = Arc::into_inner(self.0) {
            let mut inner = inner.into_inner().unwrap_or_else(PoisonError::into_inner);
            inner.io.0.leave(&[]).await;
        }
    }

    /// Closes the connection at once, as one that broke.
    pub(super) fn reset_on_close(&self) {
        self.inner().io.0.carrier.reset_on_close();
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        if inner.left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut inner.io).poll_read(cx, into))?;
        let read = into.filled().len() - before;
        inner.left = inner.left.saturating_sub(read);
        inner.received += read as u64;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        let Inner { io, much, .. } = &mut *inner;
        let stream = &mut io.0;
        if stream.collected() >= COLLECTED {
            *much = true;
            ready!(stream.poll_flush(cx)).map_err(io_error)?;
        }
        if *much {
            stream.expect(COLLECTED + PIECE);
        }
        Poll::Ready(stream.seal_parts(parts, COLLECTED).map_err(io_error))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: see [`Wire::turn`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner().io).poll_shutdown(cx)
    }
}
