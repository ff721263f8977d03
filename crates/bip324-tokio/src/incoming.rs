//! Packets of one direction on their way in, in time.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::tokio::io::AsyncRead;

use crate::stream::{self, Next, Received};

use super::TransportError;
use super::buffer::poll_read;
use super::patience::Timer;

pub(super) struct Incoming {
    packets: stream::Incoming,
    pub(super) timer: Timer,
}

impl Incoming {
    pub(super) const fn new(packets: stream::Incoming, timer: Timer) -> Self {
        Incoming { packets, timer }
    }

    pub(super) const fn received(&self) -> Received {
        self.packets.received
    }

    /// What a range of [`Incoming::poll_next`] is of, until the next call.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        self.packets.bytes(range)
    }

    /// Opens what is there, up to the next message; true if there is one.
    pub(super) fn open_next(&mut self) -> Result<bool, TransportError> {
        self.opening(stream::Incoming::open_next)
    }

    /// With each packet that is whole the time for the next one begins.
    fn opening<T>(&mut self, open: impl FnOnce(&mut stream::Incoming) -> T) -> T {
        let before = self.packets.received.bytes;
        let opened = open(&mut self.packets);
        if self.packets.received.bytes != before {
            self.timer.rest();
        }
        opened
    }

    /// Reads until a message is whole, or the stream ends; gives where in [`Incoming::bytes`] it is.
    pub(super) fn poll_next<R: AsyncRead>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut R>,
    ) -> Poll<Result<Option<Range<usize>>, TransportError>> {
        loop {
            match self.opening(stream::Incoming::next)? {
                Next::Message(place) => return Poll::Ready(Ok(Some(place))),
                Next::Ended => return Poll::Ready(Ok(None)),
                Next::Read => {}
            }
            match poll_read(cx, io.as_mut(), self.packets.room()) {
                Poll::Ready(Ok(n)) => {
                    self.packets.came(n)?;
                    self.timer.came();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.packets.fail(error.into()))),
                Poll::Pending if self.packets.is_between() => return Poll::Pending,
                Poll::Pending => match self.timer.poll(cx) {
                    Poll::Ready(after) => {
                        return Poll::Ready(Err(self.packets.fail(TransportError::Stalled { after })));
                    }
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}
