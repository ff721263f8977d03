//! What is sent: full records, many for one call of the system.

use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealway_tls::records::{ALERT, MAX_PLAIN, Records};
use tokio::io::AsyncWrite;

use crate::Error;

/// Most bytes of payload that are sealed at once: 16 full records.
const MOST: usize = 16 * MAX_PLAIN;
/// More than a record adds to its payload, bytes.
const SPARE: usize = 48;
/// The most memory that is kept while nothing is to be sent, bytes.
const KEPT: usize = 64 << 10;

/// What is to be sent.
#[derive(Default)]
pub(super) struct Tx {
    pub(super) out: Vec<u8>,
    sent: usize,
    /// The peer has been told that nothing follows, or why; or it has told us.
    closed: bool,
}

impl Tx {
    /// Seals what there is room for, and writes what can be written now.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        if self.closed {
            let what = "written after the end of TLS on this connection";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, what).into()));
        }
        ready!(self.poll_drain(cx, io))?;
        let took = self.seal(records, parts).inspect_err(|_| self.closed = true)?;
        if let Poll::Ready(drained) = self.poll_drain(cx, io) {
            drained?;
        }
        Poll::Ready(Ok(took))
    }

    pub(super) fn poll_flush<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
    ) -> Poll<io::Result<()>> {
        // Nothing follows the end, not even an answer.
        if !self.closed {
            self.take_reply(records);
        }
        ready!(self.poll_drain(cx, io))?;
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
        Pin::new(io).poll_flush(cx)
    }

    /// Says that nothing follows, once, and ends this direction of what is below.
    pub(super) fn poll_shutdown<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
    ) -> Poll<Result<(), Error>> {
        if !mem::replace(&mut self.closed, true) {
            self.take_reply(records);
            records.push_close(&mut self.out)?;
        }
        ready!(self.poll_drain(cx, io))?;
        Pin::new(io).poll_shutdown(cx).map_err(Error::Io)
    }

    /// Tells the peer why TLS is over, if it is owed that: at once as far as that can be written, else with the next flush.
    pub(super) fn give_up<S: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut S,
        records: &mut Records,
        error: &sealway_tls::Error,
    ) {
        if mem::replace(&mut self.closed, true) {
            return;
        }
        // If something is unsent, a writer may wait for the socket: its waker must not be replaced. Its flush sends the alert too.
        let is_idle = self.sent == self.out.len();
        self.take_reply(records);
        if let Some(alert) = error.alert()
            && records.push(ALERT, &alert.message(), &mut self.out).is_ok()
            && is_idle
        {
            let _ = self.poll_drain(cx, io);
        }
    }

    /// What the peer has asked for must precede all that is sealed from here on: it announces the key.
    fn take_reply(&mut self, records: &mut Records) {
        self.out.append(&mut records.reply);
    }

    fn poll_drain<S: AsyncWrite + Unpin>(&mut self, cx: &mut Context<'_>, io: &mut S) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            match ready!(Pin::new(&mut *io).poll_write(cx, &self.out[self.sent..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                wrote => self.sent += wrote,
            }
        }
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Seals as much of the parts as is sealed at once, in as few records as that takes. Returns how much it was.
    fn seal(&mut self, records: &mut Records, parts: &[IoSlice<'_>]) -> Result<usize, sealway_tls::Error> {
        self.take_reply(records);
        let whole = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let total = whole.min(MOST);
        self.out.reserve(total + total.div_ceil(MAX_PLAIN) * SPARE);
        let (mut parts, mut part): (_, &[u8]) = (parts.iter(), &[]);
        let mut left = total;
        while left > 0 {
            let at = self.out.len();
            self.out.resize(at + records.front(), 0);
            let mut room = left.min(MAX_PLAIN);
            left -= room;
            while room > 0 {
                if part.is_empty() {
                    let Some(next) = parts.next() else { break };
                    part = next;
                }
                let (now, later) = part.split_at(part.len().min(room));
                self.out.extend_from_slice(now);
                room -= now.len();
                part = later;
            }
            records.seal(&mut self.out, at)?;
        }
        Ok(total)
    }

    #[cfg(test)]
    pub(super) fn update_keys(&mut self, records: &mut Records) -> Result<(), sealway_tls::Error> {
        self.take_reply(records);
        records.key_update(&mut self.out, true)
    }
}
