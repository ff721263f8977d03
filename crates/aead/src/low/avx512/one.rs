//! One message: short ones from one or two horizontal groups of four blocks, longer ones with sixteen blocks at a time, twice, and
//! the authenticator's multiplies between the rounds of the next sixteen.

use core::arch::x86_64::*;

use super::chacha::{spread, to_streams, xor_kilobyte};
use super::long::{GROUP, LongMac, QUAD, absorb, load};
use super::rounds::{State, blocks, double_round, quarter_rounds, step};
use super::shuffle::{first_bytes, transpose_quarters};
use crate::low::portable::{CLAMP, CONSTANTS, Poly1305};
use crate::low::types::Text;
use crate::low::{KeyWords, MacRecord, Use, scrub_stack, wipe};

/// Bytes of a vertical pass.
const PASS: usize = 1024;

/// Longest message of one vertical pass, whose block 0 is the one-time key.
const MEDIUM: usize = PASS - 64;

/// Bytes of text in the first two passes, whose block 0 is the one-time key.
const FIRST: usize = 2 * PASS - 64;

/// Shortest message whose authenticator goes between the rounds.
const STITCHED: usize = 4 * PASS;

/// Longest message for horizontal groups: seven blocks, after the one of the one-time key.
const SHORT: usize = 7 * 64;

/// Longest message of one horizontal group.
const SHORTEST: usize = 3 * 64;

/// Words of stack that messages of one group, of two groups, of one pass, of some, and longer ones may leave vectors on: the frames of
/// what is called from [`run`], with room to spare. `tests/residue.rs` looks.
const SCRUB: [usize; 5] = if cfg!(debug_assertions) {
    [256, 384, 1536, 1536, 3072]
} else {
    [128, 192, 896, 1024, 1536]
};

/// Seals or opens; gives the tag that the ciphertext should have.
///
/// When opening, the text is decrypted whether authentic or not: the caller compares the tags and wipes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn run(key: &KeyWords, nonce: &[u32; 4], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
    // Each in a call of its own, so that the stack it used lies below and can be cleared.
    if text.len() <= SHORTEST {
        let tag = short::<1, 3>(key, nonce, aad, text, way);
        scrub_stack::<{ SCRUB[0] }>();
        tag
    } else if text.len() <= SHORT {
        let tag = short::<2, 7>(key, nonce, aad, text, way);
        scrub_stack::<{ SCRUB[1] }>();
        tag
    } else if text.len() <= MEDIUM {
        let tag = medium(key, nonce, aad, text, way);
        scrub_stack::<{ SCRUB[2] }>();
        tag
    } else if text.len() < STITCHED {
        let tag = longer(key, nonce, aad, text, way);
        scrub_stack::<{ SCRUB[3] }>();
        tag
    } else {
        let tag = long(key, nonce, aad, text, way);
        scrub_stack::<{ SCRUB[4] }>();
        tag
    }
}

/// An authenticator from the first 32 bytes of block 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn authenticator(block: __m512i) -> Poly1305 {
    let mut record = MacRecord::default();
    // SAFETY: r and s are the first 32 bytes of the record, which is aligned to 64.
    unsafe { _mm256_store_si256(core::ptr::from_mut(&mut record).cast(), _mm512_castsi512_si256(block)) };
    record.r[0] &= CLAMP[0];
    record.r[1] &= CLAMP[1];
    let mac = Poly1305::resume(&record);
    wipe(core::slice::from_mut(&mut record));
    mac
}

/// A half round of `GROUPS` times four blocks, one a quarter.
macro_rules! half_round {
    ($v:ident) => {
        for s in &mut $v {
            s[0] = _mm512_add_epi32(s[0], s[1]);
            s[3] = _mm512_rol_epi32::<16>(_mm512_xor_si512(s[3], s[0]));
        }
        for s in &mut $v {
            s[2] = _mm512_add_epi32(s[2], s[3]);
            s[1] = _mm512_rol_epi32::<12>(_mm512_xor_si512(s[1], s[2]));
        }
        for s in &mut $v {
            s[0] = _mm512_add_epi32(s[0], s[1]);
            s[3] = _mm512_rol_epi32::<8>(_mm512_xor_si512(s[3], s[0]));
        }
        for s in &mut $v {
            s[2] = _mm512_add_epi32(s[2], s[3]);
            s[1] = _mm512_rol_epi32::<7>(_mm512_xor_si512(s[1], s[2]));
        }
    };
}

/// The keystream of `GROUPS` times four blocks, horizontally: rows of four blocks side by side in one vector. Less work at
/// a time than sixteen blocks, and so sooner done.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn horizontal<const GROUPS: usize>(key: &KeyWords, nonce: &[u32; 4]) -> [[__m512i; 4]; GROUPS] {
    let row = |words: &[u32; 4]| {
        // SAFETY: four words are 16 bytes.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
    };
    let [k0, k1, k2, k3, k4, k5, k6, k7] = key.0;
    let rows = [
        row(&CONSTANTS),
        row(&[k0, k1, k2, k3]),
        row(&[k4, k5, k6, k7]),
        row(nonce),
    ];
    let mut start = [rows; GROUPS];
    for (i, s) in start.iter_mut().enumerate() {
        let at = 4 * i as i32;
        let number = _mm512_set_epi32(0, 0, 0, at + 3, 0, 0, 0, at + 2, 0, 0, 0, at + 1, 0, 0, 0, at);
        s[3] = _mm512_add_epi32(s[3], number);
    }
    let mut v = start;
    for _ in 0..10 {
        half_round!(v);
        // Diagonals come into columns by moving rows 0, 2 and 3 against row 1, which is the last to be ready.
        for s in &mut v {
            s[0] = _mm512_shuffle_epi32::<0x93>(s[0]);
            s[2] = _mm512_shuffle_epi32::<0x39>(s[2]);
            s[3] = _mm512_shuffle_epi32::<0x4e>(s[3]);
        }
        half_round!(v);
        for s in &mut v {
            s[0] = _mm512_shuffle_epi32::<0x39>(s[0]);
            s[2] = _mm512_shuffle_epi32::<0x93>(s[2]);
            s[3] = _mm512_shuffle_epi32::<0x4e>(s[3]);
        }
    }
    let mut streams = [[_mm512_setzero_si512(); 4]; GROUPS];
    for i in 0..GROUPS {
        for k in 0..4 {
            v[i][k] = _mm512_add_epi32(v[i][k], start[i][k]);
        }
        streams[i] = transpose_quarters(v[i][0], v[i][1], v[i][2], v[i][3]);
    }
    streams
}

/// Ciphertext of a short message, kept for the authenticator: it would wait long for what a masked store has written.
#[repr(C, align(64))]
struct Kept<const BLOCKS: usize>([[u8; 64]; BLOCKS]);

/// Messages of `BLOCKS` blocks at most, one less than `4 * GROUPS`.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn short<const GROUPS: usize, const BLOCKS: usize>(
    key: &KeyWords,
    nonce: &[u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    let streams = horizontal::<GROUPS>(key, nonce);
    let mut mac = authenticator(streams[0][0]);
    mac.absorb(aad);
    if way != Use::Seal {
        mac.absorb(text.src());
    }
    let mut kept = Kept([[0; 64]; BLOCKS]);
    let (src, dst, len) = text.pointers();
    for (i, stream) in streams.as_flattened()[1..].iter().enumerate() {
        let at = 64 * i;
        if at >= len {
            break;
        }
        let mask = first_bytes((len - at).min(64));
        // SAFETY: only the bytes of the mask are read, which are of the text.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, src.add(at).cast()) };
        let bytes = _mm512_xor_si512(bytes, *stream);
        // SAFETY: only the bytes of the mask are written, which are of the text.
        unsafe { _mm512_mask_storeu_epi8(dst.add(at).cast(), mask, bytes) };
        if way == Use::Seal {
            // SAFETY: a place of 64 bytes, aligned to 64.
            unsafe { _mm512_store_si512(kept.0[i].as_mut_ptr().cast(), _mm512_maskz_mov_epi8(mask, bytes)) };
        }
    }
    if way == Use::Seal {
        mac.absorb(&kept.0.as_flattened()[..len]);
    }
    mac.finish(aad.len() as u64, len as u64)
}

/// The keystream of two passes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn two_passes(key: &KeyWords, nonce: &[u32; 4]) -> [[__m512i; 16]; 2] {
    let first = spread(key, nonce);
    let (v, w) = blocks!(first, next_pass(first));
    [to_streams(&v), to_streams(&w)]
}

/// The state of the pass behind the one that starts from `state`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn next_pass(mut state: State) -> State {
    state[12] = _mm512_add_epi32(state[12], _mm512_set1_epi32(16));
    state
}

/// Messages of one pass.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn medium(key: &KeyWords, nonce: &[u32; 4], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
    let streams = to_streams(&blocks!(spread(key, nonce)));
    apart(&streams, key, *nonce, aad, text, way)
}

/// Messages of two passes and more, too short to be stitched.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn longer(key: &KeyWords, nonce: &[u32; 4], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
    apart(two_passes(key, nonce).as_flattened(), key, *nonce, aad, text, way)
}

/// One after the other: the authenticator, and the keystream, of which the blocks from `nonce` on are there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn apart(
    streams: &[__m512i],
    key: &KeyWords,
    mut nonce: [u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    let mut mac = authenticator(streams[0]);
    absorb(&mut mac, aad);
    if way != Use::Seal {
        absorb(&mut mac, text.src());
    }
    let (src, dst, len) = text.pointers();
    nonce[0] = nonce[0].wrapping_add(streams.len() as u32);
    let x = len.min(64 * (streams.len() - 1));
    // SAFETY: the text is as long as its length.
    unsafe { xor_tail(&streams[1..], src, dst, x) };
    // SAFETY: likewise.
    unsafe { xor_rest(key, &mut nonce, src, dst, x, len) };
    if way == Use::Seal {
        absorb(&mut mac, text.dst());
    }
    mac.finish(aad.len() as u64, len as u64)
}

/// Messages of more passes.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn long(key: &KeyWords, nonce: &[u32; 4], aad: &[u8], text: &mut Text<'_>, way: Use) -> [u8; 16] {
    let streams = two_passes(key, nonce);
    let streams = streams.as_flattened();
    let mut mac = authenticator(streams[0]);
    absorb(&mut mac, aad);
    let (src, dst, len) = text.pointers();
    let mut nonce = *nonce;
    nonce[0] = nonce[0].wrapping_add(32);
    let mut long = LongMac::start(&mac, true);
    // Where the keystream has come to, and where the authenticator has.
    let (mut x, mut p) = (FIRST, 0);
    let ciphertext = if way == Use::Seal { dst.cast_const() } else { src };
    if way == Use::Seal {
        // SAFETY: there are four passes of text at least.
        unsafe { xor_tail(&streams[1..], src, dst, FIRST) };
        // One group alone starts the authenticator; then it follows the keystream.
        // SAFETY: as above, and what is authenticated has been written.
        unsafe { long.take(ciphertext, 1, true) };
        p = GROUP;
        // SAFETY: as above.
        unsafe { stitched::<3>(key, &nonce, src.add(x), dst.add(x), &mut long, ciphertext.add(p)) };
        p += 3 * QUAD;
        x += 2 * PASS;
        nonce[0] = nonce[0].wrapping_add(32);
    } else {
        // The authenticator goes ahead of the keystream, which may overwrite what it reads.
        // SAFETY: there are four passes of text at least.
        unsafe { long.take(ciphertext, 2 * PASS / GROUP, true) };
        p += 2 * PASS;
        // SAFETY: as above.
        unsafe { xor_tail(&streams[1..], src, dst, FIRST) };
    }
    while x + 2 * PASS <= len && p + 2 * PASS <= len {
        // SAFETY: two passes of text are left for both. Sealing, the authenticator reads below x, which is ahead of p by more
        // than that; opening, its place stays ahead of what has been written, since p >= x and it reads before this writes.
        unsafe { stitched::<4>(key, &nonce, src.add(x), dst.add(x), &mut long, ciphertext.add(p)) };
        p += 2 * PASS;
        x += 2 * PASS;
        nonce[0] = nonce[0].wrapping_add(32);
    }
    if way == Use::Seal {
        // SAFETY: the rest of the text.
        unsafe { xor_rest(key, &mut nonce, src, dst, x, len) };
    }
    // SAFETY: whole groups of what is left.
    unsafe { long.take(ciphertext.add(p), (len - p) / GROUP, false) };
    p += (len - p) / GROUP * GROUP;
    long.finish(&mut mac);
    if way == Use::Seal {
        mac.absorb(&text.dst()[p..]);
    } else {
        mac.absorb(&text.src()[p..]);
        // SAFETY: the rest of the text.
        unsafe { xor_rest(key, &mut nonce, src, dst, x, len) };
    }
    mac.finish(aad.len() as u64, len as u64)
}

/// XORs as much keystream as there is, and no more, into `len` bytes.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn xor_tail(streams: &[__m512i], src: *const u8, dst: *mut u8, len: usize) {
    for (i, stream) in streams.iter().enumerate() {
        let at = 64 * i;
        let mask = first_bytes(len.saturating_sub(at).min(64));
        // SAFETY: only the bytes of the mask are read.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, src.wrapping_add(at).cast()) };
        // SAFETY: only the bytes of the mask are written.
        unsafe { _mm512_mask_storeu_epi8(dst.wrapping_add(at).cast(), mask, _mm512_xor_si512(bytes, *stream)) };
    }
}

/// XORs the keystream from `x` to the end; `nonce` is that of the block at `x`.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn xor_rest(key: &KeyWords, nonce: &mut [u32; 4], src: *const u8, dst: *mut u8, mut x: usize, len: usize) {
    while x < len {
        let left = len - x;
        if left <= 256 {
            // SAFETY: no more than what is left.
            unsafe { xor_tail(&horizontal::<1>(key, nonce)[0], src.add(x), dst.add(x), left) };
            return;
        }
        if left <= 512 {
            let streams = horizontal::<2>(key, nonce);
            // SAFETY: no more than what is left.
            unsafe { xor_tail(streams.as_flattened(), src.add(x), dst.add(x), left) };
            return;
        }
        if left <= PASS {
            // SAFETY: no more than what is left.
            unsafe { xor_tail(&to_streams(&blocks!(spread(key, nonce))), src.add(x), dst.add(x), left) };
            return;
        }
        let streams = two_passes(key, nonce);
        // SAFETY: no more than what is left.
        unsafe { xor_tail(streams.as_flattened(), src.add(x), dst.add(x), left.min(2 * PASS)) };
        nonce[0] = nonce[0].wrapping_add(32);
        x += 2 * PASS;
    }
}

/// Two passes of keystream with `QUADS` quads (2 to 4) of the authenticator between their rounds.
///
/// # Safety
/// `src` must be readable and `dst` writable for two passes, `ciphertext` readable for the quads; it is read before `dst` is
/// written.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn stitched<const QUADS: usize>(
    key: &KeyWords,
    nonce: &[u32; 4],
    src: *const u8,
    dst: *mut u8,
    mac: &mut LongMac,
    ciphertext: *const u8,
) {
    let start: State = spread(key, nonce);
    let second = next_pass(start);
    let (mut v, mut w) = (start, second);
    for quad in 0..QUADS {
        let at = |i: usize| ciphertext.wrapping_add(QUAD * quad + GROUP * i);
        double_round!([v, w]);
        // SAFETY: a group of the quad.
        let mut wide = mac.quad_first(&unsafe { load(at(0)) });
        // SAFETY: a group of the quad.
        mac.quad_middle(&mut wide, &unsafe { load(at(1)) }, 1);
        double_round!([v, w]);
        // SAFETY: a group of the quad.
        mac.quad_middle(&mut wide, &unsafe { load(at(2)) }, 2);
        // SAFETY: a group of the quad.
        mac.quad_last(wide, &unsafe { load(at(3)) });
    }
    for _ in 2 * QUADS..10 {
        double_round!([v, w]);
    }
    for i in 0..16 {
        v[i] = _mm512_add_epi32(v[i], start[i]);
    }
    for i in 0..16 {
        w[i] = _mm512_add_epi32(w[i], second[i]);
    }
    // SAFETY: two passes are readable and writable.
    unsafe { xor_kilobyte(&to_streams(&v), src, dst) };
    // SAFETY: likewise.
    unsafe { xor_kilobyte(&to_streams(&w), src.add(PASS), dst.add(PASS)) };
}
