//! Messages of one direction on their way in.

use std::ops::Range;

use crate::Error;

use super::{Cut, Frame, Framing, TransportError};
use crate::buffer::ReadBuffer;

/// What came in one direction, since the connection was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// Bytes read and used.
    pub bytes: u64,
    /// Messages, without the version packet.
    pub messages: u64,
    /// Decoys.
    pub decoys: u64,
    /// Messages of v1 that were dropped for a wrong checksum or type.
    pub dropped: u64,
}

enum State {
    Open,
    /// The stream ended between two frames.
    Ended,
    Failed,
}

/// What is to be done for the next message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Next<H> {
    /// It is here: its body is a range for [`Incoming::bytes`].
    Message(Frame<H>),
    /// More is to be read into [`Incoming::room`].
    Read,
    /// There is none: the stream has ended between two messages.
    Ended,
}

/// One direction of a connection, on its way in.
pub struct Incoming<F: Framing> {
    buffer: ReadBuffer,
    framing: F,
    /// Bytes of the frame at the front, as far as is known.
    want: usize,
    /// The message at the front: it is whole and was not handed out.
    whole: Option<Frame<F::Head>>,
    /// Bytes at the front that were handed out.
    used: usize,
    state: State,
    received: Received,
}

impl<F: Framing> Incoming<F> {
    /// A direction of which `unread` has come already.
    pub fn new(framing: F, unread: Vec<u8>) -> Self {
        Self::after(framing, ReadBuffer::holding(unread), Received::default())
    }

    pub(super) fn after(framing: F, buffer: ReadBuffer, received: Received) -> Self {
        Incoming {
            buffer,
            framing,
            want: 0,
            whole: None,
            used: 0,
            state: State::Open,
            received,
        }
    }

    /// What has come.
    pub const fn received(&self) -> Received {
        self.received
    }

    /// Opens what is there, up to the next message; true if there is one.
    ///
    /// # Errors
    /// As [`Incoming::next_message`].
    pub fn has_message(&mut self) -> Result<bool, TransportError> {
        if self.whole.is_some() {
            return Ok(true);
        }
        self.buffer.consume(std::mem::take(&mut self.used));
        match self.state {
            State::Open => {}
            State::Ended => return Ok(false),
            State::Failed => return Err(Error::Closed.into()),
        }
        self.whole = self.open().map_err(|error| self.fail(error.into()))?;
        Ok(self.whole.is_some())
    }

    fn open(&mut self) -> Result<Option<Frame<F::Head>>, Error> {
        loop {
            match self.framing.cut(self.buffer.filled_mut())? {
                Cut::Wants(want) => {
                    self.want = want;
                    return Ok(None);
                }
                Cut::Decoy(len) => {
                    self.received.bytes += len as u64;
                    self.received.decoys += 1;
                    self.buffer.consume(len);
                }
                Cut::Dropped(len) => {
                    self.received.bytes += len as u64;
                    self.received.dropped += 1;
                    self.buffer.consume(len);
                }
                Cut::Message(frame) => {
                    self.received.bytes += frame.len as u64;
                    self.received.messages += 1;
                    return Ok(Some(frame));
                }
            }
        }
    }

    /// What to do to have the next message. A message stays where it is until the next call.
    ///
    /// # Errors
    /// What the peer did wrong, at first; [`Error::Closed`] from then on.
    pub fn next_message(&mut self) -> Result<Next<F::Head>, TransportError> {
        self.has_message()?;
        Ok(match self.whole.take() {
            Some(frame) => {
                self.used = frame.len;
                Next::Message(frame)
            }
            None if matches!(self.state, State::Ended) => Next::Ended,
            None => Next::Read,
        })
    }

    /// Where the next read goes. Memory follows what has come of a message, not what was announced.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffer.room(self.want)
    }

    /// Says that a read put `n` bytes there; none is the end of the stream.
    ///
    /// # Errors
    /// [`TransportError::CutOff`] for an end within a message.
    pub fn came(&mut self, n: usize) -> Result<(), TransportError> {
        self.buffer.came(n);
        if n > 0 {
            return Ok(());
        }
        if !self.is_between() {
            return Err(self.fail(TransportError::CutOff));
        }
        self.state = State::Ended;
        Ok(())
    }

    /// True if nothing has come of the next message.
    pub fn is_between(&self) -> bool {
        self.buffer.filled().is_empty()
    }

    /// Ends the direction: nothing more comes.
    pub fn fail(&mut self, error: TransportError) -> TransportError {
        self.state = State::Failed;
        error
    }

    /// What a range of [`Incoming::next_message`] is of, until the next call.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.filled().get(range).unwrap_or_default()
    }
}
