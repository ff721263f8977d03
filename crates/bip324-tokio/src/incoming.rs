//! Messages of one direction on their way in, in time.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealway_bip324::stream::{self, Frame, Framing, Next, Received, TransportError};
use tokio::io::{AsyncRead, ReadBuf};

use crate::patience::Timer;

/// Reads once; gives how many bytes came.
pub(crate) fn poll_read<R: AsyncRead + Unpin>(
    cx: &mut Context<'_>,
    io: &mut R,
    room: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut room = ReadBuf::new(room);
    ready!(Pin::new(io).poll_read(cx, &mut room))?;
    Poll::Ready(Ok(room.filled().len()))
}

/// One direction on its way in, and its timer.
pub(crate) struct Incoming<F: Framing> {
    messages: stream::Incoming<F>,
    pub(crate) timer: Timer,
}

impl<F: Framing> Incoming<F> {
    pub(crate) fn new(messages: stream::Incoming<F>) -> Self {
        let timer = Timer::default();
        Incoming { messages, timer }
    }

    pub(crate) const fn received(&self) -> Received {
        self.messages.received()
    }

    /// What a range of [`Incoming::poll_next`] is of, until the next call.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.messages.bytes(range)
    }

    /// Opens what is there, up to the next message; true if there is one.
    pub(crate) fn has_message(&mut self) -> Result<bool, TransportError> {
        self.opening(stream::Incoming::has_message)
    }

    /// With each frame that is whole the time for the next one begins.
    fn opening<T>(&mut self, open: impl FnOnce(&mut stream::Incoming<F>) -> T) -> T {
        let before = self.messages.received().bytes;
        let opened = open(&mut self.messages);
        if self.messages.received().bytes != before {
            self.timer.rest();
        }
        opened
    }

    /// Reads until a message is whole, or the stream ends.
    pub(crate) fn poll_next<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut R,
    ) -> Poll<Result<Option<Frame<F::Head>>, TransportError>> {
        loop {
            match self.opening(stream::Incoming::next_message)? {
                Next::Message(message) => return Poll::Ready(Ok(Some(message))),
                Next::Ended => return Poll::Ready(Ok(None)),
                Next::Read => {}
            }
            match poll_read(cx, io, self.messages.room()) {
                Poll::Ready(Ok(n)) => {
                    self.messages.came(n)?;
                    self.timer.came();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.messages.fail(error.into()))),
                Poll::Pending if self.messages.is_between() => return Poll::Pending,
                Poll::Pending => {
                    let after = ready!(self.timer.poll(cx));
                    return Poll::Ready(Err(self.messages.fail(TransportError::Stalled { after })));
                }
            }
        }
    }
}
