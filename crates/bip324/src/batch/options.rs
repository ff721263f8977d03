//! What a transport is told and what it counts.

use std::time::Duration;

use sealway_aead::batch::Lanes;

use crate::{CONTENTS_MAX, DEFAULT_CONTENTS_LIMIT, Error, OVERHEAD};

/// Bytes of arena that there must be beside the longest packet.
const BESIDE: usize = 64 * 1024;

/// Bytes that offsets can name.
const ARENA_MAX: usize = u32::MAX as usize;

/// When a batch has waited long enough.
///
/// Whichever comes first. A caller is told by [`super::BatchTransport::poll_flush`], and may seal or open at any time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FlushPolicy {
    /// Packets waiting in a direction. Default: 4096.
    pub packets: usize,
    /// Bytes of packets waiting in a direction, as on the wire. Default: 1 MiB.
    pub bytes: usize,
    /// Time since the first look at a waiting packet. Default: 50 microseconds.
    pub delay: Duration,
}

impl Default for FlushPolicy {
    fn default() -> Self {
        FlushPolicy {
            packets: 4096,
            bytes: 1 << 20,
            delay: Duration::from_micros(50),
        }
    }
}

/// What has waited long enough.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Due {
    /// It is time for [`super::BatchTransport::seal`].
    pub seal: bool,
    /// It is time for [`super::BatchTransport::open`].
    pub open: bool,
}

/// How much a transport takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchOptions {
    /// Bytes of the arena in which packets are sealed. Default: 8 MiB; at least 84 bytes, at most 2^32 - 1. It bounds the
    /// longest packet that can be sent.
    pub send_arena: usize,
    /// Bytes of the arena in which packets are opened. Default: 8 MiB; at least 64 KiB more than the longest packet that is
    /// accepted, at most 2^32 - 1.
    pub receive_arena: usize,
    /// Most bytes of contents that a peer may send in a packet, at most 2^24 - 1. One that announces more ends its
    /// connection. Default: [`DEFAULT_CONTENTS_LIMIT`].
    pub contents_limit: usize,
    /// Most connections. Default: 65,536.
    pub connections_limit: usize,
    /// When [`super::BatchTransport::poll_flush`] says that it is time.
    pub flush: FlushPolicy,
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            send_arena: 8 << 20,
            receive_arena: 8 << 20,
            contents_limit: DEFAULT_CONTENTS_LIMIT,
            connections_limit: 65_536,
            flush: FlushPolicy::default(),
        }
    }
}

impl BatchOptions {
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.contents_limit > CONTENTS_MAX {
            return Err(Error::ContentsTooLong {
                got: self.contents_limit,
                limit: CONTENTS_MAX,
            });
        }
        let arenas = [
            (self.send_arena, 64 + OVERHEAD),
            (self.receive_arena, self.contents_limit + OVERHEAD + BESIDE),
        ];
        for (got, need) in arenas {
            if got < need {
                return Err(Error::Buffer { need, got });
            }
            if got > ARENA_MAX {
                return Err(Error::ContentsTooLong { got, limit: ARENA_MAX });
            }
        }
        Ok(())
    }
}

/// What a transport has done since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct BatchCounters {
    /// Packets submitted, decoys among them.
    pub packets_sent: u64,
    /// Decoys submitted.
    pub decoys_sent: u64,
    /// Bytes of packets submitted, as on the wire.
    pub bytes_sent: u64,
    /// Packets opened and authentic, decoys among them.
    pub packets_received: u64,
    /// Decoys opened and thrown away.
    pub decoys_received: u64,
    /// Bytes taken from peers.
    pub bytes_received: u64,
    /// Connections that ended by what their peer sent, or because the machine failed.
    pub connections_failed: u64,
    /// Times that jobs went to a backend or an executor.
    pub runs: u64,
    /// Jobs that the processor did.
    pub processor_jobs: u64,
    /// Jobs that another executor did. What it had when it contradicted itself is in neither count.
    pub executor_jobs: u64,
    /// Runs of which the processor had a part and the executor another.
    pub splits: u64,
    /// Times that another executor failed and the processor went on without it.
    pub fallbacks: u64,
    /// How full the lanes of ChaCha20 were.
    pub cipher_lanes: Lanes,
    /// How full the lanes of Poly1305 were.
    pub mac_lanes: Lanes,
}

impl BatchCounters {
    /// Adds those of another transport.
    pub(super) const fn add(&mut self, other: &BatchCounters) {
        self.packets_sent += other.packets_sent;
        self.decoys_sent += other.decoys_sent;
        self.bytes_sent += other.bytes_sent;
        self.packets_received += other.packets_received;
        self.decoys_received += other.decoys_received;
        self.bytes_received += other.bytes_received;
        self.connections_failed += other.connections_failed;
        self.runs += other.runs;
        self.processor_jobs += other.processor_jobs;
        self.executor_jobs += other.executor_jobs;
        self.splits += other.splits;
        self.fallbacks += other.fallbacks;
        self.cipher_lanes.used += other.cipher_lanes.used;
        self.cipher_lanes.offered += other.cipher_lanes.offered;
        self.mac_lanes.used += other.mac_lanes.used;
        self.mac_lanes.offered += other.mac_lanes.offered;
    }
}
