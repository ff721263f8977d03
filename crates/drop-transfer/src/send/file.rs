//! A file while it is being sent.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::entry::Entry;
use crate::groups::{GROUP, GroupHash, group_count};
use crate::hashing::{Agreed, FileHash};
use crate::progress::UnderWay;
use crate::source::SourceFile;
use sealway_drop::lock;

/// Bytes of a segment: what one connection sends of a file before it looks what else there is. A multiple of the groups.
pub(super) const SEGMENT: u64 = 8 * GROUP;

/// A file that is open. Its parts are sent by any thread; the last one ends it.
pub(super) struct Sending {
    pub(super) id: u32,
    pub(super) size: u64,
    pub(super) file: SourceFile,
    pub(super) under_way: Arc<UnderWay>,
    hash: Mutex<FileHash>,
    parts: AtomicUsize,
    failed: AtomicBool,
}

impl Sending {
    /// One part is outstanding from the beginning: the one that deals out the others.
    pub(super) fn new(id: u32, file: SourceFile, entry: &Entry, hashing: &Agreed) -> Self {
        let size = entry.size();
        Self {
            id,
            size,
            file,
            under_way: UnderWay::new(&entry.path, size),
            hash: Mutex::new(FileHash::new(hashing, id, size)),
            parts: AtomicUsize::new(1),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn note(&self, group: u64, hash: GroupHash) {
        lock(&self.hash).set(group, hash);
    }

    pub(super) fn note_holes(&self, groups: Range<u64>) {
        lock(&self.hash).set_holes(groups);
    }

    /// What the receiver compares.
    pub(super) fn hash(&self) -> Option<[u8; 32]> {
        lock(&self.hash).value()
    }

    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// More parts are outstanding.
    pub(super) fn add_parts(&self, count: usize) {
        self.parts.fetch_add(count, Ordering::Relaxed);
    }

    /// A part is done. True for the last one.
    pub(super) fn part_done(&self) -> bool {
        self.parts.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// What is to be sent of a file, and what is not because it is a hole.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Layout {
    /// Offset and length of each segment, rising.
    pub(super) segments: Vec<(u64, u64)>,
    /// Offset and length of each hole, rising.
    pub(super) holes: Vec<(u64, u64)>,
}

impl Layout {
    /// Of a file of `size` bytes with content in `extents` (offset and length, rising), without the groups that `skip` names
    /// (rising). Segments begin and end with groups; a hole is at least a whole group long.
    pub(super) fn new(size: u64, extents: &[(u64, u64)], skip: &[u64]) -> Self {
        let mut layout = Self::default();
        if size == 0 {
            return layout;
        }
        let count = group_count(size);
        let mut skip = skip.iter().copied().peekable();
        let mut next = 0;
        for (at, len) in extents.iter().copied().filter(|&(at, len)| len > 0 && at < size) {
            let data = next.max(at / GROUP)..count.min(at.saturating_add(len).div_ceil(GROUP));
            if data.is_empty() {
                continue;
            }
            without(next..data.start, &mut skip, |groups| layout.hole(size, groups));
            without(data.clone(), &mut skip, |groups| layout.data(size, groups));
            next = data.end;
        }
        without(next..count, &mut skip, |groups| layout.hole(size, groups));
        layout
    }

    fn hole(&mut self, size: u64, groups: Range<u64>) {
        self.holes.push(bytes(size, groups));
    }

    /// Goes on with the last segment if it ends here and is not full.
    fn data(&mut self, size: u64, groups: Range<u64>) {
        let (mut start, len) = bytes(size, groups);
        let end = start + len;
        if let Some((at, sum)) = self.segments.last_mut()
            && *at + *sum == start
            && *sum < SEGMENT
        {
            let more = (end - start).min(SEGMENT - *sum);
            *sum += more;
            start += more;
        }
        while start < end {
            let len = (end - start).min(SEGMENT);
            self.segments.push((start, len));
            start += len;
        }
    }
}

/// Offset and length of groups of a file of `size` bytes.
fn bytes(size: u64, groups: Range<u64>) -> (u64, u64) {
    let start = groups.start * GROUP;
    (start, groups.end.saturating_mul(GROUP).min(size) - start)
}

/// Gives `take` what of `groups` is left without those that `skip` names.
fn without(
    groups: Range<u64>,
    skip: &mut std::iter::Peekable<impl Iterator<Item = u64>>,
    mut take: impl FnMut(Range<u64>),
) {
    let mut from = groups.start;
    while let Some(skipped) = skip.next_if(|&skipped| skipped < groups.end) {
        if skipped > from {
            take(from..skipped);
        }
        from = from.max(skipped + 1);
    }
    if from < groups.end {
        take(from..groups.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::group_len;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_file_without_holes_is_cut_into_segments() {
        let size = 2 * SEGMENT + 5;
        let layout = Layout::new(size, &[(0, size)], &[]);
        assert_eq!(layout.segments, [(0, SEGMENT), (SEGMENT, SEGMENT), (2 * SEGMENT, 5)]);
        assert!(layout.holes.is_empty());
    }

    #[test]
    fn holes_of_whole_groups_are_left_out() {
        let layout = Layout::new(10 * MIB, &[(0, 100), (3 * MIB - 1, 2), (9 * MIB + 5, 1)], &[]);
        assert_eq!(layout.segments, [(0, MIB), (2 * MIB, 2 * MIB), (9 * MIB, MIB)]);
        assert_eq!(layout.holes, [(MIB, MIB), (4 * MIB, 5 * MIB)]);
        assert_eq!(Layout::new(5 * MIB, &[], &[]).holes, [(0, 5 * MIB)]);
    }

    #[test]
    fn groups_that_the_receiver_has_are_left_out() {
        let size = 6 * MIB + 1;
        let layout = Layout::new(size, &[(0, size)], &[0, 3, 6]);
        assert_eq!(layout.segments, [(MIB, 2 * MIB), (4 * MIB, 2 * MIB)]);
        assert!(Layout::new(0, &[], &[]).segments.is_empty());
    }

    #[test]
    fn a_layout_takes_the_time_of_what_is_there_not_of_what_a_file_claims_to_be() {
        let size = i64::MAX as u64;
        let layout = Layout::new(size, &[(5 * MIB, 1), (1 << 40, 9 * MIB)], &[6, 1 << 20]);
        assert_eq!(layout.segments, [(5 * MIB, MIB), ((1 << 40) + MIB, SEGMENT)]);
        let far = (1 << 40) + 9 * MIB;
        assert_eq!(
            layout.holes,
            [(0, 5 * MIB), (7 * MIB, (1 << 40) - 7 * MIB), (far, size - far)]
        );
    }

    proptest::proptest! {
        /// Segments, holes and skipped groups cover the file exactly once, and no byte of content is in a hole.
        #[test]
        fn every_byte_is_somewhere_once(
            size in 0..40 * MIB,
            cuts in proptest::collection::btree_set(0..40 * MIB, 0..8),
            skip in proptest::collection::btree_set(0..40u64, 0..8),
        ) {
            let cuts: Vec<u64> = cuts.into_iter().filter(|cut| *cut < size).collect();
            let extents: Vec<_> = cuts.chunks_exact(2).map(|pair| (pair[0], pair[1] - pair[0])).collect();
            let skip: Vec<u64> = skip.into_iter().filter(|group| *group < group_count(size) && size > 0).collect();
            let layout = Layout::new(size, &extents, &skip);
            let mut all: Vec<_> = layout.segments.iter().chain(&layout.holes).copied()
                .chain(skip.iter().map(|group| (group * GROUP, group_len(size, *group)))).collect();
            all.sort_unstable();
            let mut at = 0;
            for (start, len) in all {
                assert_eq!(start, at);
                at += len;
            }
            assert_eq!(at, size);
            for (start, len) in layout.holes {
                assert!(extents.iter().all(|(at, bytes)| at + bytes <= start || *at >= start + len));
            }
        }
    }
}
