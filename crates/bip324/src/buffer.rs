//! Bytes between a stream and what reads or writes frames on it: memory follows what has come and what waits.

use alloc::vec::Vec;

/// What a connection reads into until a read fills it, bytes.
const FIRST: usize = 4 * 1024;

/// What it grows to when reads fill it, bytes.
const LARGE: usize = 64 * 1024;

/// Most bytes that are held beyond those that have come of a frame.
const AHEAD: usize = 256 * 1024;

/// Output memory that is kept when all of it has been sent, bytes.
pub(crate) const KEPT: usize = 64 * 1024;

/// What has come and has not been used.
pub(crate) struct ReadBuffer {
    /// All of it may be written to; `start..end` has come.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The last read filled the buffer: more may be had with one call.
    filled_up: bool,
}

impl ReadBuffer {
    /// A buffer in which these bytes have come already.
    pub(crate) fn holding(bytes: Vec<u8>) -> Self {
        ReadBuffer {
            start: 0,
            end: bytes.len(),
            bytes,
            filled_up: false,
        }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.start = self.end.min(self.start + n);
    }

    /// Where the next read goes, at least with room for more of a frame of `want` bytes. Memory follows what has come of the
    /// frame.
    pub(crate) fn room(&mut self, want: usize) -> &mut [u8] {
        self.make_room(want);
        &mut self.bytes[self.end..]
    }

    /// Says that a read put `n` bytes there.
    pub(crate) fn came(&mut self, n: usize) {
        self.end = self.bytes.len().min(self.end + n);
        self.filled_up = self.end == self.bytes.len();
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
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.end - self.start, self.bytes.capacity())
    }
}

/// What is to be sent.
pub(crate) struct WriteBuffer {
    bytes: Vec<u8>,
    sent: usize,
    /// Bytes waiting from which on nothing more is taken.
    limit: usize,
}

impl WriteBuffer {
    pub(crate) fn new(limit: usize) -> Self {
        WriteBuffer {
            bytes: Vec::new(),
            sent: 0,
            limit,
        }
    }

    /// Where frames are appended. What was sent goes first if it is more than what waits: each byte is moved once at most.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.bytes
    }

    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// What is to be written before another frame is taken; nothing if there is room.
    pub(crate) fn in_the_way(&self) -> &[u8] {
        if self.waiting() >= self.limit { self.rest() } else { &[] }
    }

    /// What is to be written.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Says that the first `n` bytes have been written.
    pub(crate) fn wrote(&mut self, n: usize) {
        self.sent = self.bytes.len().min(self.sent + n);
        if self.sent == self.bytes.len() {
            self.sent = 0;
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads at most `piece` bytes.
    fn fill(buffer: &mut ReadBuffer, piece: usize, want: usize) -> usize {
        let room = buffer.room(want);
        let n = piece.min(room.len());
        room[..n].fill(7);
        buffer.came(n);
        n
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
