//! Poly1305 with 32-bit multiplies: a lane is a message, four messages a vector, numbers in five limbs of 26 bits.

use core::arch::x86_64::*;

use crate::low::portable::{Limbs26, Poly1305, tag_of_limbs26};
use crate::low::{Lanes, MacRecord, Memory, Task};

/// Messages in a vector.
const LANES: usize = 4;

/// What a step of four blocks costs compared with a block in scalar code, both times two.
const COST: (usize, usize) = (4, 2);

/// Blocks of the longest message from which on two groups side by side gain what starting both costs.
const BESIDE: usize = 8;

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
    /// Bytes of associated data.
    aad: __m256i,
    /// Bytes of ciphertext.
    len: __m256i,
    text: [*const u8; LANES],
    /// Whole blocks of each.
    whole: [usize; LANES],
    /// What follows them, padded with zeros.
    last: [__m128i; LANES],
}

/// A mask of the first n bytes of 16 starts 16 - n bytes from its start.
const FIRST_BYTES: [u8; 32] = {
    let mut mask = [0; 32];
    let mut i = 0;
    while i < 16 {
        mask[i] = 0xff;
        i += 1;
    }
    mask
};

/// Four pairs of 64-bit words, lane by lane, as first and second words.
#[inline]
#[target_feature(enable = "avx2")]
fn words_of(pairs: [__m128i; LANES]) -> [__m256i; 2] {
    let join = |a: usize, b: usize| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(pairs[a]), pairs[b]);
    let (even, odd) = (join(0, 2), join(1, 3));
    [_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd)]
}

/// Numbers in limbs of 44, 44 and 42 bits or a little wider, in limbs of 26.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow([h0, h1, h2]: [__m256i; 3]) -> Limbs {
    let (mask44, mask26) = (_mm256_set1_epi64x((1 << 44) - 1), _mm256_set1_epi64x(MASK26));
    let h1 = _mm256_add_epi64(h1, _mm256_srli_epi64::<44>(h0));
    let h2 = _mm256_add_epi64(h2, _mm256_srli_epi64::<44>(h1));
    let (h0, h1) = (_mm256_and_si256(h0, mask44), _mm256_and_si256(h1, mask44));
    let second = _mm256_or_si256(_mm256_srli_epi64::<26>(h0), _mm256_slli_epi64::<18>(h1));
    let fourth = _mm256_or_si256(_mm256_srli_epi64::<34>(h1), _mm256_slli_epi64::<10>(h2));
    [
        _mm256_and_si256(h0, mask26),
        _mm256_and_si256(second, mask26),
        _mm256_and_si256(_mm256_srli_epi64::<8>(h1), mask26),
        _mm256_and_si256(fourth, mask26),
        _mm256_srli_epi64::<16>(h2),
    ]
}

impl Four {
    /// Takes up to four tasks; the lanes beyond are messages of no bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn start(memory: &Memory<'_>, tasks: &[Task], order: &[u32], records: &[MacRecord]) -> Self {
        let empty = MacRecord::default();
        let mut of = [&empty; LANES];
        let mut text = [core::ptr::from_ref(&empty).cast::<u8>(); LANES];
        let mut bytes = [0; LANES];
        let mut last = [_mm_setzero_si128(); LANES];
        for (lane, &index) in order.iter().take(LANES).enumerate() {
            let task = &tasks[index as usize];
            of[lane] = &records[index as usize];
            bytes[lane] = task.len();
            // The slice is checked against the memory here; whole blocks of it are read, and 16 bytes behind the last of them.
            text[lane] = memory.ciphertext_and_tag(task).as_ptr();
            // SAFETY: with the place of the tag there are 16 bytes behind the whole blocks.
            let end = unsafe { _mm_loadu_si128(text[lane].add(task.len() / 16 * 16).cast()) };
            let mask = &FIRST_BYTES[16 - task.len() % 16..][..16];
            // SAFETY: the slice has 16 bytes.
            last[lane] = _mm_and_si128(end, unsafe { _mm_loadu_si128(mask.as_ptr().cast()) });
        }
        let pair = |i: usize| {
            // SAFETY: a record is eight words of 64 bits, and `i` is even and below 8.
            words_of(
                of.map(|record| unsafe { _mm_load_si128(core::ptr::from_ref(record).cast::<__m128i>().add(i / 2)) }),
            )
        };
        let ([r0, r1], [h0, h1], [h2, aad]) = (pair(0), pair(4), pair(6));
        let r = split(r0, r1);
        Four {
            h: narrow([h0, h1, h2]),
            r,
            r5: core::array::from_fn(|i| _mm256_add_epi64(r[i], _mm256_slli_epi64::<2>(r[i]))),
            aad: _mm256_and_si256(aad, _mm256_set1_epi64x(u32::MAX.into())),
            len: _mm256_set_epi64x(bytes[3] as i64, bytes[2] as i64, bytes[1] as i64, bytes[0] as i64),
            text,
            whole: bytes.map(|bytes| bytes / 16),
            last,
        }
    }

    /// Block `number` of a lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(&self, lane: usize, number: usize) -> __m128i {
        let place = if number < self.whole[lane] {
            self.text[lane].wrapping_add(16 * number)
        } else {
            core::ptr::from_ref(&self.last[lane]).cast()
        };
        // SAFETY: either a whole block of the message, or the padded one.
        unsafe { _mm_loadu_si128(place.cast()) }
    }

    /// The accumulators after one more block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn next(&self, h: &Limbs, low: __m256i, high: __m256i) -> Limbs {
        let mut m = split(low, high);
        m[4] = _mm256_or_si256(m[4], _mm256_set1_epi64x(1 << 24));
        for i in 0..5 {
            m[i] = _mm256_add_epi64(m[i], h[i]);
        }
        multiply(&m, &self.r, &self.r5)
    }

    /// Whole blocks that every message has.
    fn shared(&self) -> usize {
        self.whole.into_iter().fold(usize::MAX, usize::min)
    }

    /// Takes block `number`, which every message has whole.
    ///
    /// # Safety
    /// `number` must be below [`Self::shared`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn whole(&self, h: &mut Limbs, number: usize) {
        // SAFETY: by the caller's promise.
        let [low, high] = words_of(
            self.text
                .map(|text| unsafe { _mm_loadu_si128(text.add(16 * number).cast()) }),
        );
        *h = self.next(h, low, high);
    }

    /// Takes one block of each message that has it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn block(&self, h: &mut Limbs, number: usize) {
        let [low, high] = words_of(core::array::from_fn(|lane| self.load(lane, number)));
        let next = self.next(h, low, high);
        let there = _mm256_cmpgt_epi64(self.len, _mm256_set1_epi64x(16 * number as i64));
        for i in 0..5 {
            h[i] = _mm256_blendv_epi8(h[i], next[i], there);
        }
    }

    /// Takes the block of lengths; gives the accumulators lane by lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn finish(&self, h: &Limbs) -> [Limbs26; LANES] {
        let next = self.next(h, self.aad, self.len);
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
    let mut rest = order;
    while !rest.is_empty() {
        let (first, others) = rest.split_at(rest.len().min(LANES));
        if !worthwhile(tasks, first) {
            lanes.add(one_by_one(memory, tasks, first, records, tags));
            rest = others;
            continue;
        }
        let (second, after) = others.split_at(others.len().min(LANES));
        if steps(tasks, first) >= BESIDE && second.len() == LANES && worthwhile(tasks, second) {
            lanes.add(together(memory, tasks, [first, second], records, tags));
            rest = after;
        } else {
            lanes.add(together(memory, tasks, [first], records, tags));
            rest = others;
        }
    }
    lanes
}

/// Steps that a group takes before the lengths: the blocks of its longest message.
fn steps(tasks: &[Task], group: &[u32]) -> usize {
    let blocks = |&index: &u32| tasks[index as usize].mac_blocks();
    group.iter().map(blocks).max().unwrap_or(0)
}

/// Blocks of all messages of a group, with those of their lengths.
fn all_blocks(tasks: &[Task], group: &[u32]) -> usize {
    group.iter().map(|&index| tasks[index as usize].mac_blocks() + 1).sum()
}

/// False for a group too unlike in length: mostly empty lanes would cost more than scalar code.
fn worthwhile(tasks: &[Task], group: &[u32]) -> bool {
    COST.1 * all_blocks(tasks, group) >= COST.0 * (steps(tasks, group) + 1)
}

/// Computes the tags of a group in scalar code.
fn one_by_one(
    memory: &Memory<'_>,
    tasks: &[Task],
    group: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    for &index in group {
        let (task, record) = (&tasks[index as usize], &records[index as usize]);
        let mut mac = Poly1305::resume(record);
        mac.absorb(memory.ciphertext(task));
        tags[index as usize] = mac.finish(record.aad_len.into(), task.len() as u64);
    }
    let all = all_blocks(tasks, group) as u64;
    Lanes {
        used: all,
        offered: all,
    }
}

/// Computes the tags of groups of like length side by side: alone, one waits for its multiplies and carries most of the time.
#[inline]
#[target_feature(enable = "avx2")]
fn together<const N: usize>(
    memory: &Memory<'_>,
    tasks: &[Task],
    groups: [&[u32]; N],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let states: [Four; N] = core::array::from_fn(|i| Four::start(memory, tasks, groups[i], records));
    let mut h: [Limbs; N] = core::array::from_fn(|i| states[i].h);
    let shared = states.iter().map(Four::shared).min().unwrap_or(0);
    for number in 0..shared {
        for i in 0..N {
            // SAFETY: every message has as many.
            unsafe { states[i].whole(&mut h[i], number) };
        }
    }
    let most = groups.iter().map(|group| steps(tasks, group)).max().unwrap_or(0);
    for number in shared..most {
        for i in 0..N {
            states[i].block(&mut h[i], number);
        }
    }
    let mut lanes = Lanes::default();
    for i in 0..N {
        for (&index, h) in groups[i].iter().zip(&states[i].finish(&h[i])) {
            tags[index as usize] = tag_of_limbs26(h, &records[index as usize].s);
        }
        lanes.add(Lanes {
            used: all_blocks(tasks, groups[i]) as u64,
            offered: (LANES * (steps(tasks, groups[i]) + 1)) as u64,
        });
    }
    lanes
}
