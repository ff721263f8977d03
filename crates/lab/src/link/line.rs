//! One direction of a link, which all connections share: when what enters it arrives.

use super::Link;

/// Moments are nanoseconds since the relay began.
#[derive(Debug)]
pub(super) struct Line {
    rate: Option<u64>,
    one_way: u64,
    queue: u64,
    /// When the last bit that has entered will have left the queue, and what of a nanosecond is left over, in parts of `rate`.
    free: u64,
    rest: u64,
}

impl Line {
    pub(super) fn new(link: &Link) -> Line {
        Line {
            rate: link.rate,
            one_way: link.one_way(),
            queue: link.queue_ns(),
            free: 0,
            rest: 0,
        }
    }

    /// Nanoseconds one way.
    pub(super) const fn one_way(&self) -> u64 {
        self.one_way
    }

    /// From when on the queue has room for another piece.
    pub(super) const fn room_at(&self) -> u64 {
        self.free.saturating_sub(self.queue)
    }

    /// Takes in `bytes` at `now`; when the last of them arrives.
    pub(super) fn enter(&mut self, now: u64, bytes: usize) -> u64 {
        let Some(rate) = self.rate else {
            return now + self.one_way;
        };
        if now > self.free {
            (self.free, self.rest) = (now, 0);
        }
        let parts = bytes as u64 * 8 * 1_000_000_000 + self.rest;
        self.free += parts / rate;
        self.rest = parts % rate;
        self.free + self.one_way
    }
}
