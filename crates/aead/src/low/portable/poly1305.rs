//! Poly1305 (RFC 8439 section 2.5) in limbs of 44, 44 and 42 bits, as the AEAD uses it: every part padded to 16 bytes.

use crate::low::{MacRecord, wipe};

/// What clamping leaves of r (RFC 8439 section 2.5), low half first.
pub(crate) const CLAMP: [u64; 2] = [0x0fff_fffc_0fff_ffff, 0x0fff_fffc_0fff_fffc];

const MASK44: u64 = (1 << 44) - 1;
const MASK42: u64 = (1 << 42) - 1;

/// The bit above the 16 bytes of a block, in the top limb.
const HIGH_BIT: u64 = 1 << 40;

/// A 130-bit number: bits 0 to 43, 44 to 87, 88 to 129. Limbs may be a little wider between reductions.
pub(crate) type Limbs = [u64; 3];

/// Splits 128 bits into limbs.
#[inline(always)]
pub(crate) fn limbs(low: u64, high: u64) -> Limbs {
    [low & MASK44, (low >> 44 | high << 20) & MASK44, high >> 24]
}

/// The limbs of a product, not yet carried.
///
/// What passes 2^130 comes back times 5; a limb product that lands at 2^132 comes back times 20.
#[inline(always)]
fn products(a: &Limbs, b: &Limbs) -> [u128; 3] {
    let wide = |x: u64, y: u64| u128::from(x) * u128::from(y);
    let (b1, b2) = (b[1] * 20, b[2] * 20);
    [
        wide(a[0], b[0]) + wide(a[1], b2) + wide(a[2], b1),
        wide(a[0], b[1]) + wide(a[1], b[0]) + wide(a[2], b2),
        wide(a[0], b[2]) + wide(a[1], b[1]) + wide(a[2], b[0]),
    ]
}

/// Carries once around: each limb comes out within a few bits of its width.
#[inline(always)]
fn carry(d: [u128; 3]) -> Limbs {
    let d1 = d[1] + (d[0] >> 44);
    let d2 = d[2] + (d1 >> 44);
    let h0 = (d[0] as u64 & MASK44) + (d2 >> 42) as u64 * 5;
    [h0 & MASK44, (d1 as u64 & MASK44) + (h0 >> 44), d2 as u64 & MASK42]
}

/// The product modulo 2^130 - 5.
#[inline(always)]
pub(crate) fn multiply(a: &Limbs, b: &Limbs) -> Limbs {
    carry(products(a, b))
}

/// The sum, limb by limb.
#[inline(always)]
fn plus(a: &Limbs, b: &Limbs) -> Limbs {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// The number that a block of 16 bytes stands for.
#[inline(always)]
fn number(block: &[u8; 16]) -> Limbs {
    let both = u128::from_le_bytes(*block);
    let m = limbs(both as u64, (both >> 64) as u64);
    [m[0], m[1], m[2] + HIGH_BIT]
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
/// A number in limbs of 26 bits, for kernels with 32-bit multiplies. Limbs may be a little wider.
pub(crate) type Limbs26 = [u64; 5];

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
const MASK26: u64 = (1 << 26) - 1;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
/// The tag from a final accumulator, the block of lengths already taken.
pub(crate) fn tag_of_limbs26(h: &Limbs26, s: &[u64; 2]) -> [u8; 16] {
    let mut h = *h;
    for i in 0..4 {
        h[i + 1] += h[i] >> 26;
        h[i] &= MASK26;
    }
    // The top limb keeps what passes 2^130; the reduction brings it back.
    let joined = [
        h[0] | (h[1] & 0x3_ffff) << 26,
        h[1] >> 18 | h[2] << 8 | (h[3] & 0x3ff) << 34,
        (h[3] >> 10) + (h[4] << 16),
    ];
    tag_of(joined, s)
}

/// h modulo 2^130 - 5, plus s, modulo 2^128. Limbs may be a bit wider than 44, 44 and 42.
#[inline(always)]
fn tag_of(mut h: Limbs, s: &[u64; 2]) -> [u8; 16] {
    // Carry fully, then take h + 5 - 2^130 if that is not negative: without a branch.
    for _ in 0..2 {
        h[1] += h[0] >> 44;
        h[0] &= MASK44;
        h[2] += h[1] >> 44;
        h[1] &= MASK44;
        h[0] += (h[2] >> 42) * 5;
        h[2] &= MASK42;
    }
    h[1] += h[0] >> 44;
    h[0] &= MASK44;
    let g0 = h[0] + 5;
    let g1 = h[1] + (g0 >> 44);
    let g2 = (h[2] + (g1 >> 44)).wrapping_sub(1 << 42);
    // All ones if h < p, that is if g2 went below zero.
    let keep = 0u64.wrapping_sub(g2 >> 63);
    let pick = |h: u64, g: u64| (h & keep) | (g & !keep);
    let (h0, h1, h2) = (pick(h[0], g0 & MASK44), pick(h[1], g1 & MASK44), pick(h[2], g2));
    let value = u128::from(h0) | u128::from(h1) << 44 | u128::from(h2) << 88;
    let s = u128::from(s[0]) | u128::from(s[1]) << 64;
    value.wrapping_add(s).to_le_bytes()
}

/// A one-time authenticator in progress.
pub(crate) struct Poly1305 {
    r: Limbs,
    s: [u64; 2],
    h: Limbs,
}

impl Poly1305 {
    /// Starts from a record: its key, and its accumulator, which is zero at the start.
    pub(crate) fn resume(record: &MacRecord) -> Self {
        Poly1305 {
            r: limbs(record.r[0], record.r[1]),
            s: record.s,
            h: record.h,
        }
    }

    /// r, for kernels that go on from here.
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    pub(crate) fn r(&self) -> &Limbs {
        &self.r
    }

    /// The accumulator.
    pub(crate) fn accumulator(&self) -> Limbs {
        self.h
    }

    /// Puts back an accumulator that a kernel has worked on; limbs at most one bit wider than their width.
    #[cfg(any(test, all(target_arch = "x86_64", target_feature = "sse2")))]
    pub(crate) fn set_accumulator(&mut self, h: Limbs) {
        self.h = h;
    }

    /// Takes one number.
    #[inline(always)]
    fn step(&mut self, m: &Limbs) {
        self.h = multiply(&plus(&self.h, m), &self.r);
    }

    /// Takes bytes, padded with zeros to a multiple of 16 as RFC 8439 section 2.8 wants it.
    #[inline]
    pub(crate) fn absorb(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<16>();
        let (pairs, odd) = blocks.as_chunks::<2>();
        if !pairs.is_empty() {
            // Two blocks at a time, ((h + a) r + b) r = (h + a) r^2 + b r: half as long a chain of multiplies.
            let squared = multiply(&self.r, &self.r);
            for [a, b] in pairs {
                let first = products(&plus(&self.h, &number(a)), &squared);
                let second = products(&number(b), &self.r);
                self.h = carry([first[0] + second[0], first[1] + second[1], first[2] + second[2]]);
            }
        }
        for block in odd {
            self.step(&number(block));
        }
        if !rest.is_empty() {
            let mut last = [0; 16];
            last[..rest.len()].copy_from_slice(rest);
            self.step(&number(&last));
        }
    }

    /// Takes the block of lengths and gives the tag.
    #[inline]
    pub(crate) fn finish(mut self, aad_len: u64, text_len: u64) -> [u8; 16] {
        let lengths = u128::from(aad_len) | u128::from(text_len) << 64;
        self.step(&number(&lengths.to_le_bytes()));
        tag_of(self.h, &self.s)
    }
}

impl Drop for Poly1305 {
    fn drop(&mut self) {
        wipe(&mut self.r);
        wipe(&mut self.s);
        wipe(&mut self.h);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::low::vectors;

    fn record(r: [u64; 2], s: [u64; 2]) -> MacRecord {
        MacRecord {
            r,
            s,
            ..MacRecord::default()
        }
    }

    /// The value of limbs as a number below 2^130, in two parts.
    fn reduced(h: Limbs, s: [u64; 2]) -> [u8; 16] {
        // With r = 0 the block of lengths leaves 0, so the final reduction is tested with r = 1 and a length that is 0:
        // the block then adds 2^128, which is taken away before.
        let mut mac = Poly1305::resume(&record([1, 0], s));
        mac.set_accumulator(h);
        mac.finish(0, 0)
    }

    /// The final reduction at its edges: p - 1, p, p + 1, 2^130 - 1. The block of lengths adds 2^128.
    #[test]
    fn reduction_at_the_edges() {
        let top = (1u64 << 42) - 1 - (1 << 40);
        let near = |low: u64| [low, MASK44, top];
        let value = |h| u128::from_le_bytes(reduced(h, [0, 0]));
        assert_eq!(value(near(MASK44 - 5)), u128::MAX - 5, "p - 1");
        assert_eq!(value(near(MASK44 - 4)), 0, "p");
        assert_eq!(value(near(MASK44 - 3)), 1, "p + 1");
        assert_eq!(value(near(MASK44)), 4, "2^130 - 1");
    }

    #[test]
    fn s_is_added_modulo_2_to_the_128() {
        let h = [MASK44 - 4, MASK44, (1u64 << 42) - 1 - (1 << 40)];
        assert_eq!(reduced(h, [u64::MAX, u64::MAX]), [0xff; 16]);
        assert_eq!(reduced([h[0] + 1, h[1], h[2]], [u64::MAX, u64::MAX]), [0; 16]);
    }

    /// RFC 8439 section 2.8.2: the AEAD's own example, from its one-time key on.
    #[test]
    fn tag_of_the_rfc() {
        let case = vectors::record("rfc8439.txt", "2.8.2");
        let (key, aad, sealed) = (case.bytes("one-time key"), case.bytes("aad"), case.bytes("sealed"));
        let (text, tag) = sealed.split_at(sealed.len() - 16);
        let half = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().unwrap());
        let mut mac = Poly1305::resume(&record([half(0) & CLAMP[0], half(8) & CLAMP[1]], [half(16), half(24)]));
        mac.absorb(&aad);
        mac.absorb(text);
        assert_eq!(mac.finish(12, 114), tag);
    }
}
