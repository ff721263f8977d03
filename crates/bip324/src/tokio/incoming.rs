//! Packets of one direction on their way in.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::tokio::io::AsyncRead;

use crate::{Error, HEADER_LEN, Kind, LENGTH_LEN, OVERHEAD, PacketOpener, TAG_LEN};

use super::TransportError;
use super::buffer::ReadBuffer;
use super::patience::Timer;

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
}

enum State {
    Open,
    /// The stream ended between two packets.
    Ended,
    Failed,
}

pub(super) struct Incoming {
    buffer: ReadBuffer,
    opener: PacketOpener,
    contents_limit: usize,
    /// Bytes that follow the length of the packet at the front, once that is open; 0 before.
    need: usize,
    /// The message at the front has been opened and was not handed out.
    opened: bool,
    /// Bytes at the front that were handed out.
    used: usize,
    state: State,
    pub(super) received: Received,
    pub(super) timer: Timer,
}

impl Incoming {
    pub(super) fn new(
        buffer: ReadBuffer,
        opener: PacketOpener,
        contents_limit: usize,
        received: Received,
        timer: Timer,
    ) -> Self {
        Incoming {
            buffer,
            opener,
            contents_limit,
            need: 0,
            opened: false,
            used: 0,
            state: State::Open,
            received,
            timer,
        }
    }

    /// Opens what is there, up to the next message; true if there is one.
    pub(super) fn open_next(&mut self) -> Result<bool, TransportError> {
        if self.opened {
            return Ok(true);
        }
        self.buffer.consume(std::mem::take(&mut self.used));
        match self.state {
            State::Open => {}
            State::Ended => return Ok(false),
            State::Failed => return Err(Error::Closed.into()),
        }
        let opened = self.open();
        if opened.is_err() {
            self.state = State::Failed;
        }
        Ok(opened?)
    }

    fn open(&mut self) -> Result<bool, Error> {
        loop {
            if self.need == 0 {
                let Some(length) = self.buffer.filled().first_chunk::<LENGTH_LEN>() else {
                    return Ok(false);
                };
                let need = self.opener.open_length(*length)?;
                let (claimed, limit) = (need - HEADER_LEN - TAG_LEN, self.contents_limit);
                if claimed > limit {
                    return Err(Error::PacketTooLong { claimed, limit });
                }
                self.need = need;
            }
            let total = LENGTH_LEN + self.need;
            let Some(packet) = self.buffer.filled_mut().get_mut(LENGTH_LEN..total) else {
                return Ok(false);
            };
            let (kind, _) = self.opener.open_in_place(&[], packet)?;
            self.timer.rest();
            self.received.bytes += total as u64;
            match kind {
                Kind::Genuine => {
                    self.received.messages += 1;
                    self.opened = true;
                    return Ok(true);
                }
                Kind::Decoy => {
                    self.received.decoys += 1;
                    self.need = 0;
                    self.buffer.consume(total);
                }
            }
        }
    }

    /// Reads until a message is whole, or the stream ends; gives where in [`Incoming::bytes`] it is.
    pub(super) fn poll_next<R: AsyncRead>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut R>,
    ) -> Poll<Result<Option<Range<usize>>, TransportError>> {
        loop {
            if self.open_next()? {
                return Poll::Ready(Ok(Some(self.hand_out())));
            }
            if matches!(self.state, State::Ended) {
                return Poll::Ready(Ok(None));
            }
            let want = LENGTH_LEN + self.need;
            match self.buffer.poll_fill(cx, io.as_mut(), want) {
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

    /// Gives the message away that has been opened: it stays where it is until the next call.
    fn hand_out(&mut self) -> Range<usize> {
        let contents = LENGTH_LEN + HEADER_LEN..LENGTH_LEN + self.need - TAG_LEN;
        debug_assert_eq!(contents.len() + OVERHEAD, LENGTH_LEN + self.need);
        self.used = LENGTH_LEN + self.need;
        self.need = 0;
        self.opened = false;
        contents
    }

    /// What a range of [`Incoming::poll_next`] is of, until the next call.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.buffer.filled().get(range).unwrap_or_default()
    }
}
