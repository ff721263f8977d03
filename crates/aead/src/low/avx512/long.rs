//! Poly1305 of one long message: a lane is every eighth block, and powers of r put the lanes together at the end.

use core::arch::x86_64::*;

use super::mac::{Factor, Limbs, Wide, add, high_bit, multiply, split};
use crate::low::portable::{self, Poly1305, multiply as scalar_multiply};

/// Bytes of one group: a block a lane.
pub(super) const GROUP: usize = 128;

/// Bytes of four groups, which are carried together.
pub(super) const QUAD: usize = 4 * GROUP;

/// Powers of r.
struct Powers {
    /// r^8, r^16, r^24, r^32, each in every lane.
    steps: [Factor; 4],
    /// True if all four are there.
    quads: bool,
    /// The power that each lane has left to go after the last group.
    lanes: Factor,
}

/// An authenticator that takes whole groups.
pub(super) struct LongMac {
    h: Limbs,
    powers: Powers,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn every(limbs: &portable::Limbs) -> Factor {
    Factor::new(core::array::from_fn(|i| _mm512_set1_epi64(limbs[i] as i64)))
}

/// One group, split into limbs. Unpacking leaves the blocks in the order 0, 4, 1, 5, 2, 6, 3, 7.
///
/// # Safety
/// `text` must be readable for [`GROUP`] bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) unsafe fn load(text: *const u8) -> Limbs {
    // SAFETY: by the caller's promise.
    let a = unsafe { _mm512_loadu_si512(text.cast()) };
    // SAFETY: by the caller's promise.
    let b = unsafe { _mm512_loadu_si512(text.add(64).cast()) };
    let mut m = split(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    m[2] = _mm512_or_si512(m[2], high_bit());
    m
}

impl LongMac {
    /// Goes on from a scalar authenticator; `quads` if four groups at a time will come, which takes more powers.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn start(mac: &Poly1305, quads: bool) -> Self {
        let r1 = *mac.r();
        let r2 = scalar_multiply(&r1, &r1);
        let r3 = scalar_multiply(&r2, &r1);
        let r4 = scalar_multiply(&r2, &r2);
        let r5 = scalar_multiply(&r4, &r1);
        let r6 = scalar_multiply(&r4, &r2);
        let r7 = scalar_multiply(&r4, &r3);
        let r8 = scalar_multiply(&r4, &r4);
        let step8 = every(&r8);
        let mut steps = [step8; 4];
        if quads {
            let r16 = scalar_multiply(&r8, &r8);
            let r24 = scalar_multiply(&r16, &r8);
            let r32 = scalar_multiply(&r16, &r16);
            steps = [step8, every(&r16), every(&r24), every(&r32)];
        }
        // Block 0 has eight steps to go, block 7 one.
        let lanes = |i: usize| {
            let v = |r: &portable::Limbs| r[i] as i64;
            _mm512_set_epi64(v(&r1), v(&r5), v(&r2), v(&r6), v(&r3), v(&r7), v(&r4), v(&r8))
        };
        let h = mac.accumulator();
        LongMac {
            // Lane 0 is where the first block comes, which is added to the accumulator.
            h: core::array::from_fn(|i| _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, h[i] as i64)),
            powers: Powers {
                steps,
                quads,
                lanes: Factor::new([lanes(0), lanes(1), lanes(2)]),
            },
        }
    }

    /// Takes one group: every lane's sum goes eight blocks on, then its block is added.
    ///
    /// The very first group is only added to the accumulator, which is not moved on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    fn group(&mut self, m: &Limbs, first: bool) {
        self.h = if first {
            add(&self.h, m)
        } else {
            add(&multiply(&self.h, &self.powers.steps[0]), m)
        };
    }

    /// First of four groups that are carried together.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn quad_first(&self, m: &Limbs) -> Wide {
        let zero = _mm512_setzero_si512();
        let mut wide = Wide::from([zero; 3]);
        wide.add_product(&self.h, &self.powers.steps[3]);
        wide.add_product(m, &self.powers.steps[2]);
        wide
    }

    /// Second (1) or third (2) of four.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn quad_middle(&self, wide: &mut Wide, m: &Limbs, number: usize) {
        wide.add_product(m, &self.powers.steps[2 - number]);
    }

    /// Last of four.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn quad_last(&mut self, wide: Wide, m: &Limbs) {
        self.h = add(&wide.carry(), m);
    }

    /// Takes whole groups; `first` if nothing has been taken yet.
    ///
    /// # Safety
    /// `text` must be readable for `groups` times [`GROUP`] bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) unsafe fn take(&mut self, mut text: *const u8, mut groups: usize, first: bool) {
        if first && groups > 0 {
            // SAFETY: one group is left at least.
            self.group(&unsafe { load(text) }, true);
            text = text.wrapping_add(GROUP);
            groups -= 1;
        }
        while groups >= 4 && self.powers.quads {
            // SAFETY: four groups are left at least.
            let m: [Limbs; 4] = core::array::from_fn(|i| unsafe { load(text.add(GROUP * i)) });
            let mut wide = self.quad_first(&m[0]);
            self.quad_middle(&mut wide, &m[1], 1);
            self.quad_middle(&mut wide, &m[2], 2);
            self.quad_last(wide, &m[3]);
            text = text.wrapping_add(QUAD);
            groups -= 4;
        }
        for _ in 0..groups {
            // SAFETY: one group is left at least.
            self.group(&unsafe { load(text) }, false);
            text = text.wrapping_add(GROUP);
        }
    }

    /// Puts the lanes together, back into the scalar authenticator.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
    pub(super) fn finish(&self, mac: &mut Poly1305) {
        let sums = multiply(&self.h, &self.powers.lanes).map(|limb| _mm512_reduce_add_epi64(limb) as u64);
        // Eight limbs of 45 bits at most: one carry around brings them back to width.
        let h1 = sums[1] + (sums[0] >> 44);
        let h2 = sums[2] + (h1 >> 44);
        let h0 = (sums[0] & ((1 << 44) - 1)) + 5 * (h2 >> 42);
        mac.set_accumulator([h0, h1 & ((1 << 44) - 1), h2 & ((1 << 42) - 1)]);
    }
}

/// Absorbs bytes: the bulk by vectors where that is worth the powers of r.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn absorb(mac: &mut Poly1305, bytes: &[u8]) {
    let groups = bytes.len() / GROUP;
    if bytes.len() < VECTOR_FROM {
        mac.absorb(bytes);
        return;
    }
    let mut long = LongMac::start(mac, groups > QUADS_FROM);
    // SAFETY: as many groups are in the slice.
    unsafe { long.take(bytes.as_ptr(), groups, true) };
    long.finish(mac);
    mac.absorb(&bytes[groups * GROUP..]);
}

/// From how many groups on the powers for four at a time are worth computing.
const QUADS_FROM: usize = 12;

/// From how many bytes on powers of r are worth computing. Measured on Zen 4: scalar code wins below.
pub(super) const VECTOR_FROM: usize = 512;
