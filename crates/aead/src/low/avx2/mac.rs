//! Poly1305 with 32-bit multiplies: a lane is a message, four messages a vector, numbers in five limbs of 26 bits.

use core::arch::x86_64::*;

use crate::low::portable::{Limbs26, Poly1305, limbs26, tag_of_limbs26};
use crate::low::{Lanes, MacRecord, Memory, Task};

/// Messages in a vector.
const LANES: usize = 4;

/// What a step of four blocks costs compared with a block in scalar code, both times two.
const COST: (usize, usize) = (4, 2);

const MASK26: i64 = (1 << 26) - 1;

/// Four numbers, limb by limb.
type Limbs = [__m256i; 5];

/// Splits four numbers of 128 bits, low and high halves, into limbs.
#[inline]
#[target_feature(enable = "avx2")]
fn split(low: __m256i, high: __m256i) -> Limbs {
    let mask = _mm256_set1_epi64x(MASK26);
    let middle = _mm256_or_si256(_mm256_srli_epi64::<52>(low), _mm256_slli_epi64::<12>(high));
    [
        _mm256_and_si256(low, mask),
        _mm256_and_si256(_mm256_srli_epi64::<26>(low), mask),
        _mm256_and_si256(middle, mask),
        _mm256_and_si256(_mm256_srli_epi64::<14>(high), mask),
        _mm256_srli_epi64::<40>(high),
    ]
}

/// Sum of products with the terms that pass 2^130 already times 5, then carried once around in two chains.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(a: &Limbs, r: &Limbs, r5: &Limbs) -> Limbs {
    let product = |i: usize, j: usize| {
        // Limb i of the result from limb j of a.
        let factor = if j <= i { r[i - j] } else { r5[5 + i - j] };
        _mm256_mul_epu32(a[j], factor)
    };
    let mut d = [_mm256_setzero_si256(); 5];
    for (i, d) in d.iter_mut().enumerate() {
        let (p, q) = (
            _mm256_add_epi64(product(i, 0), product(i, 1)),
            _mm256_add_epi64(product(i, 2), product(i, 3)),
        );
        *d = _mm256_add_epi64(_mm256_add_epi64(p, q), product(i, 4));
    }
    let mask = _mm256_set1_epi64x(MASK26);
    for (from, to) in [(0, 1), (3, 4), (1, 2), (4, 0), (2, 3), (0, 1), (3, 4)] {
        let carry = _mm256_srli_epi64::<26>(d[from]);
        d[from] = _mm256_and_si256(d[from], mask);
        d[to] = _mm256_add_epi64(d[to], carry);
        if to == 0 {
            d[0] = _mm256_add_epi64(d[0], _mm256_slli_epi64::<2>(carry));
        }
    }
    d
}

/// Four messages on their way.
struct Four {
    h: Limbs,
    r: Limbs,
    r5: Limbs,
    /// Blocks of ciphertext.
    blocks: __m256i,
    text: [*const u8; LANES],
    /// Whole blocks of each.
    whole: [usize; LANES],
    /// What follows them, padded with zeros.
    last: [[u8; 16]; LANES],
    /// Lengths of associated data and ciphertext.
    aad: [u64; LANES],
    len: [u64; LANES],
}

#[inline]
#[target_feature(enable = "avx2")]
fn four(v: [u64; LANES]) -> __m256i {
    _mm256_set_epi64x(v[3] as i64, v[2] as i64, v[1] as i64, v[0] as i64)
}

impl Four {
    /// Takes up to four tasks; the lanes beyond are messages of no bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn start(memory: &Memory<'_>, tasks: &[Task], order: &[u32], records: &[MacRecord]) -> Self {
        let (mut r, mut h) = ([[0; LANES]; 2], [[0; LANES]; 5]);
        let mut this = Four {
            h: [_mm256_setzero_si256(); 5],
            r: [_mm256_setzero_si256(); 5],
            r5: [_mm256_setzero_si256(); 5],
            blocks: _mm256_setzero_si256(),
            text: [core::ptr::null(); LANES],
            whole: [0; LANES],
            last: [[0; 16]; LANES],
            aad: [0; LANES],
            len: [0; LANES],
        };
        let mut blocks = [0; LANES];
        for (lane, &index) in order.iter().take(LANES).enumerate() {
            let (task, record) = (&tasks[index as usize], &records[index as usize]);
            let (whole, rest) = memory.ciphertext(task).as_chunks::<16>();
            this.text[lane] = whole.as_ptr().cast();
            this.whole[lane] = whole.len();
            this.last[lane][..rest.len()].copy_from_slice(rest);
            this.aad[lane] = record.aad_len.into();
            this.len[lane] = task.len() as u64;
            blocks[lane] = task.mac_blocks() as u64;
            r[0][lane] = record.r[0];
            r[1][lane] = record.r[1];
            for (limb, value) in h.iter_mut().zip(limbs26(&record.h)) {
                limb[lane] = value;
            }
        }
        this.r = split(four(r[0]), four(r[1]));
        for i in 0..5 {
            this.h[i] = four(h[i]);
            this.r5[i] = _mm256_add_epi64(this.r[i], _mm256_slli_epi64::<2>(this.r[i]));
        }
        this.blocks = four(blocks);
        this
    }

    /// Block `number` of a lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(&self, lane: usize, number: usize) -> __m128i {
        let place = if number < self.whole[lane] {
            self.text[lane].wrapping_add(16 * number)
        } else {
            self.last[lane].as_ptr()
        };
        // SAFETY: either a whole block of the message, or the padded one.
        unsafe { _mm_loadu_si128(place.cast()) }
    }

    /// The accumulators after one more block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn next(&self, low: __m256i, high: __m256i) -> Limbs {
        let mut m = split(low, high);
        m[4] = _mm256_or_si256(m[4], _mm256_set1_epi64x(1 << 24));
        for i in 0..5 {
            m[i] = _mm256_add_epi64(m[i], self.h[i]);
        }
        multiply(&m, &self.r, &self.r5)
    }

    /// Takes one block of each message that has it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn block(&mut self, number: usize) {
        let pair = |a: usize, b: usize| {
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(self.load(a, number)), self.load(b, number))
        };
        let (even, odd) = (pair(0, 2), pair(1, 3));
        let next = self.next(_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd));
        let there = _mm256_cmpgt_epi64(self.blocks, _mm256_set1_epi64x(number as i64));
        for i in 0..5 {
            self.h[i] = _mm256_blendv_epi8(self.h[i], next[i], there);
        }
    }

    /// Takes the block of lengths; gives the accumulators lane by lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish(&self) -> [Limbs26; LANES] {
        let next = self.next(four(self.aad), four(self.len));
        let mut out = [[0; 5]; LANES];
        for (limb, vector) in next.iter().enumerate() {
            let mut values = [0u64; LANES];
            // SAFETY: the array is 32 bytes.
            unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), *vector) };
            for (lane, value) in values.into_iter().enumerate() {
                out[lane][limb] = value;
            }
        }
        out
    }
}

/// Computes the tags of the tasks named in `order`, longest first.
#[target_feature(enable = "avx2")]
pub(super) fn macs(
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let mut lanes = Lanes::default();
    for group in order.chunks(LANES) {
        let blocks = |&index: &u32| tasks[index as usize].mac_blocks();
        let steps = group.iter().map(blocks).max().unwrap_or(0);
        let all: usize = group.iter().map(|index| blocks(index) + 1).sum();
        if COST.1 * all < COST.0 * (steps + 1) {
            // Too unlike in length: mostly empty lanes would cost more than scalar code.
            for &index in group {
                let (task, record) = (&tasks[index as usize], &records[index as usize]);
                let mut mac = Poly1305::resume(record);
                mac.absorb(memory.ciphertext(task));
                tags[index as usize] = mac.finish(record.aad_len.into(), task.len() as u64);
            }
            lanes.add(Lanes {
                used: all as u64,
                offered: all as u64,
            });
            continue;
        }
        let mut state = Four::start(memory, tasks, group, records);
        for number in 0..steps {
            state.block(number);
        }
        for (&index, h) in group.iter().zip(&state.finish()) {
            tags[index as usize] = tag_of_limbs26(h, &records[index as usize].s);
        }
        lanes.add(Lanes {
            used: all as u64,
            offered: (LANES * (steps + 1)) as u64,
        });
    }
    lanes
}
