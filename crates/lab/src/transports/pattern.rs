//! What streams carry: blocks that begin with the stream's key XOR their place, and go on with the key XOR the place in the block,
//! every eight bytes. A wrong byte shows where it is; loss, repetition, reordering and mixing of streams show at the next
//! block at the latest. Only parts of two blocks from the same place in each could change places unseen.
//!
//! But for its first word every block is the same. So a sender writes one word for each, and a receiver compares every byte
//! with a block that stays in the nearest cache.

/// Length of a word.
const WORD: usize = 8;

/// Length of a block.
pub(super) const BLOCK: usize = 4096;

/// The bytes of one stream.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    key: u64,
    /// The block that was needed last.
    block: Vec<u8>,
}

/// A word of the stream `key`.
fn word(key: u64, place: u64) -> [u8; WORD] {
    (key ^ place).to_le_bytes()
}

impl Pattern {
    pub(super) fn new(key: u64) -> Pattern {
        let places = (0..BLOCK as u64).step_by(WORD);
        Pattern {
            key,
            block: places.flat_map(|place| word(key, place)).collect(),
        }
    }

    /// What the stream has from byte `offset` on, to the end of the block and at most `len` bytes.
    fn part(&mut self, offset: u64, len: usize) -> &[u8] {
        let skip = (offset % BLOCK as u64) as usize;
        self.block[..WORD].copy_from_slice(&word(self.key, offset - skip as u64));
        &self.block[skip..BLOCK.min(skip.saturating_add(len))]
    }

    /// Writes what the stream has from byte `offset` on.
    pub(super) fn fill(&mut self, mut offset: u64, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let part = self.part(offset, bytes.len());
            let (now, rest) = bytes.split_at_mut(part.len());
            now.copy_from_slice(part);
            offset += now.len() as u64;
            bytes = rest;
        }
    }

    /// Makes whole blocks of another place of the stream into those from byte `offset` on, which is the start of a block.
    pub(super) fn move_to(&self, offset: u64, blocks: &mut [u8]) {
        for (place, block) in (offset..).step_by(BLOCK).zip(blocks.chunks_exact_mut(BLOCK)) {
            block[..WORD].copy_from_slice(&word(self.key, place));
        }
    }

    /// The place in `bytes` of the first byte that is not what the stream has from byte `offset` on.
    pub(super) fn first_wrong(&mut self, offset: u64, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let part = self.part(offset + at as u64, bytes.len() - at);
            let came = &bytes[at..at + part.len()];
            if came != part {
                // Where it is costs nothing until there is something to find.
                let wrong = came.iter().zip(part).position(|(came, right)| came != right);
                return wrong.map(|wrong| at + wrong);
            }
            at += part.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 0x0123_4567_89ab_cdef;
    const LEN: usize = 3 * BLOCK;

    fn stream(key: u64) -> Vec<u8> {
        let mut whole = vec![0; LEN];
        Pattern::new(key).fill(0, &mut whole);
        whole
    }

    #[test]
    fn parts_of_a_stream_fit_together() {
        let whole = stream(KEY);
        let mut pattern = Pattern::new(KEY);
        // From everywhere around the start of a block, to all lengths that end there and beyond the next.
        for offset in BLOCK - 20..BLOCK + 20 {
            for len in (0..40).chain(BLOCK - 20..BLOCK + 20) {
                let mut part = vec![0; len];
                pattern.fill(offset as u64, &mut part);
                assert!(part == whole[offset..offset + len], "{offset} {len}");
                assert_eq!(pattern.first_wrong(offset as u64, &part), None);
                for i in [0, 7, 8, len / 2, len.saturating_sub(1)] {
                    let Some(byte) = part.get_mut(i) else { continue };
                    *byte ^= 0x10;
                    assert_eq!(pattern.first_wrong(offset as u64, &part), Some(i));
                    part[i] ^= 0x10;
                }
            }
        }
    }

    #[test]
    fn every_byte_is_compared() {
        let mut whole = stream(KEY);
        let mut pattern = Pattern::new(KEY);
        for i in 0..LEN {
            whole[i] ^= 1;
            assert_eq!(pattern.first_wrong(0, &whole), Some(i));
            whole[i] ^= 1;
        }
        assert_eq!(pattern.first_wrong(0, &whole), None);
    }

    #[test]
    fn other_streams_and_other_places_show() {
        let whole = stream(KEY);
        let mut pattern = Pattern::new(KEY);
        assert_eq!(Pattern::new(KEY + 1).first_wrong(0, &whole), Some(0));
        // Whole blocks that were lost, came twice or changed places, and what is off by less than a block.
        for places in [1, 2, 5000] {
            let wrong = pattern.first_wrong(places * BLOCK as u64, &whole);
            assert!(wrong.is_some_and(|at| at < WORD), "{places}: {wrong:?}");
        }
        for off in [1, 7, 8, 512, BLOCK - 8] {
            assert!(
                pattern.first_wrong(0, &whole[off..]).is_some_and(|at| at < BLOCK),
                "{off}"
            );
        }
    }

    #[test]
    fn blocks_move_to_another_place() {
        let mut blocks = stream(KEY);
        let mut pattern = Pattern::new(KEY);
        for place in [0, 1, 3, 1 << 40] {
            let offset = place * BLOCK as u64;
            pattern.move_to(offset, &mut blocks);
            assert_eq!(pattern.first_wrong(offset, &blocks), None, "{place}");
        }
    }
}
