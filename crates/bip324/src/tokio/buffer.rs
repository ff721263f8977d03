//! Bytes between a stream and what reads or writes frames on it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection reads into until a read fills it, bytes.
const FIRST: usize = 4 * 1024;

/// What it grows to when reads fill it, bytes.
const LARGE: usize = 64 * 1024;

/// Most bytes that are held beyond those that have come of a frame.
const AHEAD: usize = 256 * 1024;

/// Output memory that is kept when all of it has been sent, bytes.
const KEPT: usize = 64 * 1024;

/// What has come and has not been used.
pub(super) struct ReadBuffer {
    /// All of it may be written to; `start..end` has come.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read filled the buffer: more may be had with one call.
    filled_up: bool,
}

impl ReadBuffer {
    /// A buffer in which these bytes have come already.
    pub(super) fn holding(bytes: Vec<u8>) -> Self {
        ReadBuffer {
            start: 0,
            end: bytes.len(),
            bytes,
            filled_up: false,
        }
    }

    pub(super) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.start = self.end.min(self.start + n);
    }

    /// Reads once, at least with room for more of a frame of `want` bytes; gives how many bytes came, 0 at the end of the
    /// stream. Memory follows what has come of the frame.
    pub(super) fn poll_fill<R: AsyncRead>(
        &mut self,
        cx: &mut Context<'_>,
        io: Pin<&mut R>,
        want: usize,
    ) -> Poll<io::Result<usize>> {
        self.make_room(want);
        let mut room = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(io.poll_read(cx, &mut room))?;
        let n = room.filled().len();
        self.end += n;
        self.filled_up = self.end == self.bytes.len();
        Poll::Ready(Ok(n))
    }

    fn make_room(&mut self, want: usize) {
        let have = self.end - self.start;
        let mut len = self.bytes.len();
        if len > LARGE && have.max(want) < LARGE {
            // A long frame is over.
            self.compact();
            len = LARGE;
            self.bytes.truncate(len);
            self.bytes.shrink_to(len);
        } else if self.filled_up && len < LARGE {
            len = LARGE.min(2 * len);
        }
        if have == 0 || self.end == len || self.start + want.min(len) > len {
            self.compact();
        }
        // Grown when it is full and not before, or each small read would copy all of a long frame. Then as much again as
        // has come, within bounds: memory follows what was sent, not what was announced.
        if self.end == len {
            len = want.min(have + have.clamp(FIRST, AHEAD)).max(FIRST);
            if self.end >= len {
                len = self.end + FIRST;
            }
        }
        if len > self.bytes.len() {
            self.bytes.reserve_exact(len - self.bytes.len());
            self.bytes.resize(len, 0);
        }
    }

    fn compact(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
    }

    /// Bytes that have come and bytes of memory for them.
    #[cfg(test)]
    pub(super) fn memory(&self) -> (usize, usize) {
        (self.end - self.start, self.bytes.capacity())
    }
}

/// What is to be sent.
pub(super) struct WriteBuffer {
    bytes: Vec<u8>,
    sent: usize,
    /// Bytes waiting from which on nothing more is taken.
    limit: usize,
    /// Something was written that has not been flushed.
    unflushed: bool,
}

impl WriteBuffer {
    pub(super) fn new(limit: usize) -> Self {
        WriteBuffer {
            bytes: Vec::new(),
            sent: 0,
            limit,
            unflushed: false,
        }
    }

    /// Where frames are appended. What was sent goes first if it is more than what waits: each byte is moved once at most.
    pub(super) fn tail(&mut self) -> &mut Vec<u8> {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.bytes
    }

    pub(super) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Writes until there is room for a frame.
    pub(super) fn poll_room<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<io::Result<()>> {
        while self.waiting() > 0 && self.waiting() >= self.limit {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes and flushes everything.
    pub(super) fn poll_flush<W: AsyncWrite>(
        &mut self,
        cx: &mut Context<'_>,
        mut io: Pin<&mut W>,
    ) -> Poll<io::Result<()>> {
        while self.waiting() > 0 {
            ready!(self.poll_write(cx, io.as_mut()))?;
        }
        if self.unflushed {
            ready!(io.poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write<W: AsyncWrite>(&mut self, cx: &mut Context<'_>, io: Pin<&mut W>) -> Poll<io::Result<()>> {
        let n = ready!(io.poll_write(cx, &self.bytes[self.sent..]))?;
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.unflushed = true;
        self.sent = self.bytes.len().min(self.sent + n);
        if self.sent == self.bytes.len() {
            self.sent = 0;
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::task::Waker;

    use super::*;

    /// Gives bytes in pieces of one length.
    struct Pieces(usize);

    impl AsyncRead for Pieces {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            let n = self.0.min(out.remaining());
            out.initialize_unfilled_to(n).fill(7);
            out.advance(n);
            Poll::Ready(Ok(()))
        }
    }

    fn fill(buffer: &mut ReadBuffer, piece: usize, want: usize) -> usize {
        let mut cx = Context::from_waker(Waker::noop());
        match buffer.poll_fill(&mut cx, Pin::new(&mut Pieces(piece)), want) {
            Poll::Ready(Ok(n)) if n > 0 => n,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn memory_follows_what_has_come_of_a_frame() {
        let want = (1 << 24) + 20;
        for piece in [1, 777, 65_536, 300_000] {
            let mut buffer = ReadBuffer::holding(vec![1, 2, 3]);
            let mut came = 3;
            for _ in 0..(2 << 20) / piece.max(64) {
                came += fill(&mut buffer, piece, want);
                let (have, memory) = buffer.memory();
                assert_eq!(have, came);
                assert!(memory <= came + AHEAD, "{memory} bytes for {came}");
            }
            assert_eq!(buffer.filled()[..4], [1, 2, 3, 7]);
            // A long frame leaves nothing behind.
            buffer.consume(came - 5);
            fill(&mut buffer, piece, 20);
            assert!(buffer.memory().1 <= LARGE, "{:?}", buffer.memory());
            assert_eq!(buffer.filled()[..5], [7; 5]);
        }
    }

    #[test]
    fn small_reads_of_a_long_frame_do_not_each_take_memory() {
        let mut buffer = ReadBuffer::holding(vec![1, 2, 3]);
        let (mut came, mut grown, mut memory) = (3, 0, 0);
        while came < 4 << 20 {
            came += fill(&mut buffer, 100, (4 << 20) + 24);
            if buffer.memory().1 != memory {
                memory = buffer.memory().1;
                grown += 1;
            }
        }
        assert!(grown < 40, "grown {grown} times");
        assert_eq!(buffer.filled()[..4], [1, 2, 3, 7]);
    }

    #[test]
    fn reads_grow_when_they_are_filled_and_only_then() {
        let mut buffer = ReadBuffer::holding(Vec::new());
        for _ in 0..100 {
            fill(&mut buffer, 1000, 20);
            buffer.consume(1000);
        }
        assert_eq!(buffer.memory().1, FIRST);
        for _ in 0..10 {
            let n = fill(&mut buffer, 1 << 20, 20);
            buffer.consume(n);
        }
        assert_eq!(buffer.memory().1, LARGE);
    }
}
