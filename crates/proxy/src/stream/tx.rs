//! What is to be sent: what waits, what precedes the first payload, and the ways to say that nothing follows.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use super::Stream;
use crate::Error;
use crate::closing::LINGER;
use crate::pool;

/// What is to be sent.
#[derive(Default)]
pub(super) struct Tx {
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    /// Bytes of answers to control frames and key updates, among those that wait or were written since something waited.
    pub(super) replies: usize,
    /// Bytes that precede the first payload, held so that they leave together with it.
    pub(super) prefix: Vec<u8>,
    /// What is said to a peer who is refused before anything else was said.
    pub(super) farewell: Vec<u8>,
    /// The transport has been told that nothing follows.
    pub(super) closed: bool,
    /// Something could not be sealed, or TLS has failed: nothing is sealed any more.
    pub(super) broken: bool,
    /// What waits ends with an alert, or did.
    pub(super) alert: bool,
}

impl Stream {
    /// Sets bytes that leave ahead of the first payload, below the body layer, above the frames, and behind those that were
    /// set before.
    pub(crate) fn set_prefix(&mut self, prefix: Vec<u8>) {
        self.tx.prefix.extend(prefix);
    }

    /// Sets last words, below the body layer, for a peer who is refused before anything was said to him.
    pub(crate) fn set_farewell(&mut self, words: Vec<u8>) {
        self.tx.farewell = words;
    }

    /// The peer has been let in: there are no last words for strangers any more.
    pub(crate) fn welcome(&mut self) {
        self.tx.farewell = Vec::new();
    }

    /// True while bytes set with [`Stream::set_prefix`] wait for the first payload.
    pub(crate) fn holds_prefix(&self) -> bool {
        !self.tx.prefix.is_empty()
    }

    /// True if something waits to be written.
    pub(crate) fn wants_flush(&self) -> bool {
        self.tx.sent < self.tx.out.len() || self.carrier.wants_flush()
    }

    /// Takes a buffer with room for this many sealed bytes if nothing waits to be written, so that it need not grow.
    pub(crate) fn expect(&mut self, bytes: usize) {
        if self.tx.out.capacity() == 0 {
            self.tx.out = pool::take_out(bytes);
        }
    }

    /// Bytes of the buffer that holds what waits to be written, with those of it that have been.
    pub(crate) fn collected(&self) -> usize {
        self.tx.out.len()
    }

    /// Bytes flushed so far: what is sealed has moved only once it is written.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Writes what waits; when all is written the buffer is given back.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.tx.sent < self.tx.out.len() {
            let wrote = ready!(self.carrier.poll_write(cx, &self.tx.out[self.tx.sent..]));
            let wrote = wrote.inspect_err(|_| self.lose())?;
            self.tx.sent += wrote;
            self.written = self.written.wrapping_add(wrote as u64);
            self.traffic.sent(wrote);
        }
        self.tx.sent = 0;
        self.tx.replies = 0;
        if self.tx.out.capacity() > 0 {
            pool::give_out(std::mem::take(&mut self.tx.out));
        }
        self.carrier.poll_flush(cx).map_err(Error::from)
    }

    /// Writes what waits, also what a carrier holds back for a while.
    pub(crate) fn poll_flush_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.poll_flush(cx))?;
        match self.wants_flush() {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }

    /// Writes what waits, also what a carrier holds back for a while.
    pub(crate) async fn flush(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_flush_all(cx)).await
    }

    /// Seals and writes.
    pub(crate) async fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        self.seal(payload)?;
        self.flush().await
    }

    /// Forgets what waits to be written, after the peer has refused it.
    pub(crate) fn discard(&mut self) {
        self.tx.sent = self.tx.out.len();
        self.tx.replies = 0;
    }

    /// Says on every layer that nothing follows, as far as that can be written at once; nobody waits for the peer to hear it.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) {
        if self.seal_end().and_then(|()| self.seal_close()).is_ok() {
            let _ = self.poll_flush(cx);
        }
    }

    /// Says last words, if there are any, and leaves in good order. Without any, what was held back for a first payload is
    /// not said either. Behind an alert nothing is said, and nobody waits for the peer to hear it.
    pub(crate) async fn leave(&mut self, words: &[u8]) {
        if self.tx.alert {
            return self.flush_alert().await;
        }
        let farewell = std::mem::take(&mut self.tx.farewell);
        if words.is_empty() {
            self.tx.prefix.clear();
        }
        let leaving = async {
            match words {
                // They are for strangers, who know of no body layer.
                [] => self.wrap(&farewell)?,
                words => self.seal(words)?,
            }
            self.seal_close()?;
            self.flush().await?;
            self.carrier.leave().await;
            Ok::<(), Error>(())
        };
        let _ = tokio::time::timeout(LINGER, leaving).await;
    }

    /// Writes payload that needs no sealing straight from where it lies. Nothing that was sealed before may wait.
    pub(crate) fn poll_write_raw(&mut self, cx: &mut Context<'_>, payload: &[u8]) -> Poll<Result<usize, Error>> {
        debug_assert!(
            self.tx.sent == self.tx.out.len(),
            "payload would overtake what waits to be written"
        );
        self.again = None;
        let wrote = ready!(self.carrier.poll_write(cx, payload))?;
        self.traffic.sent(wrote);
        Poll::Ready(Ok(wrote))
    }
}
