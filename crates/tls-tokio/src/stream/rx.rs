//! What is received: opened in the caller's room where that is large, in a small buffer of its own where not.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealway_tls::records::Records;
use tokio::io::{AsyncRead, ReadBuf};

use crate::Error;

/// Bytes of the own buffer: it holds one record of any length, and the beginning of another.
const BUFFER: usize = 32 << 10;
/// Room of the caller from which on records are opened there, bytes.
const DIRECT: usize = 64 << 10;

/// What was received and not yet taken.
pub(super) struct Rx {
    buf: Vec<u8>,
    /// Payload in `buf`.
    plain: Range<usize>,
    /// What is not opened, behind the payload.
    wire: Range<usize>,
    /// Whether `wire` may hold a whole record.
    fresh: bool,
    /// The peer has said that nothing follows.
    end: bool,
    /// What is to be said by the next read, since the last one had something to give.
    failed: Option<Error>,
}

impl Rx {
    /// After a handshake that has opened `early`, and behind which `received` came.
    pub(super) fn new(early: Vec<u8>, received: &[u8], closed: bool) -> Rx {
        let mut buf = early;
        let opened = buf.len();
        buf.extend_from_slice(received);
        Rx {
            plain: 0..opened,
            wire: opened..buf.len(),
            fresh: !closed && !received.is_empty(),
            end: closed,
            failed: None,
            buf,
        }
    }

    /// Fills the caller's room as far as there is something to fill it with: from how much came some callers, hyper among them, judge
    /// how much to ask for next.
    pub(super) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let before = into.filled().len();
        while into.remaining() > 0 {
            let step = self.poll_step(cx, io, records, into);
            let has_some = into.filled().len() > before;
            match step {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => break,
                Poll::Ready(Err(error)) if has_some => {
                    self.failed = Some(error);
                    break;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if has_some => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// `false`: nothing follows.
    fn poll_step<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<bool, Error>> {
        if !self.plain.is_empty() {
            self.take(into);
        } else if self.fresh {
            self.open(records)?;
        } else if self.end {
            return Poll::Ready(Ok(false));
        } else if into.remaining() < DIRECT {
            ready!(self.poll_fill(cx, io))?;
        } else {
            ready!(self.poll_direct(cx, io, records, into))?;
        }
        Poll::Ready(Ok(true))
    }

    fn take(&mut self, into: &mut ReadBuf<'_>) {
        let len = self.plain.len().min(into.remaining());
        into.put_slice(&self.buf[self.plain.start..self.plain.start + len]);
        self.plain.start += len;
    }

    /// Opens every whole record of the own buffer. There is no payload in it.
    fn open(&mut self, records: &mut Records) -> Result<(), Error> {
        self.fresh = false;
        let at = self.wire.start;
        let opened = records.open(&mut self.buf, at, self.wire.clone())?;
        self.plain = at..at + opened.produced;
        self.wire.start += opened.consumed;
        self.end = opened.end;
        Ok(())
    }

    /// Reads into the own buffer, in which there is at most the beginning of a record.
    fn poll_fill<S: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, io: &mut S) -> Poll<Result<(), Error>> {
        self.buf.copy_within(self.wire.clone(), 0);
        self.wire = 0..self.wire.len();
        self.plain = 0..0;
        self.buf.resize(BUFFER, 0);
        let mut room = ReadBuf::new(&mut self.buf[self.wire.end..]);
        ready!(Pin::new(io).poll_read(cx, &mut room))?;
        let got = room.filled().len();
        if got == 0 {
            return Poll::Ready(Err(cut_off()));
        }
        self.wire.end += got;
        self.fresh = true;
        Poll::Ready(Ok(()))
    }

    /// Reads into the caller's room, behind the beginning of a record if there is one, and opens what is whole there. The beginning of
    /// the next record comes into the own buffer.
    fn poll_direct<S: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
        into: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        let at = into.filled().len();
        into.put_slice(&self.buf[self.wire.clone()]);
        let held = into.filled().len();
        let read = Pin::new(io).poll_read(cx, into);
        let end = into.filled().len();
        // Until it is opened, nothing of it is there for the caller.
        let read = match read {
            Poll::Ready(Ok(())) if end > held => records.open(into.filled_mut(), at, at..end),
            read => {
                into.set_filled(at);
                return read.map(|read| Err(read.map_or_else(Error::Io, |()| cut_off())));
            }
        };
        let opened = read.inspect_err(|_| into.set_filled(at))?;
        self.keep(&into.filled()[at + opened.consumed..]);
        self.end = opened.end;
        into.set_filled(at + opened.produced);
        Poll::Ready(Ok(()))
    }

    fn keep(&mut self, rest: &[u8]) {
        self.buf.clear();
        self.buf.extend_from_slice(rest);
        (self.plain, self.wire) = (0..0, 0..rest.len());
    }
}

fn cut_off() -> Error {
    let what = "the connection ended without the end of its TLS (close_notify): something may be missing";
    Error::Io(io::Error::new(io::ErrorKind::UnexpectedEof, what))
}
