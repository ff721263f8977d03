//! Descriptors and tables of a chunk, as the kernels read them: little-endian words.

use std::ops::Range;

use crate::device::Lanes;

use super::{AAD, DESC, FIRST_PART, Message, PART, PART_BLOCKS, PIECE, Plan, SUM, round};

/// Lengths of fewer blocks than this are told apart when sorting; above, by three bits after the first.
const FINE: usize = 64;

/// Classes of length.
const CLASSES: usize = FINE + 8 * 20;

/// Kernels there are for messages: by lanes, and in parts.
const KERNELS: usize = Lanes::ALL.len() + 1;

/// Which kernel does a group of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kernel {
    Lanes(Lanes),
    /// In parts: so many of them.
    Parts(u32),
}

/// Descriptors that one kernel does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Group {
    pub(crate) kernel: Kernel,
    /// The first descriptor.
    pub(crate) first: u32,
    /// Descriptors.
    pub(crate) count: u32,
}

/// Where everything of a chunk lies in its regions.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Texts, tags and associated data in the input region; starts at 0.
    pub(crate) texts: Range<usize>,
    pub(crate) descs: Range<usize>,
    pub(crate) aad: Range<usize>,
    pub(crate) parts: Range<usize>,
    pub(crate) first_part: Range<usize>,
    /// Texts and tags in the output region; starts at 0.
    pub(crate) outputs: Range<usize>,
    pub(crate) statuses: Range<usize>,
    /// Bytes for what parts add to their tags.
    pub(crate) sums: usize,
    pub(crate) groups: Vec<Group>,
    /// The descriptor of each message.
    positions: Vec<u32>,
    /// Scratch: the place of each class while sorting.
    counts: Vec<u32>,
}

impl Layout {
    /// Bytes of the input region that the device needs.
    pub(crate) fn input(&self) -> usize {
        self.first_part.end
    }

    /// Bytes of the output region that the device fills.
    pub(crate) fn output(&self) -> usize {
        self.statuses.end
    }

    /// The descriptor of a message.
    #[inline]
    pub(crate) fn position(&self, message: usize) -> usize {
        self.positions[message] as usize
    }
}

impl Plan {
    /// Decides about kernels and where the tables lie.
    pub(crate) fn lay_out(&self, layout: &mut Layout) {
        self.sort(layout);
        let after = |range: &Range<usize>, bytes: usize| {
            let start = round(range.end, DESC);
            start..start + bytes
        };
        let with_aad = self.rows.iter().filter(|row| row.message.aad_len > 0).count();
        let (mut parts, mut ends) = (0, 0);
        if let Some(group) = layout.groups.last()
            && let Kernel::Parts(count) = group.kernel
        {
            (parts, ends) = (count as usize, group.count as usize + 1);
        }
        layout.texts = 0..self.taken.input;
        layout.descs = after(&layout.texts, self.rows.len() * DESC);
        layout.aad = after(&layout.descs, with_aad * AAD);
        layout.parts = after(&layout.aad, parts * PART);
        layout.first_part = layout.parts.end..layout.parts.end + ends * FIRST_PART;
        layout.sums = parts * SUM;
        layout.outputs = 0..self.taken.output;
        layout.statuses = self.taken.output..self.taken.output + self.rows.len();
    }

    /// Sorts by kernel, direction and length, longest first; a counting sort.
    fn sort(&self, layout: &mut Layout) {
        let bins = self.bins();
        let key = |message: &Message| {
            let blocks = message.blocks();
            let group = bins.of(blocks) * 2 + usize::from(message.opens);
            group * CLASSES + (CLASSES - 1 - class(blocks))
        };
        layout.counts.clear();
        layout.counts.resize(2 * KERNELS * CLASSES, 0);
        let mut parts = 0;
        layout.positions.clear();
        for row in &self.rows {
            let key = key(&row.message);
            // Each message's place in the order for now.
            layout.positions.push(key as u32);
            layout.counts[key] += 1;
            if key >= 2 * (KERNELS - 1) * CLASSES {
                parts += row.message.blocks().div_ceil(PART_BLOCKS) as u32;
            }
        }
        layout.groups.clear();
        let mut first = 0;
        for (kernel, counts) in layout.counts.chunks_mut(2 * CLASSES).enumerate() {
            let start = first;
            for count in counts {
                first += std::mem::replace(count, first);
            }
            if first > start {
                layout.groups.push(Group {
                    kernel: Lanes::ALL
                        .get(kernel)
                        .map_or(Kernel::Parts(parts), |&lanes| Kernel::Lanes(lanes)),
                    first: start,
                    count: first - start,
                });
            }
        }
        for position in &mut layout.positions {
            let place = &mut layout.counts[*position as usize];
            *position = *place;
            *place += 1;
        }
    }

    /// Writes descriptors and tables into `region`, which is what follows the texts: from the end of [`Layout::texts`] on.
    pub(crate) fn write_tables(&self, layout: &Layout, region: &mut [u8]) {
        let base = layout.texts.end;
        let mut aads = 0;
        for (row, &position) in self.rows.iter().zip(&layout.positions) {
            let message = &row.message;
            let mut what = u32::from(message.opens);
            if message.aad_len > 0 {
                put(
                    region,
                    layout.aad.start - base + aads * AAD,
                    &[row.aad, message.aad_len],
                );
                aads += 1;
                what |= (aads as u32) << 1;
            }
            let nonce = message.nonce.as_chunks::<4>().0;
            let words = [
                row.src,
                row.dst,
                message.len,
                message.slot.0,
                u32::from_le_bytes(nonce[0]),
                u32::from_le_bytes(nonce[1]),
                u32::from_le_bytes(nonce[2]),
                what,
            ];
            put(region, layout.descs.start - base + position as usize * DESC, &words);
        }
        if !layout.first_part.is_empty() {
            self.write_parts(layout, region);
        }
    }

    fn write_parts(&self, layout: &Layout, region: &mut [u8]) {
        let base = layout.texts.end;
        let Some(group) = layout.groups.last() else {
            return;
        };
        // Messages in the order of their descriptors.
        let mut long = vec![0; group.count as usize];
        for (row, &position) in self.rows.iter().zip(&layout.positions) {
            if position >= group.first {
                long[(position - group.first) as usize] = row.message.blocks();
            }
        }
        let mut part = 0;
        for (desc, &blocks) in long.iter().enumerate() {
            put(region, layout.first_part.start - base + desc * FIRST_PART, &[part]);
            for first in (0..blocks).step_by(PART_BLOCKS) {
                let count = PART_BLOCKS.min(blocks - first) as u32;
                let at = layout.parts.start - base + part as usize * PART;
                put(region, at, &[desc as u32, first as u32, count, part]);
                part += 1;
            }
        }
        put(region, layout.first_part.end - base - FIRST_PART, &[part]);
    }
}

/// Writes words at a byte.
#[inline]
fn put(region: &mut [u8], at: usize, words: &[u32]) {
    let room = region[at..].as_chunks_mut::<4>().0;
    for (place, word) in room.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

/// The class of a length: its blocks, or above 63 three significant bits after the first.
fn class(blocks: usize) -> usize {
    if blocks < FINE {
        return blocks;
    }
    let top = blocks.ilog2() as usize;
    (FINE + (top - 6) * 8 + (blocks >> (top - 3) & 7)).min(CLASSES - 1)
}

const _: () = assert!(PIECE == PART && DESC.is_multiple_of(PIECE));
