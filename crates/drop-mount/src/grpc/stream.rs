//! A sealed connection as a stream of bytes: what gRPC runs on.
//!
//! What is written becomes records of up to [`RECORD`] bytes, sealed in place. What comes is opened in place. An end of the
//! connection without the other end's closing record is [`io::ErrorKind::UnexpectedEof`], not an end of the stream.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealway_drop::Error;
use sealway_drop::cancel::Watch;
use sealway_drop::link::Connection;
use sealway_drop::wire::kind;
use sealway_session::record::{HEADER_LEN, OVERHEAD, Opened, RecvHalf, SendHalf, TAG_LEN};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes of content in one record sent.
pub const RECORD: usize = 256 << 10;

/// Two directions of records over a stream. All of them are of one kind and one stream number.
pub struct SealedStream<S> {
    inner: S,
    send: SendHalf,
    recv: RecvHalf,
    kind: u8,
    stream: u32,
    /// A sealed record, of which `sent` bytes are on their way.
    out: Vec<u8>,
    sent: usize,
    /// Bytes that came: `fresh` is sealed, `plain` is open and not taken yet.
    input: Vec<u8>,
    fresh: Range<usize>,
    plain: Range<usize>,
}

impl<S> SealedStream<S> {
    /// Goes on with a connection whose halves have been agreed on. `kind` is at most
    /// [`sealway_session::record::MAX_KIND`]; records of another kind or number than these are an error.
    pub fn new(inner: S, send: SendHalf, recv: RecvHalf, kind: u8, stream: u32) -> Self {
        let input = vec![0; 2 * (RECORD + OVERHEAD)];
        Self {
            inner,
            send,
            recv,
            kind,
            stream,
            out: Vec::new(),
            sent: 0,
            input,
            fresh: 0..0,
            plain: 0..0,
        }
    }
}

impl SealedStream<TcpStream> {
    /// Goes on with a connection of a session, inside a runtime; with what keeps it under its switch.
    pub(crate) fn of(connection: Connection) -> Result<(Self, Arc<Watch>), Error> {
        let (stream, send, recv, _, watch) = connection.into_parts();
        Ok((Self::new(of_tokio(stream)?, send, recv, kind::TUNNEL, 0), watch))
    }
}

/// For use inside a runtime.
pub(super) fn of_tokio(stream: std::net::TcpStream) -> Result<TcpStream, Error> {
    let made = stream
        .set_nonblocking(true)
        .and_then(|()| stream.set_nodelay(true))
        .and_then(|()| TcpStream::from_std(stream));
    made.map_err(Error::network("opening a connection"))
}

fn fault(error: sealway_session::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl<S: AsyncRead + Unpin> SealedStream<S> {
    /// Opens the next record if all of it is there. Otherwise the number of bytes that a record needs from the start of
    /// `fresh` on, as far as is known.
    fn open(&mut self) -> io::Result<Result<(), usize>> {
        let fresh = &mut self.input[self.fresh.clone()];
        let Some(header) = fresh.first_chunk::<HEADER_LEN>() else {
            return Ok(Err(HEADER_LEN));
        };
        let len = self.recv.record_len(header).map_err(fault)?;
        let Some(record) = fresh.get_mut(..len) else {
            return Ok(Err(len));
        };
        match self.recv.open(record).map_err(fault)? {
            Opened::Data { kind, stream, payload } if (kind, stream) == (self.kind, self.stream) => {
                self.plain = self.fresh.start + payload.start..self.fresh.start + payload.end;
            }
            Opened::Data { .. } => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a record of another stream"));
            }
            Opened::Close => {}
        }
        self.fresh.start += len;
        Ok(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SealedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if !this.plain.is_empty() {
                let len = this.plain.len().min(buf.remaining());
                buf.put_slice(&this.input[this.plain.start..this.plain.start + len]);
                this.plain.start += len;
                return Poll::Ready(Ok(()));
            }
            if this.recv.is_closed() {
                return Poll::Ready(Ok(()));
            }
            let needed = match this.open()? {
                Ok(()) => continue,
                Err(needed) => needed,
            };
            // Room for the whole record: at the front, since everything before `fresh` has been taken.
            if this.fresh.is_empty() {
                this.fresh = 0..0;
            } else if this.input.len() - this.fresh.start < needed {
                this.input.copy_within(this.fresh.clone(), 0);
                this.fresh = 0..this.fresh.len();
            }
            if this.input.len() < needed {
                // Bounded by what `record_len` takes.
                this.input.resize(needed, 0);
            }
            let mut room = ReadBuf::new(&mut this.input[this.fresh.end..]);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut room))?;
            let read = room.filled().len();
            if read == 0 {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the connection ended without being closed",
                )));
            }
            this.fresh.end += read;
        }
    }
}

impl<S: AsyncWrite + Unpin> SealedStream<S> {
    /// Sends what is sealed.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            let sent = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.out[self.sent..]))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SealedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_drain(cx))?;
        let len = bufs.iter().map(|buf| buf.len()).sum::<usize>().min(RECORD);
        if len == 0 {
            return Poll::Ready(Ok(0));
        }
        this.out.reserve(OVERHEAD + len);
        this.out.resize(HEADER_LEN, 0);
        for buf in bufs {
            let left = HEADER_LEN + len - this.out.len();
            this.out.extend_from_slice(&buf[..buf.len().min(left)]);
        }
        this.out.resize(this.out.len() + TAG_LEN, 0);
        if let Err(error) = this.send.seal(this.kind, this.stream, &mut this.out) {
            // Never sent as it stands.
            this.out.clear();
            return Poll::Ready(Err(fault(error)));
        }
        // Taken, whether or not it can be sent at once; an error comes back with the next call.
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(len)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(this.poll_drain(cx))?;
        if !this.send.is_closed() {
            let record = this.send.close().map_err(fault)?;
            this.out.extend_from_slice(&record);
            ready!(this.poll_drain(cx))?;
        }
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}
