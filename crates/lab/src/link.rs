//! An emulated link: distance, a rate and lost packets between the two ends of TCP connections, in user space.
//!
//! A [`Relay`] stands between whoever connects and what is connected to, on loopback. It holds no packets but bytes, which TCP
//! has put in order already, and so models what TCP over such a link shows to the programs at its ends:
//!
//! - **Rate.** Each direction passes bytes one after the other at the rate. All connections share it, in turn. A queue of one
//!   round trip at the rate (at least 64 KiB and 5 ms) stands before it; nothing more is read from a sender while it is full, and
//!   TCP holds the sender back. The queue drops nothing.
//! - **Distance.** What has left the queue arrives half a round trip later. A connection is dialled half a round trip after it
//!   was accepted; its client's first byte enters after a whole one, and its server's after one and a half, as behind a handshake.
//! - **Window.** Each direction of a connection has a congestion window as Reno has (RFC 5681, with 10 segments of 1,448 B to
//!   begin with): a segment more for each one acknowledged up to the threshold, then one for each round trip. An acknowledgement
//!   comes back half a round trip after the arrival. The window grows while at least half of it is in use. Where packets are lost
//!   the threshold is from the start what it is on the average, as where a system remembers the path.
//! - **Loss.** Each packet is lost by itself with the probability given. The stream stalls from that packet on until it comes
//!   again, one round trip later, or several if it is lost again; what came after it is delivered with it. The window is halved,
//!   once for all losses of one window.
//!
//! Choices come from a seed, by connection and packet. Not modelled: jitter, reordering that TCP would repair in time,
//! duplicates, drops by a full queue, loss of acknowledgements and of handshakes, timeouts (a lone lost packet costs one round
//! trip here and at least 200 ms in Linux), the window's reset after a pause, CUBIC's and BBR's ways.
//!
//! One thread waits for sockets and for the next deadline. Deadlines are computed from each other, never from when the thread
//! woke, so lateness does not add up.

mod check;
mod flow;
mod line;
mod pair;
mod parse;
mod relay;
mod window;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use check::accept;
pub use check::{Measured, measure};
pub use parse::LinkError;
pub use relay::Relay;

use crate::result::EmulatedLink;
use crate::stats::SplitMix64;

/// The version of the model: figures over links of two versions do not compare.
pub(crate) const MODEL: u32 = 2;

/// Bytes of payload in a packet: an Ethernet frame less the headers of IPv4 and TCP with time stamps.
const SEGMENT: u64 = 1448;

/// Segments of the first window (RFC 6928).
const FIRST_WINDOW: u64 = 10;

/// Least queue: less is drained before a thread that waited for its CPU fills it again.
const LEAST_QUEUE: u64 = 64 << 10;
const LEAST_QUEUE_TIME: Duration = Duration::from_millis(5);

/// Bytes that a receiver takes before it reads any, unless the window is larger.
const RECEIVE_WINDOW: u64 = 4 << 20;

/// Bytes of one direction of a connection that are held at most where no rate says how many are under way.
const MOST_HELD: u64 = 64 << 20;

/// Bytes that may be under way in each direction by rate and round trip.
const MOST_UNDER_WAY: u64 = 256 << 20;

/// A link, the same in both directions. Made from text: `rate=100mbit,rtt=40ms,loss=0.1%`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Link {
    /// Bits a second; no limit if absent.
    rate: Option<u64>,
    /// Microseconds there and back.
    rtt_us: u64,
    /// Packets lost of a million.
    loss_ppm: u32,
}

/// A link with the seed of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) link: Link,
    pub(crate) seed: u64,
}

impl Over {
    /// The seed of a window: the same for every subject, and another one each time.
    pub(crate) fn turn(&self, turn: u64) -> u64 {
        SplitMix64::stream(self.seed, turn).next_u64()
    }
}

impl Link {
    /// Bits a second of each direction; `None` without a limit.
    pub const fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// There and back.
    pub const fn round_trip(&self) -> Duration {
        Duration::from_micros(self.rtt_us)
    }

    /// Share of packets that are lost, 0 to 0.5.
    pub fn loss(&self) -> f64 {
        f64::from(self.loss_ppm) / 1e6
    }

    /// The same link without loss.
    const fn lossless(self) -> Link {
        Link { loss_ppm: 0, ..self }
    }

    /// Nanoseconds one way.
    const fn one_way(&self) -> u64 {
        self.rtt_us * 500
    }

    /// Bytes under way in one direction of a full link.
    fn under_way(&self) -> Option<u64> {
        let bits = u128::from(self.rate?) * u128::from(self.rtt_us) / 1_000_000;
        Some(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }

    /// Nanoseconds that the queue before a direction is long.
    fn queue_ns(&self) -> u64 {
        let least = LEAST_QUEUE_TIME.as_nanos() as u64;
        let bytes = self.rate.map_or(0, |rate| LEAST_QUEUE * 8 * 1_000_000_000 / rate);
        (self.rtt_us * 1000).max(least).max(bytes)
    }

    /// Bytes that one direction of a connection holds at most: what is under way, and a queue.
    fn most_held(&self) -> u64 {
        let held = self.rate.map(|rate| {
            let queued = u128::from(rate) * u128::from(self.queue_ns()) / 8_000_000_000;
            self.under_way()
                .unwrap_or(0)
                .saturating_add(u64::try_from(queued).unwrap_or(u64::MAX))
        });
        held.unwrap_or(MOST_HELD).clamp(LEAST_QUEUE, 2 * MOST_UNDER_WAY)
    }

    /// Bytes of the window that losses allow on the average (Mathis, Semke, Mahdavi and Ott, 1997); without any there is no bound.
    fn usual_window(&self) -> u64 {
        match self.loss_ppm {
            0 => u64::MAX,
            _ => (SEGMENT as f64 * (1.5 / self.loss()).sqrt()) as u64,
        }
    }

    /// The time after which a new connection has the window that it has on the average, or one that no longer limits it.
    pub(crate) fn settling(&self) -> Duration {
        let full = self.under_way().unwrap_or(MOST_HELD / 8).min(self.usual_window());
        let doublings = (full / (FIRST_WINDOW * SEGMENT))
            .checked_ilog2()
            .map_or(0, |log| log + 1);
        self.round_trip() * (doublings + 1)
    }

    /// Time for a connection to be opened through programs: handshakes of TCP, of TLS and of what is within.
    pub(crate) fn opening(&self) -> Duration {
        self.round_trip() * 6
    }

    /// How long an exchange of connections that move `bytes` together may take, beside what it takes without a link.
    pub(crate) fn patience(&self, bytes: u64) -> Duration {
        const MOST: f64 = 60.0;
        let moved = self.rate.map_or(0.0, |rate| 4.0 * bytes as f64 * 8.0 / rate as f64);
        self.round_trip() * 20 + Duration::from_secs_f64(moved.min(MOST))
    }

    /// The time that `bytes` take at the rate, on however many connections.
    pub(crate) fn passing(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(self.rate.map_or(0.0, |rate| bytes as f64 * 8.0 / rate as f64))
    }

    /// The time that one stream takes for `bytes` once it has opened: at the rate, or at that of Reno over the losses.
    pub(crate) fn transfer(&self, bytes: u64) -> Duration {
        let rtt = self.round_trip().as_secs_f64();
        let by_rate = self.rate.map_or(f64::INFINITY, |rate| rate as f64 / 8.0);
        let by_window = self.most_held().min(self.usual_window()) as f64 / rtt;
        let rate = [by_rate, by_window].into_iter().fold(f64::INFINITY, f64::min);
        self.settling() + Duration::from_secs_f64(bytes as f64 / rate)
    }

    /// The link as the result file has it, with what it was seen to do.
    pub(crate) fn facts(&self, measured: &Measured) -> EmulatedLink {
        EmulatedLink {
            asked: self.to_string(),
            rate: self.rate.map(|bits| bits as f64 / 8.0),
            rtt_s: self.round_trip().as_secs_f64(),
            loss: self.loss(),
            measured_rate: measured.rate,
            measured_rtt_s: measured.round_trip.as_secs_f64(),
            measured_stream: measured.stream,
            kept: measured.keeps(self),
        }
    }
}
