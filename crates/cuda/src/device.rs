//! What the engine needs of a device, so that it can be tried on one that is not there.
//!
//! A device gives out numbers: for its memory, for host memory that it can reach, for queues (streams) and for marks in
//! them (events). Work is put into a queue and done later, in order; queues are not ordered among each other, except by
//! [`Device::queue_wait`]. All of it is safe to call in any order: a device refuses what lies outside its memory, and gives
//! access to pinned memory only when nothing under way uses it. What the descriptors say that a kernel reads is not
//! checked; it can make a kernel read and write other memory of the same device.

use std::fmt;
use std::ops::Range;

use crate::Error;

/// Memory on the device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Buffer(pub u32);

/// Host memory that the device can reach.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Pinned(pub u32);

/// A queue of work, done in order.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Queue(pub u32);

/// A mark in a queue.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Event(pub u32);

/// A stretch of memory on the device.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Span {
    /// The memory.
    pub buffer: Buffer,
    /// Where it starts, in bytes.
    pub at: usize,
    /// Bytes.
    pub len: usize,
}

impl Span {
    /// A stretch of `buffer`.
    pub const fn new(buffer: Buffer, range: &Range<usize>) -> Self {
        Span {
            buffer,
            at: range.start,
            len: range.end.saturating_sub(range.start),
        }
    }
}

/// Which device this is.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its number, counted from 0.
    pub ordinal: u32,
    /// Its name, as the driver gives it.
    pub name: String,
    /// Where it is on the PCI bus, as the driver writes it: `domain:bus:device.function`, hexadecimal. Two cards of one name
    /// differ in it. Empty if no place is known.
    pub pci: String,
    /// Its compute capability.
    pub compute: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Copies that can be under way beside kernels.
    pub copy_engines: u32,
    /// The version of CUDA that the driver is for.
    pub driver: (u32, u32),
}

impl DeviceInfo {
    /// A device of which no more is known than its name.
    pub fn named(name: impl Into<String>) -> Self {
        DeviceInfo {
            ordinal: 0,
            name: name.into(),
            pci: String::new(),
            compute: (0, 0),
            multiprocessors: 0,
            memory_bytes: 0,
            copy_engines: 0,
            driver: (0, 0),
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} multiprocessors, {} MiB, compute capability {}.{}, driver for CUDA {}.{})",
            self.name,
            self.multiprocessors,
            self.memory_bytes >> 20,
            self.compute.0,
            self.compute.1,
            self.driver.0,
            self.driver.1
        )
    }
}

/// How many lanes work on a message together.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Lanes {
    /// One.
    One,
    /// Four.
    Four,
    /// Eight.
    Eight,
    /// Sixteen.
    Sixteen,
    /// A whole warp.
    Warp,
}

impl Lanes {
    /// All of them, fewest lanes first.
    pub const ALL: [Lanes; 5] = [Lanes::One, Lanes::Four, Lanes::Eight, Lanes::Sixteen, Lanes::Warp];

    /// How many.
    pub const fn count(self) -> u32 {
        match self {
            Lanes::One => 1,
            Lanes::Four => 4,
            Lanes::Eight => 8,
            Lanes::Sixteen => 16,
            Lanes::Warp => 32,
        }
    }
}

/// What every kernel over messages takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Messages {
    /// Descriptors of this launch.
    pub descs: Span,
    /// The input arena.
    pub src: Span,
    /// The output arena.
    pub dst: Span,
    /// The key table.
    pub keys: Span,
}

/// A kernel with what it works on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Launch {
    /// Seals and opens messages of one bin.
    Lanes {
        /// Lanes that share a message.
        lanes: Lanes,
        /// Messages.
        count: u32,
        /// The messages.
        messages: Messages,
        /// Where associated data lie.
        aad: Span,
        /// One byte a message.
        status: Span,
    },
    /// Works on parts of long messages; [`Launch::Ends`] comes after it.
    Parts {
        /// Parts.
        count: u32,
        /// The messages.
        messages: Messages,
        /// Which part of which message.
        parts: Span,
        /// What each part adds to its tag.
        sums: Span,
    },
    /// Ends long messages after their parts.
    Ends {
        /// Messages.
        count: u32,
        /// The messages.
        messages: Messages,
        /// Which part of which message.
        parts: Span,
        /// The first part of each message, and the number of parts.
        first_part: Span,
        /// Where associated data lie.
        aad: Span,
        /// One byte a message.
        status: Span,
        /// What each part adds to its tag.
        sums: Span,
    },
    /// Takes messages out of packets that lie anywhere.
    Spread {
        /// Messages.
        count: u32,
        /// Descriptors, of which `src` and the length count.
        descs: Span,
        /// For each of them the byte at which its text starts among the packets, in words of 32 bits.
        places: Span,
        /// The packets.
        packets: Span,
        /// The input arena.
        src: Span,
    },
    /// Puts messages back into their packets, with the tags of those that were sealed.
    Join {
        /// Messages.
        count: u32,
        /// Descriptors, of which `dst` and the length count.
        descs: Span,
        /// As in [`Launch::Spread`].
        places: Span,
        /// The output arena.
        dst: Span,
        /// The packets.
        packets: Span,
    },
    /// Puts keys into the table.
    SetKeys {
        /// Keys.
        count: u32,
        /// The key table.
        keys: Span,
        /// Slots and their keys, each slot at most once.
        updates: Span,
    },
}

impl Launch {
    /// Threads of a block, for every kernel.
    pub const BLOCK: u32 = 128;

    /// Blocks that the launch takes.
    pub const fn blocks(&self) -> u32 {
        let threads = match self {
            Launch::Lanes { lanes, count, .. } => *count as u64 * lanes.count() as u64,
            Launch::Parts { count, .. }
            | Launch::Ends { count, .. }
            | Launch::Spread { count, .. }
            | Launch::Join { count, .. } => *count as u64 * 32,
            Launch::SetKeys { count, .. } => *count as u64,
        };
        threads.div_ceil(Self::BLOCK as u64) as u32
    }

    /// Everything that it reads or writes.
    pub fn spans(&self) -> Vec<Span> {
        let with = |m: &Messages, more: &[Span]| [&[m.descs, m.src, m.dst, m.keys][..], more].concat();
        match self {
            Launch::Lanes {
                messages, aad, status, ..
            } => with(messages, &[*aad, *status]),
            Launch::Parts {
                messages, parts, sums, ..
            } => with(messages, &[*parts, *sums]),
            Launch::Ends {
                messages,
                parts,
                first_part,
                aad,
                status,
                sums,
                ..
            } => with(messages, &[*parts, *first_part, *aad, *status, *sums]),
            Launch::Spread {
                descs,
                places,
                packets,
                src,
                ..
            } => vec![*descs, *places, *packets, *src],
            Launch::Join {
                descs,
                places,
                dst,
                packets,
                ..
            } => vec![*descs, *places, *dst, *packets],
            Launch::SetKeys { keys, updates, .. } => vec![*keys, *updates],
        }
    }
}

/// A device that runs the kernels.
///
/// # Errors
/// Every call that can fail gives [`Error::OutOfMemory`] or [`Error::Device`]. A failure of work already queued may show in
/// any later call.
pub trait Device: Send + fmt::Debug {
    /// Which device this is.
    fn info(&self) -> &DeviceInfo;

    /// Memory on the device, aligned to 256 bytes; what it holds is not defined.
    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Error>;

    /// Gives memory back, after all that is under way.
    fn free(&mut self, buffer: Buffer);

    /// Zeroed host memory that the device can reach, aligned to 256 bytes, cached as any other.
    fn allocate_pinned(&mut self, bytes: usize) -> Result<Pinned, Error>;

    /// Gives host memory back, after all that is under way, and wipes it.
    fn free_pinned(&mut self, pinned: Pinned);

    /// Host memory to read and write, after what is under way with it. Empty for memory that was not given out. An error if it may
    /// still be in use; one of a device that is lost is none here, for then nothing uses it.
    fn pinned(&mut self, pinned: Pinned) -> Result<&mut [u8], Error>;

    /// Host memory to read, as [`Device::pinned`] would give it without waiting: `None` if something under way may use it, or if it
    /// was not given out.
    fn pinned_now(&self, pinned: Pinned) -> Option<&[u8]>;

    /// A queue.
    fn queue(&mut self) -> Result<Queue, Error>;

    /// A mark, for measuring time too if `timing` is set.
    fn event(&mut self, timing: bool) -> Result<Event, Error>;

    /// Copies `from` of the host's memory into the device's.
    fn copy_in(&mut self, queue: Queue, host: Pinned, from: Range<usize>, to: Buffer, at: usize) -> Result<(), Error>;

    /// Copies the device's memory to the host's, where it starts at `at`.
    fn copy_out(&mut self, queue: Queue, from: Span, host: Pinned, at: usize) -> Result<(), Error>;

    /// Fills memory on the device with zeros.
    fn clear(&mut self, queue: Queue, span: Span) -> Result<(), Error>;

    /// Runs a kernel.
    fn launch(&mut self, queue: Queue, launch: &Launch) -> Result<(), Error>;

    /// Marks all that is in the queue so far.
    fn record(&mut self, queue: Queue, event: Event) -> Result<(), Error>;

    /// Lets what is put into the queue from now on wait for what the event marked when it was recorded last.
    fn queue_wait(&mut self, queue: Queue, event: Event) -> Result<(), Error>;

    /// True if what the event marked is done.
    fn is_done(&mut self, event: Event) -> Result<bool, Error>;

    /// Waits for what the event marked.
    fn wait(&mut self, event: Event) -> Result<(), Error>;

    /// Waits for all that is in the queue.
    fn finish(&mut self, queue: Queue) -> Result<(), Error>;

    /// Seconds between two events for measuring time that are done.
    fn elapsed_s(&mut self, from: Event, to: Event) -> Result<f64, Error>;
}
