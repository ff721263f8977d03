//! Poly1305 with the 52-bit multiply: a lane is a message, eight messages a vector, two vectors side by side.
//!
//! Numbers are in limbs of 44, 44 and 42 bits as in `portable`. The multiply gives the low and the high 52 bits of a
//! product apart; the high part of limb i weighs 2^52 and so comes into limb i + 1 shifted left by 8.

use core::arch::x86_64::*;

use super::long::absorb;
use super::shuffle::{first_bytes, transpose_longs};
use crate::low::portable::Poly1305;
use crate::low::{Lanes, MacRecord, Memory, Task};

/// Messages in a vector.
const LANES: usize = 8;

/// Limb vectors.
pub(super) type Limbs = [__m512i; 3];

/// Multiplier: the limbs, and those that come back from above 2^130 times 20.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    r: Limbs,
    r1_20: __m512i,
    r2_20: __m512i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn times_20(x: __m512i) -> __m512i {
    _mm512_add_epi64(_mm512_slli_epi64::<4>(x), _mm512_slli_epi64::<2>(x))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn times_5(x: __m512i) -> __m512i {
    _mm512_add_epi64(_mm512_slli_epi64::<2>(x), x)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn mask44() -> __m512i {
    _mm512_set1_epi64((1 << 44) - 1)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn mask42() -> __m512i {
    _mm512_set1_epi64((1 << 42) - 1)
}

impl Factor {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn new(r: Limbs) -> Self {
        Factor {
            r,
            r1_20: times_20(r[1]),
            r2_20: times_20(r[2]),
        }
    }
}

/// Splits eight numbers of 128 bits, low and high halves, into limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn split(low: __m512i, high: __m512i) -> Limbs {
    let mid_low = _mm512_srli_epi64::<44>(low);
    let mid_high = _mm512_slli_epi64::<20>(high);
    [
        _mm512_and_si512(low, mask44()),
        // (a | b) & c
        _mm512_ternarylogic_epi64::<0xa8>(mid_low, mid_high, mask44()),
        _mm512_srli_epi64::<24>(high),
    ]
}

/// The bit above the 16 bytes of a block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn high_bit() -> __m512i {
    _mm512_set1_epi64(1 << 40)
}

/// Products not yet carried: low and high parts of each limb.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    low: Limbs,
    high: Limbs,
}

impl Wide {
    /// Starts from numbers in limbs.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn from(limbs: Limbs) -> Self {
        Wide {
            low: limbs,
            high: [_mm512_setzero_si512(); 3],
        }
    }

    /// Adds `a` times `f`. Limbs of `a` must be below 2^52.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn add_product(&mut self, a: &Limbs, f: &Factor) {
        let terms = [
            [f.r[0], f.r[1], f.r[2]],
            [f.r2_20, f.r[0], f.r[1]],
            [f.r1_20, f.r2_20, f.r[0]],
        ];
        for (i, row) in terms.iter().enumerate() {
            for (j, factor) in row.iter().enumerate() {
                self.low[j] = _mm512_madd52lo_epu64(self.low[j], a[i], *factor);
                self.high[j] = _mm512_madd52hi_epu64(self.high[j], a[i], *factor);
            }
        }
    }

    /// Carries once around: limbs come out at most a bit wider than 44, 44 and 42.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn carry(self) -> Limbs {
        let d0 = _mm512_add_epi64(self.low[0], times_5(_mm512_slli_epi64::<10>(self.high[2])));
        let d1 = _mm512_add_epi64(self.low[1], _mm512_slli_epi64::<8>(self.high[0]));
        let d2 = _mm512_add_epi64(self.low[2], _mm512_slli_epi64::<8>(self.high[1]));
        let d1 = _mm512_add_epi64(d1, _mm512_srli_epi64::<44>(d0));
        let d2 = _mm512_add_epi64(d2, _mm512_srli_epi64::<44>(d1));
        let h0 = _mm512_and_si512(d0, mask44());
        let h0 = _mm512_add_epi64(h0, times_5(_mm512_srli_epi64::<42>(d2)));
        [h0, _mm512_and_si512(d1, mask44()), _mm512_and_si512(d2, mask42())]
    }
}

/// `a` times `f`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn multiply(a: &Limbs, f: &Factor) -> Limbs {
    let mut wide = Wide::from([_mm512_setzero_si512(); 3]);
    wide.add_product(a, f);
    wide.carry()
}

/// Sums of limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn add(a: &Limbs, b: &Limbs) -> Limbs {
    core::array::from_fn(|i| _mm512_add_epi64(a[i], b[i]))
}

/// Blocks of 16 bytes, low and high halves, as the numbers they stand for.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn block(halves: [__m512i; 2]) -> Limbs {
    let mut m = split(halves[0], halves[1]);
    m[2] = _mm512_or_si512(m[2], high_bit());
    m
}

/// `b` in the lanes of the mask, `a` in the others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn pick(mask: __mmask8, a: &Limbs, b: &Limbs) -> Limbs {
    core::array::from_fn(|i| _mm512_mask_mov_epi64(a[i], mask, b[i]))
}

/// Eight messages on their way.
struct Eight {
    h: Limbs,
    /// r, and its square.
    factors: [Factor; 2],
    s: [__m512i; 2],
    /// Low and high half of the last block of messages with an odd number of blocks.
    odd: [__m512i; 2],
    /// Bytes of associated data.
    aad: __m512i,
    /// Bytes of ciphertext.
    len: __m512i,
    /// Blocks of ciphertext.
    blocks: __m512i,
    text: [*const u8; LANES],
    bytes: [usize; LANES],
}

/// Four blocks of eight messages: low halves at even places, high halves at odd ones.
type Loaded = [__m512i; 8];

impl Eight {
    /// Takes up to eight tasks; the lanes beyond are messages of no bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn start(memory: &Memory<'_>, tasks: &[Task], order: &[u32], records: &[MacRecord]) -> Self {
        let empty = MacRecord::default();
        let mut rows = [_mm512_setzero_si512(); LANES];
        let mut text = [core::ptr::from_ref(&empty).cast::<u8>(); LANES];
        let mut bytes = [0; LANES];
        for (lane, &index) in order.iter().take(LANES).enumerate() {
            let task = &tasks[index as usize];
            // The slice is checked against the memory here; the pointer is read for no more than its length.
            text[lane] = memory.ciphertext(task).as_ptr();
            bytes[lane] = task.len();
            let record = core::ptr::from_ref(&records[index as usize]);
            // SAFETY: a record is 64 bytes, aligned to 64.
            rows[lane] = unsafe { _mm512_load_si512(record.cast()) };
        }
        let [r0, r1, s0, s1, h0, h1, h2, aad] = transpose_longs(&rows);
        let len = _mm512_set_epi64(
            bytes[7] as i64,
            bytes[6] as i64,
            bytes[5] as i64,
            bytes[4] as i64,
            bytes[3] as i64,
            bytes[2] as i64,
            bytes[1] as i64,
            bytes[0] as i64,
        );
        let r = split(r0, r1);
        let once = Factor::new(r);
        Eight {
            h: [h0, h1, h2],
            factors: [once, Factor::new(multiply(&r, &once))],
            s: [s0, s1],
            odd: [_mm512_setzero_si512(); 2],
            aad: _mm512_and_si512(aad, _mm512_set1_epi64(u32::MAX.into())),
            len,
            blocks: _mm512_srli_epi64::<4>(_mm512_add_epi64(len, _mm512_set1_epi64(15))),
            text,
            bytes,
        }
    }

    /// Loads 64 bytes of each message from `at` on, zeros where a message has ended.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn load(&self, at: usize) -> Loaded {
        let mut rows = [_mm512_setzero_si512(); LANES];
        for lane in 0..LANES {
            let left = self.bytes[lane].saturating_sub(at).min(64);
            let mask = first_bytes(left);
            let place = self.text[lane].wrapping_add(at);
            // SAFETY: only the bytes of the mask are read; they are of the message.
            rows[lane] = unsafe { _mm512_maskz_loadu_epi8(mask, place.cast()) };
        }
        transpose_longs(&rows)
    }

    /// Loads 64 bytes of each message from `at` on.
    ///
    /// # Safety
    /// Every message must have as many: [`Self::shortest`] says.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    unsafe fn load_whole(&self, at: usize) -> Loaded {
        // SAFETY: by the caller's promise.
        let rows = core::array::from_fn(|lane| unsafe { _mm512_loadu_si512(self.text[lane].add(at).cast()) });
        transpose_longs(&rows)
    }

    /// Bytes of the shortest message; 0 if a lane has none.
    #[inline]
    fn shortest(&self) -> usize {
        self.bytes.into_iter().fold(usize::MAX, usize::min)
    }

    /// Takes four blocks that every message has, of which two share a carry.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn whole(&mut self, v: &Loaded) {
        for k in [0, 4] {
            let mut wide = Wide::from([_mm512_setzero_si512(); 3]);
            wide.add_product(&block([v[k + 2], v[k + 3]]), &self.factors[0]);
            wide.add_product(&add(&self.h, &block([v[k], v[k + 1]])), &self.factors[1]);
            self.h = wide.carry();
        }
    }

    /// Takes blocks `number` and `number` + 1 of each message that has both, with one carry for the two:
    /// ((h + a) r + b) r = (h + a) r^2 + b r. Keeps the first for [`Self::finish`] where there is no second.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn pair(&mut self, a: [__m512i; 2], b: [__m512i; 2], number: usize) {
        self.keep(a, number);
        let both = _mm512_cmpgt_epu64_mask(self.blocks, _mm512_set1_epi64(number as i64 + 1));
        let mut wide = Wide::from([_mm512_setzero_si512(); 3]);
        wide.add_product(&block(b), &self.factors[0]);
        wide.add_product(&add(&self.h, &block(a)), &self.factors[1]);
        let next = wide.carry();
        for i in 0..3 {
            self.h[i] = _mm512_mask_mov_epi64(self.h[i], both, next[i]);
        }
    }

    /// Keeps block `number` of messages of which it is the last.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn keep(&mut self, a: [__m512i; 2], number: usize) {
        let last = _mm512_cmpeq_epu64_mask(self.blocks, _mm512_set1_epi64(number as i64 + 1));
        for i in 0..2 {
            self.odd[i] = _mm512_mask_mov_epi64(self.odd[i], last, a[i]);
        }
    }

    /// Takes up to four blocks from `number`, a multiple of four, on; `steps` are the blocks of the longest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn four(&mut self, v: &Loaded, number: usize, steps: usize) {
        for k in [0, 2] {
            let left = steps.saturating_sub(number + k);
            let (a, b) = ([v[2 * k], v[2 * k + 1]], [v[2 * k + 2], v[2 * k + 3]]);
            if left > 1 {
                self.pair(a, b, number + k);
            } else if left == 1 {
                self.keep(a, number + k);
            }
        }
    }

    /// Takes the block of lengths, and the one before it where that is still to come, and writes the tags.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn finish(&self, order: &[u32], tags: &mut [[u8; 16]]) {
        let one = _mm512_set1_epi64(1);
        let odd = _mm512_test_epi64_mask(self.blocks, one);
        let lengths = block([self.aad, self.len]);
        let kept = block(self.odd);
        // Where nothing is left, the lengths are the first and only block, and r is the multiplier.
        let first = pick(odd, &lengths, &kept);
        let second = lengths.map(|limb| _mm512_maskz_mov_epi64(odd, limb));
        let mut wide = Wide::from([_mm512_setzero_si512(); 3]);
        wide.add_product(
            &add(&self.h, &first),
            &Factor::new(pick(odd, &self.factors[0].r, &self.factors[1].r)),
        );
        wide.add_product(&second, &self.factors[0]);
        let (low, high) = reduce(wide.carry());
        let sum = _mm512_add_epi64(low, self.s[0]);
        let carry = _mm512_cmplt_epu64_mask(sum, low);
        let top = _mm512_add_epi64(high, self.s[1]);
        let top = _mm512_mask_add_epi64(top, carry, top, one);
        let (even, odd) = (_mm512_unpacklo_epi64(sum, top), _mm512_unpackhi_epi64(sum, top));
        let mut out = [[0u8; 16]; LANES];
        for (i, half) in [(0, even), (1, odd)] {
            out[i] = bytes(_mm512_castsi512_si128(half));
            out[2 + i] = bytes(_mm512_extracti32x4_epi32::<1>(half));
            out[4 + i] = bytes(_mm512_extracti32x4_epi32::<2>(half));
            out[6 + i] = bytes(_mm512_extracti32x4_epi32::<3>(half));
        }
        for (&index, tag) in order.iter().zip(&out) {
            tags[index as usize] = *tag;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn bytes(v: __m128i) -> [u8; 16] {
    // SAFETY: both are 16 bytes of which any value is valid.
    unsafe { core::mem::transmute(v) }
}

/// The numbers modulo p, modulo 2^128, as low and high halves.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn reduce(mut h: Limbs) -> (__m512i, __m512i) {
    for _ in 0..2 {
        h[1] = _mm512_add_epi64(h[1], _mm512_srli_epi64::<44>(h[0]));
        h[0] = _mm512_and_si512(h[0], mask44());
        h[2] = _mm512_add_epi64(h[2], _mm512_srli_epi64::<44>(h[1]));
        h[1] = _mm512_and_si512(h[1], mask44());
        h[0] = _mm512_add_epi64(h[0], times_5(_mm512_srli_epi64::<42>(h[2])));
        h[2] = _mm512_and_si512(h[2], mask42());
    }
    h[1] = _mm512_add_epi64(h[1], _mm512_srli_epi64::<44>(h[0]));
    h[0] = _mm512_and_si512(h[0], mask44());
    // h + 5: where that reaches 2^130, it is what remains of h after taking away p.
    let g0 = _mm512_add_epi64(h[0], _mm512_set1_epi64(5));
    let g1 = _mm512_add_epi64(h[1], _mm512_srli_epi64::<44>(g0));
    let g2 = _mm512_add_epi64(h[2], _mm512_srli_epi64::<44>(g1));
    let over = _mm512_cmpgt_epu64_mask(g2, mask42());
    let h0 = _mm512_mask_and_epi64(h[0], over, g0, mask44());
    let h1 = _mm512_mask_and_epi64(h[1], over, g1, mask44());
    let h2 = _mm512_mask_and_epi64(h[2], over, g2, mask42());
    (
        _mm512_or_si512(h0, _mm512_slli_epi64::<44>(h1)),
        _mm512_or_si512(_mm512_srli_epi64::<20>(h1), _mm512_slli_epi64::<24>(h2)),
    )
}

/// Computes the tags of the tasks named in `order`, longest first.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn macs(
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let mut lanes = Lanes::default();
    let blocks = |index: u32| tasks[index as usize].mac_blocks();
    let mut rest = order;
    while let [longest, others @ ..] = rest {
        let group = &rest[..rest.len().min(LANES)];
        let all: usize = group.iter().map(|&index| blocks(index)).sum();
        if blocks(*longest) * LANES > all + LONE_COST {
            // Lanes would stand empty beside it for longer than working on it alone takes.
            let (task, record) = (&tasks[*longest as usize], &records[*longest as usize]);
            let mut mac = Poly1305::resume(record);
            absorb(&mut mac, memory.ciphertext(task));
            tags[*longest as usize] = mac.finish(record.aad_len.into(), task.len() as u64);
            let steps = task.mac_blocks() as u64 + 1;
            lanes.add(Lanes {
                used: steps,
                offered: steps,
            });
            rest = others;
            continue;
        }
        let (pair, after) = rest.split_at(rest.len().min(2 * LANES));
        lanes.add(pair_of_eights(memory, tasks, pair, records, tags));
        rest = after;
    }
    lanes
}

/// What a message alone costs more than its share of full lanes, in lane-steps: powers of r, and its last blocks.
const LONE_COST: usize = 100;

/// Computes the tags of up to sixteen tasks, longest first.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn pair_of_eights(
    memory: &Memory<'_>,
    tasks: &[Task],
    pair: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    let (first, second) = pair.split_at(pair.len().min(LANES));
    let most = |half: &[u32]| {
        half.iter()
            .map(|&index| tasks[index as usize].mac_blocks())
            .max()
            .unwrap_or(0)
    };
    let (steps_a, steps_b) = (most(first), most(second));
    let mut a = Eight::start(memory, tasks, first, records);
    let mut number = 0;
    if !second.is_empty() {
        let mut b = Eight::start(memory, tasks, second, records);
        let both = a.shortest().min(b.shortest());
        while 16 * number + 64 <= both {
            // SAFETY: every message of both has as many bytes.
            let (loaded_a, loaded_b) = unsafe { (a.load_whole(16 * number), b.load_whole(16 * number)) };
            a.whole(&loaded_a);
            b.whole(&loaded_b);
            number += 4;
        }
        while number < steps_b {
            let (loaded_a, loaded_b) = (a.load(16 * number), b.load(16 * number));
            a.four(&loaded_a, number, steps_a);
            b.four(&loaded_b, number, steps_b);
            number += 4;
        }
        b.finish(second, tags);
    }
    // What the longer ones have left.
    let whole = a.shortest();
    while 16 * number + 64 <= whole {
        // SAFETY: every message has as many bytes.
        a.whole(&unsafe { a.load_whole(16 * number) });
        number += 4;
    }
    while number < steps_a {
        let loaded = a.load(16 * number);
        a.four(&loaded, number, steps_a);
        number += 4;
    }
    a.finish(first, tags);
    let used: usize = pair.iter().map(|&i| tasks[i as usize].mac_blocks() + 1).sum();
    let steps_b = if second.is_empty() { 0 } else { steps_b + 1 };
    Lanes {
        used: used as u64,
        offered: (LANES * (steps_a + 1 + steps_b)) as u64,
    }
}
