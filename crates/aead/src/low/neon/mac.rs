//! Poly1305 in whole words of 64 bits, for two messages at a time.
//!
//! A block takes four multiplies to 128 bits and two to 64, where limbs of 44 bits take nine to 128, each of them two instructions on
//! 64-bit Arm. Its carries are one chain, twice as long as the arithmetic takes: so two messages go side by side.

use crate::low::{Lanes, MacRecord, Memory, Task};

/// An authenticator in progress.
struct Mac {
    /// r, clamped: below 2^60 each, the upper one a multiple of four.
    r: [u64; 2],
    s: u128,
    /// Bits 0 to 127 of the accumulator.
    low: u128,
    /// The bits above; at most 4 between blocks.
    high: u64,
}

/// Two words as one number.
#[inline(always)]
fn pair(words: [u64; 2]) -> u128 {
    u128::from(words[0]) | u128::from(words[1]) << 64
}

impl Mac {
    /// Starts from a record, whose accumulator has limbs of 44, 44 and 42 bits.
    #[inline(always)]
    fn resume(record: &MacRecord) -> Self {
        let [h0, h1, h2] = record.h;
        let below = u128::from(h0) + (u128::from(h1) << 44);
        let (low, carry) = below.overflowing_add(u128::from(h2) << 88);
        Mac {
            r: record.r,
            s: pair(record.s),
            low,
            high: (h2 >> 40) + u64::from(carry),
        }
    }

    /// Takes a block: the accumulator becomes (h + block + 2^128) r modulo 2^130 - 5.
    #[inline(always)]
    fn step(&mut self, block: u128) {
        let wide = |x: u64, y: u64| u128::from(x) * u128::from(y);
        let (low, carry) = self.low.overflowing_add(block);
        let (h0, h1, h2) = (low as u64, (low >> 64) as u64, self.high + 1 + u64::from(carry));
        let [r0, r1] = self.r;
        // What r1 makes of bits from 128 on is r1 / 4 times 2^130, and that is 5 r1 / 4.
        let folded = r1 + (r1 >> 2);
        let d0 = wide(h0, r0) + wide(h1, folded);
        let d1 = wide(h0, r1) + wide(h1, r0) + u128::from(h2 * folded) + (d0 >> 64);
        let d2 = h2 * r0 + (d1 >> 64) as u64;
        // Bits from 130 on come back times 5.
        let back = (d2 & !3) + (d2 >> 2);
        let (low, carry) = pair([d0 as u64, d1 as u64]).overflowing_add(u128::from(back));
        (self.low, self.high) = (low, (d2 & 3) + u64::from(carry));
    }

    /// Takes the block of lengths and gives the tag.
    #[inline(always)]
    fn finish(&mut self, lengths: [u64; 2]) -> [u8; 16] {
        self.step(pair(lengths));
        // Below 2^130 + 2^64, so p goes off at most once: h + 5 - 2^130, if that is not negative. Without a branch.
        let (reduced, carry) = self.low.overflowing_add(5);
        let passes = 0u128.wrapping_sub(u128::from((self.high + u64::from(carry)) >> 2));
        let value = self.low ^ (self.low ^ reduced) & passes;
        value.wrapping_add(self.s).to_le_bytes()
    }
}

/// Computes the tags of the tasks named in `order`, neighbours of like length.
pub(super) fn macs(
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let (pairs, odd) = order.as_chunks::<2>();
    for pair in pairs {
        together(memory, tasks, pair, records, tags);
    }
    for &index in odd {
        together(memory, tasks, &[index], records, tags);
    }
    let blocks = order.iter().map(|&index| tasks[index as usize].mac_blocks() as u64 + 1);
    let blocks = blocks.sum();
    Lanes {
        used: blocks,
        offered: blocks,
    }
}

/// Computes the tags of messages side by side.
#[inline(always)]
fn together<const N: usize>(
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32; N],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) {
    let tasks = order.map(|index| &tasks[index as usize]);
    let records = order.map(|index| &records[index as usize]);
    let mut macs = records.map(Mac::resume);
    // With the place of its tag, a message has a whole block where its last bytes are.
    let blocks = tasks.map(|task| memory.ciphertext_and_tag(task).as_chunks::<16>().0);
    let shared = tasks.iter().map(|task| task.len() / 16).min().unwrap_or(0);
    let heads = blocks.map(|blocks| &blocks[..shared]);
    for number in 0..shared {
        for i in 0..N {
            macs[i].step(u128::from_le_bytes(heads[i][number]));
        }
    }
    for i in 0..N {
        let len = tasks[i].len();
        let (whole, rest) = (len / 16, len % 16);
        for block in &blocks[i][shared..whole] {
            macs[i].step(u128::from_le_bytes(*block));
        }
        if rest > 0 {
            macs[i].step(u128::from_le_bytes(blocks[i][whole]) & ((1 << (8 * rest)) - 1));
        }
        tags[order[i] as usize] = macs[i].finish([u64::from(records[i].aad_len), len as u64]);
    }
}
