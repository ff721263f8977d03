//! BLAKE3 of a file by groups of 1 MiB, hashed in any order by any thread.
//!
//! BLAKE3 is a tree over chunks of 1 KiB. The value of a complete subtree can be computed apart from the rest if one knows
//! where it stands, so each group of 2^10 chunks is hashed alone and the groups are joined at the end. The result is the
//! plain BLAKE3 of the file, as `b3sum` prints it (BLAKE3 paper, section 2.1).

use std::collections::BTreeMap;
use std::ops::Range;

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

use sealway_drop::ranges::Ranges;

/// Bytes of a group. A power of two of chunks, so that a group is a subtree.
pub const GROUP: u64 = 1 << 20;

/// What a group hashes to: 32 bytes.
pub type GroupHash = [u8; 32];

/// Number of groups of a file of `size` bytes; an empty file has one.
pub const fn group_count(size: u64) -> u64 {
    if size == 0 { 1 } else { size.div_ceil(GROUP) }
}

/// Length of group `index` of a file of `size` bytes; 0 past its end.
pub const fn group_len(size: u64, index: u64) -> u64 {
    let start = index.saturating_mul(GROUP);
    if start >= size {
        0
    } else if size - start < GROUP {
        size - start
    } else {
        GROUP
    }
}

/// Hashes one group of a file as its bytes come, in order.
pub struct GroupHasher {
    hasher: blake3::Hasher,
    alone: bool,
}

impl GroupHasher {
    /// For group `index` of a file of `size` bytes.
    pub fn new(size: u64, index: u64) -> Self {
        let mut hasher = blake3::Hasher::new();
        let alone = group_count(size) == 1;
        if !alone {
            hasher.set_input_offset(index.saturating_mul(GROUP));
        }
        Self { hasher, alone }
    }

    /// The next bytes of the group.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// The value of the group, once all of its bytes were given.
    pub fn finish(&self) -> GroupHash {
        match self.alone {
            // The only group of a file is its root.
            true => *self.hasher.finalize().as_bytes(),
            false => self.hasher.finalize_non_root(),
        }
    }
}

/// Hashes group `index` of a file of `size` bytes, of which `read` gives the bytes from an offset on.
pub(crate) fn hash_group<E>(
    size: u64,
    index: u64,
    read: impl FnOnce(&mut [u8], u64) -> Result<(), E>,
) -> Result<GroupHash, E> {
    let mut bytes = vec![0; group_len(size, index) as usize];
    read(&mut bytes, index.saturating_mul(GROUP))?;
    let mut hasher = GroupHasher::new(size, index);
    hasher.update(&bytes);
    Ok(hasher.finish())
}

/// The value of group `index` of a file of `size` bytes if all of it is zeros.
pub fn zeros(size: u64, index: u64) -> GroupHash {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut hasher = GroupHasher::new(size, index);
    let mut left = group_len(size, index);
    while left > 0 {
        let len = left.min(ZEROS.len() as u64);
        hasher.update(&ZEROS[..len as usize]);
        left -= len;
    }
    hasher.finish()
}

/// What stands in the tree for a group in a hole, where both ends hash by the map of holes.
pub fn hole() -> GroupHash {
    blake3::derive_key("sealway drop 1 group in a hole", &[])
}

/// The values of the groups of one file, filled in any order.
///
/// Takes memory and time for what was set, not for what a file claims to be: holes cost as little as one group each.
pub struct GroupHashes {
    groups: BTreeMap<u64, GroupHash>,
    /// Groups in holes, by their numbers.
    holes: Ranges,
    count: u64,
}

impl GroupHashes {
    /// For a file of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            groups: BTreeMap::new(),
            holes: Ranges::new(),
            count: group_count(size),
        }
    }

    /// Notes that groups are in a hole; what is past the end is ignored. The result is then not the hash of the content alone,
    /// but that of the content and of where the holes are.
    pub fn set_holes(&mut self, groups: Range<u64>) {
        self.holes.insert(groups.start..groups.end.min(self.count));
    }

    /// Notes the value of group `index`; one past the end is ignored.
    pub fn set(&mut self, index: u64, hash: GroupHash) {
        if index < self.count {
            self.groups.insert(index, hash);
        }
    }

    /// The hash of the file, `None` while groups are missing.
    pub fn root(&self) -> Option<[u8; 32]> {
        if self.groups.len() as u64 + self.holes.len() != self.count {
            return None;
        }
        let mut tree = Tree {
            of: self,
            empty: vec![hole()],
        };
        if self.count == 1 {
            return tree.subtree(0, 1);
        }
        let left = left_groups(self.count);
        let (left, right) = (tree.subtree(0, left)?, tree.subtree(left, self.count - left)?);
        Some(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes())
    }
}

/// How many of `count` groups stand left of the root of their tree: the largest power of two below `count`.
fn left_groups(count: u64) -> u64 {
    // At most 2^44 groups.
    count.next_power_of_two() / 2
}

/// The groups while they are joined.
struct Tree<'a> {
    of: &'a GroupHashes,
    /// Subtrees of 1, 2, 4, … groups in holes.
    empty: Vec<GroupHash>,
}

impl Tree<'_> {
    fn subtree(&mut self, from: u64, count: u64) -> Option<GroupHash> {
        if self.of.holes.covers(from..from + count) {
            return Some(self.empty(count));
        }
        if count == 1 {
            return self.of.groups.get(&from).copied();
        }
        let left = left_groups(count);
        let (left, right) = (self.subtree(from, left)?, self.subtree(from + left, count - left)?);
        Some(merge_subtrees_non_root(&left, &right, Mode::Hash))
    }

    /// So many groups, one at least, that are all in a hole.
    fn empty(&mut self, count: u64) -> GroupHash {
        if count.is_power_of_two() {
            let wanted = count.trailing_zeros() as usize;
            let mut last = self.empty[self.empty.len() - 1];
            while self.empty.len() <= wanted {
                last = merge_subtrees_non_root(&last, &last, Mode::Hash);
                self.empty.push(last);
            }
            return self.empty[wanted];
        }
        let left = left_groups(count);
        let (left, right) = (self.empty(left), self.empty(count - left));
        merge_subtrees_non_root(&left, &right, Mode::Hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_groups(content: &[u8]) -> [u8; 32] {
        let size = content.len() as u64;
        let mut hashes = GroupHashes::new(size);
        // Backwards: the order must not matter.
        for index in (0..group_count(size)).rev() {
            assert_eq!(hashes.root(), None);
            let start = (index * GROUP) as usize;
            let mut hasher = GroupHasher::new(size, index);
            for piece in content[start..start + group_len(size, index) as usize].chunks(100_000) {
                hasher.update(piece);
            }
            hashes.set(index, hasher.finish());
        }
        hashes.root().expect("all groups are there")
    }

    #[test]
    fn groups_join_to_the_hash_of_the_file() {
        let content: Vec<u8> = (0..9 * GROUP as usize + 77).map(|i| ((i * 31) >> 3) as u8).collect();
        let group = GROUP as usize;
        for size in [
            0,
            1,
            1024,
            1025,
            group - 1,
            group,
            group + 1,
            2 * group,
            3 * group - 5,
            4 * group,
            5 * group + 1,
            7 * group,
            8 * group,
            9 * group + 77,
        ] {
            assert_eq!(
                by_groups(&content[..size]),
                *blake3::hash(&content[..size]).as_bytes(),
                "{size} bytes"
            );
        }
    }

    #[test]
    fn a_changed_group_changes_the_root() {
        let mut content = vec![7; 3 * GROUP as usize];
        let before = by_groups(&content);
        content[2 * GROUP as usize] ^= 1;
        assert_ne!(by_groups(&content), before);
    }

    #[test]
    fn holes_count_by_where_they_are_and_cost_nothing_by_their_size() {
        // The same tree, group by group.
        let slow = |count: u64, holes: &[u64]| {
            let mut hashes = GroupHashes::new(count * GROUP);
            for group in 0..count {
                let hash = if holes.contains(&group) {
                    hole()
                } else {
                    [group as u8; 32]
                };
                hashes.set(group, hash);
            }
            hashes.root()
        };
        for count in [1, 2, 3, 7, 8, 9, 21] {
            for holes in [0..0, 0..1, 0..count, 1..count, count / 2..count, count - 1..count] {
                let mut hashes = GroupHashes::new(count * GROUP);
                for group in (0..count).filter(|group| !holes.contains(group)) {
                    hashes.set(group, [group as u8; 32]);
                }
                hashes.set_holes(holes.clone());
                let all: Vec<u64> = holes.collect();
                assert_eq!(hashes.root(), slow(count, &all), "{count} {all:?}");
                assert!(hashes.root().is_some());
            }
        }
        // As large as a file can be: this would not end.
        let size = i64::MAX as u64;
        let mut hashes = GroupHashes::new(size);
        hashes.set_holes(0..5);
        assert_eq!(hashes.root(), None);
        hashes.set_holes(6..u64::MAX);
        assert_eq!(hashes.root(), None);
        hashes.set(5, [1; 32]);
        let one = hashes.root();
        hashes.set(5, [2; 32]);
        assert!(one.is_some() && hashes.root() != one);
    }
}
