//! What a stream lies on: a socket, or one of the many streams that a connection carries.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::task::{Context, Poll};

use sealway_net::sock::{MAX_LEFT, Sock};
use tokio::io::Interest;

use crate::pool::Buf;

/// What a stream lies on.
pub(crate) enum Carrier {
    Sock(Sock),
    Virtual(Box<dyn Virtual>),
}

/// One of the many streams that a connection carries.
///
/// Dropped, it ends in good order, as a socket does that is closed; after [`Virtual::reset_on_close`], with a reset.
pub(crate) trait Virtual: Send {
    /// Ready when a read may give something.
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads; 0 is the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes some of `from`, at least one byte. What was taken is on its way, unless [`Virtual::wants_flush`] says otherwise.
    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>>;

    /// Whether something that was taken waits for [`Virtual::poll_flush`].
    fn wants_flush(&self) -> bool {
        false
    }

    /// Writes what waits. If something still does when this is ready, the task is woken when it may go.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends our direction of the stream.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Makes its drop say that the stream broke.
    fn reset_on_close(&mut self);

    /// Hands over what has come in the buffer that it lies in, where it lies in one: a read without a copy.
    fn take(&mut self) -> Option<(Buf, Range<usize>)> {
        None
    }

    /// What it lies on, where it does nothing any more.
    fn take_below(&mut self) -> Option<Carrier> {
        None
    }

    /// The peer has shown who it is: windows and queues may have their full size.
    fn trust(&mut self) {}

    /// Whether the end of what we send can be said without ending the stream.
    fn can_half_close(&self) -> bool {
        true
    }
}

impl From<Sock> for Carrier {
    fn from(sock: Sock) -> Self {
        Carrier::Sock(sock)
    }
}

impl<V: Virtual + 'static> From<Box<V>> for Carrier {
    fn from(stream: Box<V>) -> Self {
        Carrier::Virtual(stream)
    }
}

/// Runs the same expression on whichever it is.
macro_rules! each {
    ($carrier:expr, $it:ident => $do:expr) => {
        match $carrier {
            Carrier::Sock($it) => $do,
            Carrier::Virtual($it) => $do,
        }
    };
}

impl Carrier {
    /// The socket, if that is all there is.
    pub(crate) fn sock(&self) -> Option<&Sock> {
        match self {
            Carrier::Sock(sock) => Some(sock),
            Carrier::Virtual(_) => None,
        }
    }

    /// Whether it is a socket.
    pub(crate) fn is_sock(&self) -> bool {
        self.sock().is_some()
    }

    /// Address of the socket's peer.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.sock().and_then(Sock::peer)
    }

    /// Our own address of the socket.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        self.sock().and_then(Sock::local)
    }

    pub(crate) fn trust(&mut self) {
        if let Carrier::Virtual(stream) = self {
            stream.trust();
        }
    }

    pub(crate) fn take(&mut self) -> Option<(Buf, Range<usize>)> {
        match self {
            Carrier::Sock(_) => None,
            Carrier::Virtual(stream) => stream.take(),
        }
    }

    pub(crate) fn can_half_close(&self) -> bool {
        match self {
            Carrier::Sock(_) => true,
            Carrier::Virtual(stream) => stream.can_half_close(),
        }
    }

    pub(crate) fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, it => it.poll_read_ready(cx))
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        each!(self, it => it.poll_read(cx, into))
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        if let Carrier::Virtual(stream) = self
            && let Some(below) = stream.take_below()
        {
            *self = below;
        }
        each!(self, it => it.poll_write(cx, from))
    }

    pub(crate) fn wants_flush(&self) -> bool {
        match self {
            Carrier::Sock(_) => false,
            Carrier::Virtual(stream) => stream.wants_flush(),
        }
    }

    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Carrier::Sock(_) => Poll::Ready(Ok(())),
            Carrier::Virtual(stream) => stream.poll_flush(cx),
        }
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, it => it.poll_shutdown(cx))
    }

    /// Runs a system call when the socket is ready for it.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where there is no socket; else those of the call.
    pub(crate) fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        call: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        match self {
            Carrier::Sock(sock) => sock.poll_io(cx, interest, call),
            Carrier::Virtual(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Makes its drop say that the stream broke: RST instead of FIN.
    pub(crate) fn reset_on_close(&mut self) {
        each!(self, it => it.reset_on_close());
    }

    /// Ends our direction and takes what is still on its way, up to a limit, as [`Sock::leave`] does.
    ///
    /// The caller limits the time.
    pub(crate) async fn leave(&mut self) {
        let stream = match self {
            Carrier::Sock(sock) => return sock.leave().await,
            Carrier::Virtual(stream) => stream,
        };
        if poll_fn(|cx| stream.poll_shutdown(cx)).await.is_err() {
            return;
        }
        let (mut taken, mut buffer) = (0, [0; 1024]);
        while taken < MAX_LEFT {
            match poll_fn(|cx| stream.poll_read(cx, &mut buffer)).await {
                Ok(0) | Err(_) => return,
                Ok(got) => taken += got,
            }
        }
    }
}
