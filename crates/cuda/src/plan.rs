//! Where the messages of a chunk lie, and which kernel does which: arithmetic without a device.
//!
//! A chunk has an input region, `[texts, tags and associated data][descriptors][tables]`, and an output region,
//! `[texts and tags][statuses]`. Both cross the link in one copy. Everything starts at a piece of 16 bytes, so that a kernel
//! loads and stores whole pieces only. Descriptors are sorted by bin and, within, by direction and length, so that the lanes
//! of a warp do alike work; [`Layout::position`] says where a message went.

mod tables;

use sealway_aead::batch::{Job, Slot};

use crate::device::Lanes;
use crate::error::{Error, Wrong};

pub(crate) use tables::{Kernel, Layout};

/// Bytes of a piece.
pub(crate) const PIECE: usize = 16;

/// Blocks of 64 bytes in every part of a long message but its last.
pub(crate) const PART_BLOCKS: usize = 256;

/// Bytes of a descriptor, of an entry of the other tables, and of what a part adds to its tag.
pub(crate) const DESC: usize = 32;
const AAD: usize = 8;
const PART: usize = 16;
const FIRST_PART: usize = 4;
pub(crate) const SUM: usize = 32;

/// For aligning the tables of a region, and for the entry after the last of `first_part`.
const SLACK: usize = 4 * DESC;

/// Which kernel takes messages of which length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bins {
    /// For each of [`Lanes::ALL`], the blocks of 64 bytes up to which a message goes there; what is longer goes on. A number
    /// not above the one before leaves lanes out. Above the last, messages are worked on in parts.
    pub up_to: [u32; 5],
}

impl Default for Bins {
    fn default() -> Self {
        Bins {
            up_to: [3, 0, 6, 14, 256],
        }
    }
}

impl Bins {
    /// For chunks of so many messages that every lane of the device has work anyway: by count of instructions, four rounds
    /// on a few lanes cost two thirds of one round on many, since what puts the lanes' sums together costs the same. Not
    /// yet tried on a device.
    pub const CROWDED: Bins = Bins {
        up_to: [3, 14, 30, 62, 256],
    };

    /// Blocks of the longest message that is not worked on in parts.
    fn whole(&self) -> usize {
        self.up_to.into_iter().max().unwrap_or(0) as usize
    }

    /// The kernel of a message; one above the number of [`Lanes::ALL`] for parts.
    #[inline]
    fn of(&self, blocks: usize) -> usize {
        self.up_to
            .iter()
            .position(|&up_to| blocks <= up_to as usize)
            .unwrap_or(Lanes::ALL.len())
    }
}

/// One message, as far as a device has to know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Message {
    /// The slot of its key.
    pub slot: Slot,
    /// Its nonce.
    pub nonce: [u8; 12],
    /// Bytes of the message, without the tag.
    pub len: u32,
    /// Bytes of its associated data.
    pub aad_len: u32,
    /// True if it is opened, false if it is sealed.
    pub opens: bool,
}

impl Message {
    /// The message of a job whose nonce has 12 bytes; that of another has zeros.
    pub(crate) fn of(job: &Job) -> Self {
        Message {
            slot: job.slot(),
            nonce: job.nonce().try_into().unwrap_or([0; 12]),
            len: job.message_len() as u32,
            aad_len: job.aad().len() as u32,
            opens: job.opens(),
        }
    }

    const fn text(&self) -> usize {
        round(self.len as usize, PIECE)
    }

    pub(crate) const fn blocks(&self) -> usize {
        (self.len as usize).div_ceil(64)
    }
}

pub(crate) const fn round(bytes: usize, to: usize) -> usize {
    bytes.div_ceil(to) * to
}

/// How much goes into a chunk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Limits {
    /// Bytes of either region.
    pub(crate) bytes: usize,
    /// Parts of long messages.
    pub(crate) parts: usize,
}

impl Limits {
    /// Those of a chunk of so many bytes.
    pub(crate) const fn of_chunk(bytes: usize) -> Self {
        Limits {
            bytes,
            // A message in parts that is longer than one part has two at least in every 16 KiB and a bit.
            parts: 2 * (bytes / (PART_BLOCKS * 64)) + 2,
        }
    }
}

/// What messages take of a chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Bytes of texts, tags and associated data.
    input: usize,
    /// Bytes of descriptors and tables.
    tables: usize,
    /// Bytes of texts and tags.
    output: usize,
    messages: usize,
    parts: usize,
}

impl Taken {
    fn with(mut self, message: &Message, in_parts: bool) -> Self {
        let tag = if message.opens { PIECE } else { 0 };
        self.input += message.text() + tag + round(message.aad_len as usize, PIECE);
        self.tables += DESC + if message.aad_len > 0 { AAD } else { 0 };
        self.output += message.text() + PIECE - tag;
        self.messages += 1;
        if in_parts {
            let parts = message.blocks().div_ceil(PART_BLOCKS);
            self.parts += parts;
            self.tables += parts * PART + FIRST_PART;
        }
        self
    }

    fn bytes(&self) -> usize {
        (self.input + self.tables).max(self.output + self.messages) + SLACK
    }

    fn fits(&self, limits: &Limits) -> bool {
        self.bytes() <= limits.bytes && self.parts <= limits.parts
    }
}

/// Where a message lies in its chunk, in pieces, and what the device has to know of it.
#[derive(Clone, Copy, Debug)]
struct Row {
    message: Message,
    src: u32,
    dst: u32,
    aad: u32,
}

/// Where the bytes of a message lie in the two regions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Place {
    /// Where the text starts in the input region.
    pub(crate) src: usize,
    /// Where the tag starts in the input region, if it opens.
    pub(crate) src_tag: usize,
    /// Where the associated data start in the input region.
    pub(crate) aad: usize,
    /// Where the text starts in the output region.
    pub(crate) dst: usize,
    /// Where the tag starts in the output region, if it seals.
    pub(crate) dst_tag: usize,
}

/// The messages of a chunk so far.
#[derive(Debug)]
pub(crate) struct Plan {
    limits: Limits,
    bins: Bins,
    crowded: Bins,
    crowd: usize,
    /// Blocks of the longest message that is in parts by neither of the bins.
    whole: usize,
    rows: Vec<Row>,
    taken: Taken,
}

impl Plan {
    /// An empty one. From `crowd` messages on, `crowded` holds instead of `bins`.
    pub(crate) fn new(limits: Limits, bins: Bins, crowded: Bins, crowd: usize) -> Self {
        Plan {
            limits,
            bins,
            crowded,
            crowd,
            whole: bins.whole().min(crowded.whole()),
            rows: Vec::new(),
            taken: Taken::default(),
        }
    }

    const fn in_parts(&self, message: &Message) -> bool {
        message.blocks() > self.whole
    }

    /// Refuses a message for which an empty chunk is too small.
    pub(crate) fn check(&self, message: &Message) -> Result<(), Wrong> {
        let alone = Taken::default().with(message, self.in_parts(message));
        if alone.fits(&self.limits) {
            return Ok(());
        }
        Err(Wrong::TooLong {
            bytes: alone.bytes(),
            most: self.limits.bytes,
        })
    }

    /// Adds a message and says where it lies; `None` if there is no room left.
    #[inline]
    pub(crate) fn push(&mut self, message: Message) -> Option<Place> {
        let taken = self.taken.with(&message, self.in_parts(&message));
        if !taken.fits(&self.limits) {
            return None;
        }
        let src = self.taken.input / PIECE;
        let text = message.text() / PIECE;
        self.rows.push(Row {
            message,
            src: src as u32,
            dst: (self.taken.output / PIECE) as u32,
            aad: (src + text + usize::from(message.opens)) as u32,
        });
        self.taken = taken;
        self.rows.last().map(Row::place)
    }

    /// Messages so far.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// A message, with its place.
    pub(crate) fn get(&self, index: usize) -> Option<(Message, Place)> {
        self.rows.get(index).map(|row| (row.message, row.place()))
    }

    /// All messages, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Message, Place)> + '_ {
        self.rows.iter().map(|row| (row.message, row.place()))
    }

    /// Forgets all messages.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.taken = Taken::default();
    }

    /// The bins that hold for as many messages as there are.
    fn bins(&self) -> &Bins {
        if self.rows.len() >= self.crowd {
            &self.crowded
        } else {
            &self.bins
        }
    }
}

impl Row {
    fn place(&self) -> Place {
        let (src, dst) = (self.src as usize * PIECE, self.dst as usize * PIECE);
        let text = self.message.text();
        Place {
            src,
            src_tag: src + text,
            aad: self.aad as usize * PIECE,
            dst,
            dst_tag: dst + text,
        }
    }
}

/// Refuses options that would leave no room for anything.
pub(crate) fn check_chunk_bytes(name: &'static str, bytes: usize) -> Result<(), Error> {
    // Statuses, descriptors and texts are found by numbers of 32 bits, of pieces.
    if (4096..=1 << 32).contains(&bytes) && bytes.is_multiple_of(PIECE) {
        return Ok(());
    }
    Err(Error::Option {
        name,
        may_be: "a multiple of 16 from 4096 to 4294967296",
    })
}

#[cfg(test)]
mod tests;
