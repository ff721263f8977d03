//! What TCP makes of distance and loss: how much of a stream may be under way, and which of its packets are lost.

use super::{FIRST_WINDOW, SEGMENT};
use crate::stats::SplitMix64;

/// The congestion window of one direction of a connection: Reno's (RFC 5681), in bytes.
#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    threshold: u64,
    under_way: u64,
    /// Bytes acknowledged since the window last grew by a segment, above the threshold.
    counted: u64,
    /// Bytes sent so far, and how many of them when the window was last halved.
    sent: u64,
    recovers: u64,
    /// Most bytes that were under way in the present flight, and how many are sent when it ends.
    peak: u64,
    flight_ends: u64,
    most: u64,
}

impl Window {
    /// A window of `most` bytes at last, in which slow start ends at `threshold`.
    pub(super) fn new(most: u64, threshold: u64) -> Window {
        Window {
            size: (FIRST_WINDOW * SEGMENT).min(most),
            threshold,
            under_way: 0,
            counted: 0,
            sent: 0,
            recovers: 0,
            peak: 0,
            flight_ends: 0,
            most,
        }
    }

    /// Bytes that may be sent now: whole segments, as nobody sends crumbs while more is under way.
    pub(super) fn room(&self) -> u64 {
        let room = self.size.saturating_sub(self.under_way);
        if room < SEGMENT && self.under_way > 0 { 0 } else { room }
    }

    /// Bytes are sent; the number of the last of them.
    pub(super) fn send(&mut self, bytes: u64) -> u64 {
        let acknowledged = self.sent - self.under_way;
        self.under_way += bytes;
        self.sent += bytes;
        if acknowledged >= self.flight_ends || self.under_way > self.peak {
            (self.peak, self.flight_ends) = (self.under_way, self.sent);
        }
        self.sent
    }

    /// The sender learns that `bytes` up to number `last` have arrived, or that one of their packets has not.
    pub(super) fn learn(&mut self, bytes: u64, last: u64, lost: bool) {
        // What is under way now does not tell: acknowledgements come in batches, and each leaves less.
        let in_use = self.peak * 2 >= self.size;
        self.under_way = self.under_way.saturating_sub(bytes);
        if lost {
            if last > self.recovers {
                self.threshold = (self.size / 2).max(2 * SEGMENT);
                (self.size, self.counted) = (self.threshold, 0);
                self.recovers = self.sent;
            }
        } else if in_use {
            self.grow(bytes);
        }
    }

    fn grow(&mut self, bytes: u64) {
        if self.size < self.threshold {
            self.size += bytes;
        } else {
            self.counted += bytes;
            if self.counted >= self.size {
                self.counted -= self.size;
                self.size += SEGMENT;
            }
        }
        self.size = self.size.min(self.most);
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }
}

/// Which packets of one direction of a connection are lost.
#[derive(Debug)]
pub(super) struct Losses {
    /// Logarithm of the probability that a packet passes; 0 where none is lost.
    passes: f64,
    random: SplitMix64,
    /// Packets that pass before the next one that is lost.
    left: u64,
}

impl Losses {
    pub(super) fn new(loss: f64, random: SplitMix64) -> Losses {
        let mut losses = Losses {
            passes: (-loss).ln_1p(),
            random,
            left: u64::MAX,
        };
        losses.draw();
        losses
    }

    /// Draws how many packets pass before the next loss: geometric, by inversion.
    fn draw(&mut self) {
        if self.passes == 0.0 {
            return;
        }
        // Above 0, so that its logarithm is a number.
        let uniform = ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.left = (uniform.ln() / self.passes) as u64;
    }

    /// Packets that pass before the next one that is lost; 0: the next is.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// These many packets have passed.
    pub(super) fn pass(&mut self, packets: u64) {
        if self.passes != 0.0 {
            self.left -= packets.min(self.left);
        }
    }

    /// The next packet is sent until it passes: how often in vain.
    pub(super) fn lose(&mut self) -> u64 {
        // So many in a row are none that the model is made for.
        const MOST: u64 = 16;
        let mut lost = 0;
        while self.left == 0 && lost < MOST {
            lost += 1;
            self.draw();
        }
        lost
    }
}
