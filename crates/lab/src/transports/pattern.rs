//! What streams carry: every eight bytes the stream's key XOR their place, so that loss, repetition, reordering and mixing
//! of streams all show.

use crate::stats::SplitMix64;

/// Length of a word.
const WORD: usize = 8;

/// What is checked in a timed window: one block of this many bytes …
pub(super) const BLOCK: u64 = 4096;

/// … in so many, at a place drawn for each group.
pub(super) const BLOCKS: u64 = 16;

#[inline(always)]
fn word(key: u64, place: u64) -> [u8; WORD] {
    (key ^ place).to_le_bytes()
}

/// Writes what a stream has from byte `offset` on.
pub(super) fn fill(key: u64, offset: u64, bytes: &mut [u8]) {
    let (head, skip, mut place) = start(offset, bytes.len());
    let (first, rest) = bytes.split_at_mut(head);
    first.copy_from_slice(&word(key, place.wrapping_sub(WORD as u64))[skip..skip + head]);
    let mut words = rest.chunks_exact_mut(WORD);
    for chunk in &mut words {
        chunk.copy_from_slice(&word(key, place));
        place += WORD as u64;
    }
    let last = words.into_remainder();
    last.copy_from_slice(&word(key, place)[..last.len()]);
}

/// The place in `bytes` of the first byte that is not what the stream has from byte `offset` on.
pub(super) fn first_wrong(key: u64, offset: u64, bytes: &[u8]) -> Option<usize> {
    let (head, skip, mut place) = start(offset, bytes.len());
    let (first, rest) = bytes.split_at(head);
    let mut wrong = first != &word(key, place.wrapping_sub(WORD as u64))[skip..skip + head];
    let mut words = rest.chunks_exact(WORD);
    for chunk in &mut words {
        wrong |= chunk != word(key, place);
        place += WORD as u64;
    }
    let last = words.remainder();
    wrong |= last != &word(key, place)[..last.len()];
    if !wrong {
        return None;
    }
    // Where it is costs nothing until there is something to find.
    let mut right = vec![0; bytes.len()];
    fill(key, offset, &mut right);
    right.iter().zip(bytes).position(|(right, byte)| right != byte)
}

/// How many bytes come before the first whole word, at which place of theirs they begin, and the offset of that word.
fn start(offset: u64, len: usize) -> (usize, usize, u64) {
    let skip = (offset % WORD as u64) as usize;
    if skip == 0 {
        return (0, 0, offset);
    }
    ((WORD - skip).min(len), skip, offset - skip as u64 + WORD as u64)
}

/// As [`first_wrong`], for one block of each group of [`BLOCKS`]: which one follows from the key.
pub(super) fn first_wrong_sampled(key: u64, offset: u64, bytes: &[u8]) -> Option<usize> {
    let group_len = BLOCK * BLOCKS;
    let end = offset + bytes.len() as u64;
    let mut group = offset / group_len;
    while group * group_len < end {
        let block = SplitMix64::stream(key, group).next_u64() % BLOCKS;
        let from = group * group_len + block * BLOCK;
        let (low, high) = (from.max(offset), (from + BLOCK).min(end));
        if low < high {
            let (low_at, high_at) = ((low - offset) as usize, (high - offset) as usize);
            if let Some(at) = first_wrong(key, low, &bytes[low_at..high_at]) {
                return Some(low_at + at);
            }
        }
        group += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_stream_fit_together() {
        let mut whole = vec![0; 1000];
        fill(0x0123_4567_89ab_cdef, 0, &mut whole);
        for offset in 0..40 {
            for len in 0..40 {
                let mut part = vec![0; len];
                fill(0x0123_4567_89ab_cdef, offset, &mut part);
                let at = offset as usize;
                assert_eq!(part, whole[at..at + len], "{offset} {len}");
                assert_eq!(first_wrong(0x0123_4567_89ab_cdef, offset, &part), None);
                for i in 0..len {
                    part[i] ^= 0x10;
                    assert_eq!(first_wrong(0x0123_4567_89ab_cdef, offset, &part), Some(i));
                    part[i] ^= 0x10;
                }
            }
        }
        assert!(first_wrong(1, 8, &whole[8..16]).is_some(), "another stream");
        assert!(
            first_wrong(0x0123_4567_89ab_cdef, 16, &whole[8..16]).is_some(),
            "another place"
        );
    }

    #[test]
    fn one_block_in_sixteen_is_checked_wherever_reads_end() {
        let len = (BLOCK * BLOCKS * 20) as usize;
        let mut whole = vec![0; len];
        fill(7, 0, &mut whole);
        assert_eq!(first_wrong_sampled(7, 0, &whole), None);
        let mut seen = vec![false; len / BLOCK as usize];
        for (block, seen) in seen.iter_mut().enumerate() {
            let at = block * BLOCK as usize + 4000;
            whole[at] ^= 1;
            // In one read, or in many that end anywhere.
            let found = first_wrong_sampled(7, 0, &whole);
            let mut offset = 0;
            let pieces = whole.chunks(10_007).any(|piece| {
                offset += piece.len();
                first_wrong_sampled(7, (offset - piece.len()) as u64, piece).is_some()
            });
            assert_eq!(found.is_some(), pieces);
            assert!(found.is_none_or(|found| found == at));
            *seen = found.is_some();
            whole[at] ^= 1;
        }
        let groups: Vec<usize> = seen
            .chunks(BLOCKS as usize)
            .filter_map(|group| group.iter().position(|seen| *seen))
            .collect();
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 20);
        assert_eq!(groups.len(), 20);
        assert!(groups.iter().any(|place| *place != groups[0]), "places differ");
    }
}
