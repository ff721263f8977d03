//! Messages over a stream, after the handshake.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use sealway_bip324::decoy::Decoys;
use sealway_bip324::stream::{self, Directions, Framing, Outgoing, Packets, Received, Sent, TransportError};
use sealway_bip324::{Kind, PacketSealer, Role};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};

use crate::Patience;
use crate::incoming::Incoming;
use crate::outgoing::{Polled, poll_flush, poll_room, poll_shutdown, push};

/// Both directions of a v2 connection, for one task.
///
/// [`Messages::recv`] also sends what waits to be sent, so a task that listens need not flush before.
pub struct Messages<IO> {
    pub(crate) io: IO,
    pub(crate) incoming: Incoming<Packets>,
    pub(crate) outgoing: Outgoing<PacketSealer>,
    /// Why writing failed while something could still be read.
    unreported: Option<TransportError>,
    role: Role,
    session_id: [u8; 32],
}

impl<IO> Messages<IO> {
    /// The connection over a stream on which a [`stream::Handshake`] has been run.
    pub fn new(io: IO, directions: Directions) -> Self {
        Messages {
            io,
            incoming: Incoming::new(directions.incoming),
            outgoing: directions.outgoing,
            unreported: None,
            role: directions.role,
            session_id: directions.session_id,
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
        self.outgoing.sent()
    }

    /// How long a message that has begun is waited for.
    pub const fn set_patience(&mut self, patience: Patience) {
        self.incoming.timer.patience = patience;
    }

    /// Sends decoys by a policy from here on, as [`Outgoing::set_decoys`] does; `None` sends none. Halves keep it.
    pub fn set_decoys(&mut self, decoys: Option<Decoys>) {
        self.outgoing.set_decoys(decoys);
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
        self.split_with(tokio::io::split)
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
        let message = poll_fn(|cx| {
            let pushed = push(&mut self.outgoing, cx, &mut self.io);
            let next = self.incoming.poll_next(cx, &mut self.io);
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
        Ok(message.map(|message| self.incoming.bytes(message.body)))
    }

    /// As [`Sender::feed`].
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn feed(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| poll_room(&mut self.outgoing, cx, &mut self.io)).await?;
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
        poll_fn(|cx| poll_flush(&mut self.outgoing, cx, &mut self.io)).await
    }

    /// As [`Sender::shutdown`].
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| poll_shutdown(&mut self.outgoing, cx, &mut self.io)).await
    }
}

fn send<W>(outgoing: &mut Outgoing<PacketSealer>, io: &mut W, cx: &mut Context<'_>, contents: &[u8]) -> Polled
where
    W: AsyncWrite + Unpin,
{
    ready!(poll_room(outgoing, cx, io))?;
    // From here on the message is taken and nothing is waited for: a caller that gives up before has not sent it.
    outgoing.seal(Kind::Genuine, &[contents])?;
    Poll::Ready(push(outgoing, cx, io))
}

/// What comes of a connection: of a v2 connection, or, with [`stream::V1Messages`], of one of v1.
pub struct Receiver<R, F: Framing = Packets> {
    pub(crate) io: R,
    pub(crate) incoming: Incoming<F>,
}

impl<R, F: Framing> Receiver<R, F> {
    pub(crate) fn over(io: R, incoming: stream::Incoming<F>) -> Self {
        let incoming = Incoming::new(incoming);
        Receiver { io, incoming }
    }

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
        self.incoming.has_message()
    }
}

impl<R: AsyncRead + Unpin> Receiver<R> {
    /// Waits for the contents of the next message; `None` once the peer has ended its direction between two messages, which
    /// anyone in between can do as well. Cancellation-safe: what was given is not given again, what was not is kept.
    ///
    /// # Errors
    /// [`TransportError`]; nothing more comes after one. Memory is at most 256 KiB more than what has come.
    pub async fn recv(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let message = poll_fn(|cx| self.incoming.poll_next(cx, &mut self.io)).await?;
        Ok(message.map(|message| self.incoming.bytes(message.body)))
    }
}

/// What is sent on a connection: on a v2 connection, or, with a [`Magic`](sealway_bip324::Magic), on one of v1.
pub struct Sender<W, F = PacketSealer> {
    pub(crate) io: W,
    pub(crate) outgoing: Outgoing<F>,
}

impl<W, F> Sender<W, F> {
    pub(crate) const fn over(io: W, outgoing: Outgoing<F>) -> Self {
        Sender { io, outgoing }
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.outgoing.sent()
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
        poll_fn(|cx| poll_room(&mut self.outgoing, cx, &mut self.io)).await?;
        self.outgoing.seal(Kind::Genuine, parts)
    }

    /// Takes a packet that the other end throws away, as [`Sender::feed`]. Zeros are as good as any contents.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub async fn feed_decoy(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        poll_fn(|cx| poll_room(&mut self.outgoing, cx, &mut self.io)).await?;
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
}

impl<W: AsyncWrite + Unpin, F> Sender<W, F> {
    /// Waits until everything that was taken has been written. Cancellation-safe.
    ///
    /// # Errors
    /// [`TransportError::Io`]; the connection is over then.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| poll_flush(&mut self.outgoing, cx, &mut self.io)).await
    }

    /// Flushes, then ends this direction. The peer is not told in a way that nobody in between could: v2 has no such
    /// message. Cancellation-safe.
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        poll_fn(|cx| poll_shutdown(&mut self.outgoing, cx, &mut self.io)).await
    }
}

impl<IO> fmt::Debug for Messages<IO> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("role", &self.role)
            .field("received", &self.incoming.received())
            .field("sent", &self.outgoing.sent())
            .finish_non_exhaustive()
    }
}

impl<R, F: Framing> fmt::Debug for Receiver<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({:?})", self.incoming.received())
    }
}

impl<W, F> fmt::Debug for Sender<W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({:?})", self.outgoing.sent())
    }
}
