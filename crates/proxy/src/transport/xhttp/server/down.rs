//! A session of a server as a stream: what comes up in requests, and the answer to its GET.

use std::io;
use std::task::{Context, Poll};

use super::super::half::Half;
use super::super::session::Held;
use crate::carrier::Virtual;
use crate::stats::Traffic;
use crate::stream::Stream;

/// A stream whose two directions are a session and the answer to its GET.
pub(super) struct Down {
    session: Held,
    half: Half,
    ended: bool,
    reset: bool,
    /// The client has gone, after all that it sent had come: that is how a client of numbered requests ends.
    over: bool,
}

impl Down {
    pub(super) fn stream(session: Held, half: Half) -> Stream {
        let down = Down {
            session,
            half,
            ended: false,
            reset: false,
            over: false,
        };
        Stream::new(Box::new(down), Traffic::default())
    }

    fn look(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // What has come, and was answered, is read before anything else is seen.
        if self.over || self.session.has_ready() {
            return Ok(());
        }
        match self.half.poll_gone(cx) {
            Poll::Ready(error) if !self.ended => {
                let closed = error.kind() == io::ErrorKind::ConnectionReset && error.raw_os_error().is_none();
                self.over = closed && self.session.is_complete();
                if self.over { Ok(()) } else { Err(error) }
            }
            _ => Ok(()),
        }
    }
}

impl Virtual for Down {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.look(cx))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.session.poll_read(cx, into) {
            Poll::Pending if self.over => Poll::Ready(Ok(0)),
            read => read,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.half.poll_write(cx, from)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.ended = true;
        self.half.poll_end(cx)
    }

    fn reset_on_close(&mut self) {
        self.reset = true;
        self.half.reset_on_close();
    }

    fn trust(&mut self) {
        self.session.trust();
        self.half.trust();
    }
}

impl Drop for Down {
    fn drop(&mut self) {
        if !self.reset {
            self.half.leave();
        }
    }
}
