//! Messages over a stream, after the handshake.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

use crate::stream::{Outgoing, ReadBuffer, directions};
use crate::{Kind, Parts, Role};

use super::incoming::Incoming;
use super::patience::Timer;
use super::{Patience, Received, Sent, TransportError};

/// Both directions of a v2 connection, for one task.
///
/// [`Messages::recv`] also sends what waits to be sent, so a task that listens need not flush before.
pub struct Messages<IO> {
    pub(super) io: IO,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// Why writing failed while something could still be read.
    unreported: Option<TransportError>,
    role: Role,
    session_id: [u8; 32],
}

impl<IO> Messages<IO> {
    pub(super) fn new(io: IO, parts: Parts, buffer: ReadBuffer) -> Self {
        let (role, session_id) = (parts.role, parts.session_id);
        let (incoming, outgoing) = directions(parts, buffer);
        Messages {
            io,
            incoming: Incoming::new(incoming, Timer::new(Patience::default())),
            outgoing,
            unreported: None,
            role,
            session_id,
        }
    }

    /// Which end this is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The session id: compared by other means, it shows that nobody stands between the two ends.
    pub const fn session_id(&self) -> &[u8; 32] {
        &self.session_id
    }

    /// The stream.
    pub const fn get_ref(&self) -> &IO {
        &self.io
    }

    /// What has come.
    pub const fn received(&self) -> Received {
        self.incoming.received()
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.outgoing.sent
    }

    /// How long a message that has begun is waited for.
    pub const fn set_patience(&mut self, patience: Patience) {
        self.incoming.timer.patience = patience;
    }

    /// Halves over a stream that can itself be split, such as `TcpStream::into_split`: they share nothing.
    pub fn split_with<R, W>(self, split: impl FnOnce(IO) -> (R, W)) -> (Receiver<R>, Sender<W>) {
        let (read, write) = split(self.io);
        let receiver = Receiver {
            io: read,
            incoming: self.incoming,
        };
        let sender = Sender {
            io: write,
            outgoing: self.outgoing,
        };
        (receiver, sender)
    }
}

impl<IO: AsyncRead + AsyncWrite> Messages<IO> {
    /// Halves over any stream, which they share under a lock.
    pub fn into_split(self) -> (Receiver<ReadHalf<IO>>, Sender<WriteHalf<IO>>) {
        self.split_with(::tokio::io::split)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Messages<IO> {
    /// Waits for the contents of the next message; `None` once the peer has ended its direction between two messages, which
    /// anyone in between can do as well.
    ///
    /// Sends what waits meanwhile. If that fails, messages that have come already are given first.
    ///
    /// # Errors
    /// As [`Receiver::recv`], and those of sending.
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let range = poll_fn(|cx| {
            let pushed = self.outgoing.push(cx, Pin::new(&mut self.io));
            let next = self.incoming.poll_next(cx, Pin::new(&mut self.io));
            let Err(error) = pushed else {
                return next;
            };
            // The first error says why, the ones after it only that the connection is closed.
            let error = self.unreported.take().unwrap_or(error);
            match next {
                Poll::Ready(Ok(Some(_))) => {
                    self.unreported = Some(error);
                    next
                }
                Poll::Ready(Err(_)) => next,
                Poll::Ready(Ok(None)) | Poll::Pending => Poll::Ready(Err(error)),
            }
        })
        .await?;
        Ok(range.map(|range| self.incoming.bytes(range)))
    }

    /// As [`Sender::feed`].
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn feed(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_room(cx, Pin::new(&mut self.io))).await?;
        self.outgoing.seal(Kind::Genuine, &[contents])
    }

    /// As [`Sender::send`].
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub async fn send(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| send(&mut self.outgoing, &mut self.io, cx, contents)).await
    }

    /// As [`Sender::flush`].
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_flush(cx, Pin::new(&mut self.io))).await
    }

    /// As [`Sender::shutdown`].
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_shutdown(cx, Pin::new(&mut self.io))).await
    }
}

fn send<W: AsyncWrite + Unpin>(
    outgoing: &mut Outgoing,
    io: &mut W,
    cx: &mut std::task::Context<'_>,
    contents: &[u8],
) -> Poll<Result<(), TransportError>> {
    ready!(outgoing.poll_room(cx, Pin::new(&mut *io)))?;
    // From here on the message is taken and nothing is waited for: a caller that gives up before has not sent it.
    outgoing.seal(Kind::Genuine, &[contents])?;
    Poll::Ready(outgoing.push(cx, Pin::new(io)))
}

/// What comes of a v2 connection.
pub struct Receiver<R> {
    io: R,
    incoming: Incoming,
}

impl<R> Receiver<R> {
    /// What has come.
    pub const fn received(&self) -> Received {
        self.incoming.received()
    }

    /// How long a message that has begun is waited for.
    pub const fn set_patience(&mut self, patience: Patience) {
        self.incoming.timer.patience = patience;
    }

    /// The stream.
    pub const fn get_ref(&self) -> &R {
        &self.io
    }

    /// Opens what has come already and says whether a message is whole: [`Receiver::recv`] then gives it without waiting.
    ///
    /// For whoever gathers several messages before sending something.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn has_message(&mut self) -> Result<bool, TransportError> {
        self.incoming.open_next()
    }
}

impl<R: AsyncRead + Unpin> Receiver<R> {
    /// Waits for the contents of the next message; `None` once the peer has ended its direction between two messages, which
    /// anyone in between can do as well. Cancellation-safe: what was given is not given again, what was not is kept.
    ///
    /// # Errors
    /// [`TransportError`]; nothing more comes after one. Memory is at most 256 KiB more than what has come.
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let range = poll_fn(|cx| self.incoming.poll_next(cx, Pin::new(&mut self.io))).await?;
        Ok(range.map(|range| self.incoming.bytes(range)))
    }
}

/// What is sent on a v2 connection.
pub struct Sender<W> {
    io: W,
    outgoing: Outgoing,
}

impl<W> Sender<W> {
    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.outgoing.sent
    }

    /// Bytes that were taken and wait to be written.
    pub fn waiting(&self) -> usize {
        self.outgoing.waiting()
    }

    /// The stream.
    pub const fn get_ref(&self) -> &W {
        &self.io
    }
}

impl<W: AsyncWrite + Unpin> Sender<W> {
    /// Takes a message, and leaves it here until [`Sender::flush`] or until much is to be sent: waits while as many bytes
    /// wait as `Options::output_limit` says.
    ///
    /// Cancellation-safe: dropped before it is ready, the message was not taken.
    ///
    /// # Errors
    /// `Error::ContentsTooLong` above 2^24 - 1 bytes, after which the connection may go on. Otherwise the connection is over.
    pub async fn feed(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        self.feed_parts(&[contents]).await
    }

    /// [`Sender::feed`] for a message whose contents lie apart, such as a type and a payload.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn feed_parts(&mut self, parts: &[&[u8]]) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_room(cx, Pin::new(&mut self.io))).await?;
        self.outgoing.seal(Kind::Genuine, parts)
    }

    /// Takes a packet that the other end throws away, as [`Sender::feed`]. Zeros are as good as any contents.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn feed_decoy(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_room(cx, Pin::new(&mut self.io))).await?;
        self.outgoing.seal(Kind::Decoy, &[contents])
    }

    /// Takes a message, as [`Sender::feed`], and writes as much as can be written at once. The rest goes with the next
    /// call; [`Sender::flush`] waits for it.
    ///
    /// Cancellation-safe: dropped before it is ready, the message was not taken.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn send(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| send(&mut self.outgoing, &mut self.io, cx, contents)).await
    }

    /// Waits until everything that was taken has been written. Cancellation-safe.
    ///
    /// # Errors
    /// [`TransportError::Io`]; the connection is over then.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_flush(cx, Pin::new(&mut self.io))).await
    }

    /// Flushes, then ends this direction. The peer is not told in a way that nobody in between could: v2 has no such
    /// message. Cancellation-safe.
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| self.outgoing.poll_shutdown(cx, Pin::new(&mut self.io))).await
    }
}

impl<IO> fmt::Debug for Messages<IO> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("role", &self.role)
            .field("received", &self.incoming.received())
            .field("sent", &self.outgoing.sent)
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Receiver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({:?})", self.incoming.received())
    }
}

impl<W> fmt::Debug for Sender<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({:?})", self.outgoing.sent)
    }
}
