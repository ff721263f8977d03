//! The bytes of a call, out of and into its messages.

use std::io;
use std::task::{Context, Poll, ready};

use sealway_v2ray::gun::{Decoder, Event, Kind, MAX_HEAD, head_len, write_head};

use crate::carrier::Virtual;
use crate::transport::http2::Body;

/// Data of a message that is sent even if the peer takes less at the moment: the rest waits here.
const LEAST: usize = 512;

/// What was read is given free in the window after this many bytes at the latest.
const OWED: usize = 16 << 10;

/// One call. Messages are read where they lie, and written with one copy of their data.
pub(super) struct Messages {
    body: Body,
    decoder: Decoder,
    /// Bytes at the front of what has arrived that are data.
    data: usize,
    /// Bytes read that the peer has not been told of.
    owed: usize,
}

impl Messages {
    pub(super) fn new(body: Body, kind: Kind) -> Self {
        Messages {
            body,
            decoder: Decoder::new(kind),
            data: 0,
            owed: 0,
        }
    }

    fn consume(&mut self, n: usize) {
        self.body.consume(n);
        self.owed += n;
    }

    fn release(&mut self) {
        self.body.release(std::mem::take(&mut self.owed));
    }

    /// Waits for data. Returns how many bytes of it lie at the front; 0 is the end.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        while self.data == 0 {
            if self.owed >= OWED {
                self.release();
            }
            let chunk = ready!(self.body.poll_chunk(cx))?;
            if chunk.is_empty() {
                // Once it is answered, a client may take back what it has not sent, amid a message as well.
                return Poll::Ready(match self.decoder.is_between() || self.body.is_answered() {
                    true => Ok(0),
                    false => Err(self.body.fail(broken("a gRPC message ends early"))),
                });
            }
            let (event, used) = match self.decoder.handle(chunk) {
                Ok(handled) => handled,
                Err(error) => return Poll::Ready(Err(self.body.fail(broken(error)))),
            };
            match event {
                Event::Data(range) => {
                    self.consume(range.start);
                    self.data = range.len();
                }
                Event::More => self.consume(used),
            }
        }
        Poll::Ready(Ok(self.data))
    }
}

/// The failure of a call: what was received is not whole, whatever else may have come.
pub(super) fn broken(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, why)
}

impl Virtual for Messages {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_data(cx).map_ok(|_| ())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = 0;
        while read < into.len() {
            let data = match self.poll_data(cx) {
                Poll::Ready(Ok(data)) => data,
                Poll::Ready(Err(error)) if read == 0 => return Poll::Ready(Err(error)),
                Poll::Pending if read == 0 => return Poll::Pending,
                // The next call meets it again.
                _ => break,
            };
            if data == 0 {
                break;
            }
            let n = data.min(into.len() - read);
            into[read..read + n].copy_from_slice(&self.body.chunk()[..n]);
            self.data -= n;
            self.consume(n);
            read += n;
        }
        self.release();
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let room = ready!(self.body.poll_room(cx, from.len().saturating_add(MAX_HEAD)))?;
        let n = from.len().min(room.saturating_sub(MAX_HEAD).max(LEAST));
        let mut message = Vec::with_capacity(head_len(n) + n);
        write_head(n, &mut message).map_err(io::Error::other)?;
        message.extend_from_slice(&from[..n]);
        self.body.send(message.into())?;
        Poll::Ready(Ok(n))
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.body.poll_shutdown(cx)
    }

    fn reset_on_close(&mut self) {
        self.body.reset_on_close();
    }

    fn trust(&mut self) {
        self.body.trust();
    }
}
