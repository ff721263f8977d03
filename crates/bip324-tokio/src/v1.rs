//! Messages of v1 over a stream, for peers that do not speak v2. Everything [`super`] says of cancellation and time holds.

use std::fmt;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::tokio::io::{AsyncRead, AsyncWrite};

use crate::message::Message;
use crate::message::v1::{self, HEADER_LEN, Header};
use crate::stream::{ReadBuffer, WriteBuffer};
use crate::{Error, Magic};

use super::patience::Timer;
use super::{Patience, Received, Sent, TransportError};

enum State {
    Open,
    Ended,
    Failed,
}

/// What comes from a v1 peer, checked: network, length, type and checksum.
pub struct V1Receiver<R> {
    io: R,
    buffer: ReadBuffer,
    magic: Magic,
    payload_limit: u32,
    /// The header of the message at the front.
    header: Option<Header>,
    /// The message at the front is whole and checked.
    checked: bool,
    used: usize,
    state: State,
    received: Received,
    timer: Timer,
}

impl<R> V1Receiver<R> {
    /// Reads from a stream of which `received` has been read already, for payloads of at most `payload_limit` bytes.
    pub fn new(io: R, magic: Magic, payload_limit: u32, received: Vec<u8>) -> Self {
        V1Receiver {
            io,
            buffer: ReadBuffer::holding(received),
            magic,
            payload_limit,
            header: None,
            checked: false,
            used: 0,
            state: State::Open,
            received: Received::default(),
            timer: Timer::new(Patience::default()),
        }
    }

    /// What has come.
    pub const fn received(&self) -> Received {
        self.received
    }

    /// How long a message that has begun is waited for.
    pub const fn set_patience(&mut self, patience: Patience) {
        self.timer.patience = patience;
    }

    /// Says whether a message is whole of what has come already: [`V1Receiver::recv`] then gives it without waiting.
    ///
    /// # Errors
    /// As [`V1Receiver::recv`].
    pub fn has_message(&mut self) -> Result<bool, TransportError> {
        if self.checked {
            return Ok(true);
        }
        self.buffer.consume(std::mem::take(&mut self.used));
        match self.state {
            State::Open => {}
            State::Ended => return Ok(false),
            State::Failed => return Err(Error::Closed.into()),
        }
        let checked = self.check();
        if checked.is_err() {
            self.state = State::Failed;
        }
        Ok(checked?)
    }

    fn check(&mut self) -> Result<bool, Error> {
        let Some((bytes, rest)) = self.buffer.filled().split_first_chunk::<HEADER_LEN>() else {
            return Ok(false);
        };
        let header = match self.header {
            Some(header) => header,
            None => *self
                .header
                .insert(Header::decode(self.magic, self.payload_limit, bytes)?),
        };
        let Some(payload) = rest.get(..header.payload_len as usize) else {
            return Ok(false);
        };
        header.check(payload)?;
        self.timer.rest();
        self.checked = true;
        self.received.messages += 1;
        self.received.bytes += (HEADER_LEN + payload.len()) as u64;
        Ok(true)
    }

    /// Bytes of the message at the front, as far as is known.
    fn want(&self) -> usize {
        HEADER_LEN + self.header.map_or(0, |header| header.payload_len as usize)
    }
}

impl<R: AsyncRead + Unpin> V1Receiver<R> {
    /// Waits for the next message; `None` once the peer has ended its direction between two messages. Cancellation-safe.
    ///
    /// # Errors
    /// [`TransportError`]; nothing more comes after one. A wrong checksum or type is one, too: v1 has no way to tell a
    /// message that was garbled from an end that has lost its place.
    pub async fn recv(&mut self) -> Result<Option<Message<'_>>, TransportError> {
        let next = poll_fn(|cx| self.poll_next(cx)).await?;
        Ok(next.map(|(header, payload)| Message {
            command: header.command,
            payload: self.buffer.filled().get(payload).unwrap_or_default(),
        }))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<(Header, Range<usize>)>, TransportError>> {
        loop {
            if self.has_message()? {
                let want = self.want();
                self.used = want;
                self.checked = false;
                return Poll::Ready(Ok(self.header.take().map(|header| (header, HEADER_LEN..want))));
            }
            if matches!(self.state, State::Ended) {
                return Poll::Ready(Ok(None));
            }
            let want = self.want();
            match self.buffer.poll_fill(cx, Pin::new(&mut self.io), want) {
                Poll::Ready(Ok(0)) if self.buffer.filled().is_empty() => self.state = State::Ended,
                Poll::Ready(Ok(0)) => return self.failed(TransportError::CutOff),
                Poll::Ready(Ok(_)) => self.timer.came(),
                Poll::Ready(Err(error)) => return self.failed(error.into()),
                Poll::Pending if self.buffer.filled().is_empty() => return Poll::Pending,
                Poll::Pending => match self.timer.poll(cx) {
                    Poll::Ready(after) => return self.failed(TransportError::Stalled { after }),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    fn failed<T>(&mut self, error: TransportError) -> Poll<Result<T, TransportError>> {
        self.state = State::Failed;
        Poll::Ready(Err(error))
    }
}

/// What is sent to a v1 peer.
pub struct V1Sender<W> {
    io: W,
    buffer: WriteBuffer,
    magic: Magic,
    failed: bool,
    sent: Sent,
}

impl<W> V1Sender<W> {
    /// Writes to a stream; nothing more is taken while `output_limit` bytes wait.
    pub fn new(io: W, magic: Magic, output_limit: usize) -> Self {
        V1Sender {
            io,
            buffer: WriteBuffer::new(output_limit),
            magic,
            failed: false,
            sent: Sent::default(),
        }
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.sent
    }

    fn check(&self) -> Result<(), TransportError> {
        if self.failed { Err(Error::Closed.into()) } else { Ok(()) }
    }

    fn noted(&mut self, done: std::io::Result<()>) -> Result<(), TransportError> {
        self.failed |= done.is_err();
        Ok(done?)
    }
}

impl<W: AsyncWrite + Unpin> V1Sender<W> {
    /// Takes a message, and leaves it here until [`V1Sender::flush`] or until much is to be sent. Cancellation-safe: dropped
    /// before it is ready, the message was not taken.
    ///
    /// # Errors
    /// `Error::ContentsTooLong` for a payload that a length cannot say; [`TransportError::Io`] ends the connection.
    pub async fn feed(&mut self, message: &Message<'_>) -> Result<(), TransportError> {
        self.check()?;
        let room = poll_fn(|cx| self.buffer.poll_room(cx, Pin::new(&mut self.io))).await;
        self.noted(room)?;
        v1::encode(self.magic, message, self.buffer.tail())?;
        self.sent.messages += 1;
        self.sent.bytes += (HEADER_LEN + message.payload.len()) as u64;
        Ok(())
    }

    /// Waits until everything that was taken has been written. Cancellation-safe.
    ///
    /// # Errors
    /// [`TransportError::Io`]; the connection is over then.
    pub async fn flush(&mut self) -> Result<(), TransportError> {
        self.check()?;
        let flushed = poll_fn(|cx| self.buffer.poll_flush(cx, Pin::new(&mut self.io))).await;
        self.noted(flushed)
    }

    /// Flushes, then ends this direction. Cancellation-safe.
    ///
    /// # Errors
    /// As [`V1Sender::flush`].
    pub async fn shutdown(&mut self) -> Result<(), TransportError> {
        self.flush().await?;
        let ended = poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await;
        self.noted(ended)
    }
}

impl<R> fmt::Debug for V1Receiver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V1Receiver({:?})", self.received)
    }
}

impl<W> fmt::Debug for V1Sender<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V1Sender({:?})", self.sent)
    }
}
