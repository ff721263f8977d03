//! A request and its answer, in either version of HTTP: what comes in and what goes out.

use std::io;
use std::task::{Context, Poll, Waker, ready};

use super::http1::Http1;
use crate::carrier::Virtual;
use crate::transport::http2::Body;

/// Most bytes of one read.
const MAX_READ: usize = 1 << 20;

/// A request and its answer.
pub(super) enum Half {
    /// HTTP/1.1: the whole connection.
    One(Box<Http1>),
    /// HTTP/2: a stream of it.
    Two(Box<Body>),
}

impl Half {
    /// Takes a piece of what comes in, of at most `most` bytes. `None`: the end.
    pub(super) fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<Option<T>>> {
        match self {
            Half::One(one) => one.poll_take(cx, most, take),
            Half::Two(two) => {
                let chunk = ready!(two.poll_chunk(cx))?;
                if chunk.is_empty() {
                    return Poll::Ready(Ok(None));
                }
                let n = chunk.len().min(most);
                let taken = take(&chunk[..n]);
                two.consume(n);
                two.release(n);
                Poll::Ready(Ok(Some(taken)))
            }
        }
    }

    /// Reads; 0 is the end.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Half::One(one) => {
                let most = into.len().min(MAX_READ);
                let copy = |piece: &[u8]| {
                    into[..piece.len()].copy_from_slice(piece);
                    piece.len()
                };
                one.poll_take(cx, most, copy).map_ok(|n| n.unwrap_or(0))
            }
            Half::Two(two) => two.poll_read(cx, into),
        }
    }

    /// Sends some of what goes out. Until it is ready it has to be called with the same bytes.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Half::One(one) => one.poll_write(cx, from),
            Half::Two(two) => two.poll_write(cx, from),
        }
    }

    /// Ends what goes out.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Half::One(one) => one.poll_end(cx),
            Half::Two(two) => two.poll_shutdown(cx),
        }
    }

    /// Ready when the other end has gone, while nothing is expected from it.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        match self {
            Half::One(one) => one.poll_gone(cx),
            Half::Two(two) => match ready!(two.poll_taken_back(cx)) {
                Some(error) => Poll::Ready(error),
                None => Poll::Pending,
            },
        }
    }

    /// The peer has shown who it is.
    pub(super) fn trust(&mut self) {
        match self {
            Half::One(one) => one.stream.trust(),
            Half::Two(two) => two.trust(),
        }
    }

    /// Its drop says that it broke.
    pub(super) fn reset_on_close(&mut self) {
        match self {
            Half::One(one) => one.stream.carrier.reset_on_close(),
            Half::Two(two) => two.reset_on_close(),
        }
    }

    /// Says that nothing follows, as far as that can be said at once.
    pub(super) fn leave(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = self.poll_end(&mut cx);
        if let Half::One(one) = self {
            one.stream.finish(&mut cx);
        }
    }
}

/// Both directions on one request, as a carrier. It holds something beside it: a client its share of the connection.
pub(super) struct Whole<S> {
    half: Half,
    reset: bool,
    _held: S,
}

impl<S> Whole<S> {
    pub(super) fn new(half: Half, held: S) -> Self {
        Whole {
            half,
            reset: false,
            _held: held,
        }
    }
}

impl<S: Send> Virtual for Whole<S> {
    fn poll_read_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.half.poll_read(cx, into)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.half.poll_write(cx, from)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.half.poll_end(cx)
    }

    fn reset_on_close(&mut self) {
        self.reset = true;
        self.half.reset_on_close();
    }

    fn trust(&mut self) {
        self.half.trust();
    }
}

impl<S> Drop for Whole<S> {
    fn drop(&mut self) {
        if !self.reset {
            self.half.leave();
        }
    }
}
