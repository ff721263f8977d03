//! A file while it is being sent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::groups::{GROUP, GroupHash, GroupHashes, group_count, group_len};
use crate::lock;
use crate::source::SourceFile;

/// Bytes of a segment: what one connection sends of a file before it looks what else there is. A multiple of the groups.
pub(super) const SEGMENT: u64 = 8 * GROUP;

/// A file that is open. Its parts are sent by any thread; the last one ends it.
pub(super) struct Sending {
    pub(super) id: u32,
    pub(super) size: u64,
    pub(super) file: SourceFile,
    hashes: Option<Mutex<GroupHashes>>,
    parts: AtomicUsize,
    failed: AtomicBool,
}

impl Sending {
    /// One part is outstanding from the beginning: the one that deals out the others.
    pub(super) fn new(id: u32, size: u64, file: SourceFile, hash: bool) -> Self {
        Self {
            id,
            size,
            file,
            hashes: hash.then(|| Mutex::new(GroupHashes::new(size))),
            parts: AtomicUsize::new(1),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) fn hashed(&self) -> bool {
        self.hashes.is_some()
    }

    pub(super) fn note(&self, group: u64, hash: GroupHash) {
        if let Some(hashes) = &self.hashes {
            lock(hashes).set(group, hash);
        }
    }

    pub(super) fn root(&self) -> Option<[u8; 32]> {
        self.hashes.as_ref().and_then(|hashes| lock(hashes).root())
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
        let mut skip = skip.iter().copied().peekable();
        let mut extents = extents.iter().copied().peekable();
        for group in 0..group_count(size) {
            let (start, len) = (group * GROUP, group_len(size, group));
            while skip.next_if(|&skipped| skipped < group).is_some() {}
            while extents.next_if(|&(at, len)| at.saturating_add(len) <= start).is_some() {}
            if skip.peek() == Some(&group) || len == 0 {
                continue;
            }
            let data = extents.peek().is_some_and(|&(at, _)| at < start + len);
            let (ranges, longest) = match data {
                true => (&mut layout.segments, SEGMENT),
                false => (&mut layout.holes, u64::MAX),
            };
            match ranges.last_mut() {
                Some((at, sum)) if *at + *sum == start && *sum < longest => *sum += len,
                _ => ranges.push((start, len)),
            }
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
