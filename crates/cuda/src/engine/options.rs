//! What an engine is opened with, and what it reports.

use crate::Error;
use crate::plan::{Bins, check_chunk_bytes};

/// What an engine is opened with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Options {
    /// The number of the device.
    pub device: u32,
    /// Slots of the key table.
    pub slots: usize,
    /// Bytes that cross the link at a time, in either direction: texts, associated data and tables together. No message can
    /// be longer. A multiple of 16, at least 4096.
    pub chunk_bytes: usize,
    /// Chunks under way at a time, each with a queue of its own. Each takes twice [`Options::chunk_bytes`] on the device and
    /// as much pinned host memory.
    pub chunks: usize,
    /// Which kernel takes messages of which length.
    pub bins: Bins,
    /// The same for chunks with at least [`Options::crowd`] messages, where a lane more for each message is a lane less for
    /// another.
    pub crowded: Bins,
    /// Messages from which a chunk is crowded.
    pub crowd: usize,
    /// Slabs of memory into which packets are written as they stand on a wire: see [`crate::Engine::slab`].
    pub slabs: usize,
    /// Bytes of packets in a slab; two thirds more for tables. Each takes twice as much pinned host memory, and four times
    /// on the device. A multiple of 16, at least 4096.
    pub slab_bytes: usize,
    /// True to measure copies and kernels: [`Report::times`]. Costs a little.
    pub timing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            device: 0,
            slots: 65_536,
            chunk_bytes: 4 << 20,
            chunks: 4,
            bins: Bins::default(),
            crowded: Bins::CROWDED,
            crowd: 8192,
            slabs: 0,
            slab_bytes: 2 << 20,
            timing: false,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_chunk_bytes("chunk_bytes", self.chunk_bytes)?;
        check_chunk_bytes("slab_bytes", self.slab_bytes)?;
        if self.slabs > 1024 {
            return Err(Error::Option {
                name: "slabs",
                may_be: "from 0 to 1024",
            });
        }
        if !(1..=64).contains(&self.chunks) {
            return Err(Error::Option {
                name: "chunks",
                may_be: "from 1 to 64",
            });
        }
        if !(1..=1 << 27).contains(&self.slots) {
            return Err(Error::Option {
                name: "slots",
                may_be: "from 1 to 134217728",
            });
        }
        Ok(())
    }
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Jobs that ended as [`sealway_aead::batch::Status::Done`].
    pub done: usize,
    /// Jobs that were not authentic.
    pub refused: usize,
    /// Chunks that they went in.
    pub chunks: usize,
    /// Bytes copied to the device: texts, associated data, descriptors and tables.
    pub link_in: u64,
    /// Bytes copied from the device: texts, tags and statuses.
    pub link_out: u64,
    /// Kernels launched.
    pub launches: u64,
    /// How long the device took, added up over chunks, which overlap; if [`Options::timing`] is set.
    pub times: Option<Times>,
}

/// How long the device took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// Copying to the device.
    pub copy_in_s: f64,
    /// Kernels, and waiting for keys.
    pub kernels_s: f64,
    /// Copying from the device.
    pub copy_out_s: f64,
}

impl Report {
    pub(crate) fn add_times(&mut self, times: Times) {
        let sum = self.times.get_or_insert_default();
        sum.copy_in_s += times.copy_in_s;
        sum.kernels_s += times.kernels_s;
        sum.copy_out_s += times.copy_out_s;
    }
}
