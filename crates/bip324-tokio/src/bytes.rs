//! A stream of bytes, carried in packets.

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealway_bip324::stream::TransportError;
use sealway_bip324::{Error, Kind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Messages;
use crate::outgoing::{poll_flush, poll_room, poll_shutdown, push};

/// Most bytes of a stream in a packet.
pub const BYTES_PER_PACKET: usize = 16 * 1024;

/// How far the peer's direction has come.
enum End {
    Open,
    /// The peer has ended it.
    Ended,
    /// Something follows the end.
    Exceeded,
}

/// A stream of bytes over a v2 connection, for programs of which both ends are one's own. It is not what Bitcoin nodes
/// speak.
///
/// The mapping:
///
/// - the contents of the genuine packets of a direction, one after the other, are the bytes; boundaries of packets mean
///   nothing, and there is no message type;
/// - a packet carries 1 to [`BYTES_PER_PACKET`] bytes when written here, and any number when read;
/// - a genuine packet without contents ends the direction. Nothing may follow it, and no decoy is sent after it. [`AsyncWrite::poll_shutdown`] sends it and
///   then ends the direction underneath.
///
/// So the end is as authentic as the bytes: a stream that ends without that packet was cut off, and reading it gives
/// [`io::ErrorKind::UnexpectedEof`] after the last byte.
///
/// Each write is sealed at once and written as far as possible; `poll_flush` waits for the rest. `tokio::io::split` makes
/// halves.
pub struct ByteStream<IO> {
    messages: Messages<IO>,
    /// What is left of the packet at the front.
    unread: Range<usize>,
    incoming: End,
    /// This end has.
    shut: bool,
}

impl<IO> ByteStream<IO> {
    /// Bytes from here on. Both ends begin at the same place: before their first message, for example.
    pub const fn new(messages: Messages<IO>) -> Self {
        ByteStream {
            messages,
            unread: 0..0,
            incoming: End::Open,
            shut: false,
        }
    }

    /// The connection underneath, for its session id and counters.
    pub const fn messages(&self) -> &Messages<IO> {
        &self.messages
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for ByteStream<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        while this.unread.is_empty() {
            match this.incoming {
                End::Open => {}
                End::Ended => return Poll::Ready(Ok(())),
                End::Exceeded => return Poll::Ready(Err(TransportError::AfterEnd.into())),
            }
            let Messages { io, incoming, .. } = &mut this.messages;
            match ready!(incoming.poll_next(cx, io))? {
                None => return Poll::Ready(Err(TransportError::CutOff.into())),
                Some(packet) if packet.body.is_empty() => {
                    // What fails here stays failed below: no clean end after an error.
                    this.incoming = if incoming.has_message()? {
                        End::Exceeded
                    } else {
                        End::Ended
                    };
                }
                Some(packet) => this.unread = packet.body,
            }
        }
        let n = this.unread.len().min(out.remaining());
        let end = this.unread.start + n;
        out.put_slice(this.messages.incoming.bytes(this.unread.start..end));
        this.unread.start = end;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ByteStream<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.shut {
            return Poll::Ready(Err(TransportError::from(Error::Closed).into()));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Messages { io, outgoing, .. } = &mut this.messages;
        ready!(poll_room(outgoing, cx, io))?;
        let n = bytes.len().min(BYTES_PER_PACKET);
        outgoing.seal(Kind::Genuine, &[&bytes[..n]])?;
        push(outgoing, cx, io)?;
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Messages { io, outgoing, .. } = &mut self.get_mut().messages;
        poll_flush(outgoing, cx, io).map_err(Into::into)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Messages { io, outgoing, .. } = &mut this.messages;
        if !this.shut {
            ready!(poll_room(outgoing, cx, io))?;
            // Nothing may follow the end, no decoy either: a peer that has read the end may close at once.
            outgoing.set_decoys(None);
            outgoing.seal(Kind::Genuine, &[])?;
            this.shut = true;
        }
        poll_shutdown(outgoing, cx, io).map_err(Into::into)
    }
}

impl<IO> fmt::Debug for ByteStream<IO> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByteStream({:?})", self.messages)
    }
}
