//! NEON: four blocks of ChaCha20 at a time. Poly1305 is scalar, for two messages at a time: the 64-bit multiply of these cores keeps up.

mod mac;

use core::arch::aarch64::*;

use crate::cpu::HaveNeon;
use crate::low::portable::{CLAMP, CONSTANTS};
use crate::low::types::{Stage, for_each_stage};
use crate::low::{KeyWords, Keyring, Lanes, MacRecord, Memory, Task};

/// Blocks at a time.
const LANES: usize = 4;

/// One state of four blocks: word w of all of them in vector w.
type State = [uint32x4_t; 16];

/// One step of four quarter rounds side by side: `a += b; d = (d ^ a) <<< n`, for each of four.
macro_rules! step {
    ($v:ident, $a:expr, $b:expr, $d:expr, $rotate:expr) => {
        for i in 0..4 {
            $v[$a[i]] = vaddq_u32($v[$a[i]], $v[$b[i]]);
        }
        for i in 0..4 {
            $v[$d[i]] = $rotate(veorq_u32($v[$d[i]], $v[$a[i]]));
        }
    };
}

macro_rules! quarter_rounds {
    ($v:ident, $by8:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {
        step!($v, $a, $b, $d, |x| vreinterpretq_u32_u16(vrev32q_u16(
            vreinterpretq_u16_u32(x)
        )));
        step!($v, $c, $d, $b, |x| vsriq_n_u32::<20>(vshlq_n_u32::<12>(x), x));
        step!($v, $a, $b, $d, |x| vreinterpretq_u32_u8(vqtbl1q_u8(
            vreinterpretq_u8_u32(x),
            $by8
        )));
        step!($v, $c, $d, $b, |x| vsriq_n_u32::<25>(vshlq_n_u32::<7>(x), x));
    };
}

/// Transposes four rows of four words.
#[inline]
#[target_feature(enable = "neon")]
fn transpose(r: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    let long = vreinterpretq_u64_u32;
    let (a, b) = (long(vtrn1q_u32(r[0], r[1])), long(vtrn2q_u32(r[0], r[1])));
    let (c, d) = (long(vtrn1q_u32(r[2], r[3])), long(vtrn2q_u32(r[2], r[3])));
    [vtrn1q_u64(a, c), vtrn1q_u64(b, d), vtrn2q_u64(a, c), vtrn2q_u64(b, d)].map(|v| vreinterpretq_u32_u64(v))
}

/// Loads four words.
#[inline]
#[target_feature(enable = "neon")]
fn load(words: &[u32; 4]) -> uint32x4_t {
    // SAFETY: four words are readable.
    unsafe { vld1q_u32(words.as_ptr()) }
}

/// Four blocks, each with a key and a nonce of its own: the words of block b are rows 0 to 3 of the result, at place b.
#[inline]
#[target_feature(enable = "neon")]
fn blocks(keys: &[&KeyWords; LANES], nonces: &[[u32; 4]; LANES]) -> [[uint32x4_t; 4]; 4] {
    let half = |at: usize| {
        transpose(core::array::from_fn(|i| {
            let words = &keys[i].0;
            load(&[words[at], words[at + 1], words[at + 2], words[at + 3]])
        }))
    };
    let mut start: State = [vdupq_n_u32(0); 16];
    for i in 0..4 {
        start[i] = vdupq_n_u32(CONSTANTS[i]);
    }
    start[4..8].copy_from_slice(&half(0));
    start[8..12].copy_from_slice(&half(4));
    start[12..].copy_from_slice(&transpose(core::array::from_fn(|i| load(&nonces[i]))));
    let by8: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
    // SAFETY: sixteen bytes are readable.
    let by8 = unsafe { vld1q_u8(by8.as_ptr()) };
    let mut v = start;
    for _ in 0..10 {
        quarter_rounds!(v, by8, [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]);
        quarter_rounds!(v, by8, [0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14]);
    }
    for i in 0..16 {
        v[i] = vaddq_u32(v[i], start[i]);
    }
    let rows: [[uint32x4_t; 4]; 4] =
        core::array::from_fn(|i| transpose([v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]]));
    core::array::from_fn(|block| core::array::from_fn(|row| rows[row][block]))
}

/// Fills in r and s of each task's record from block 0 of its keystream.
#[inline]
pub(crate) fn one_time_keys(_: HaveNeon, keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    let zero = KeyWords::default();
    let mut offered = 0;
    for (tasks, records) in tasks.chunks(LANES).zip(records.chunks_mut(LANES)) {
        let mut lane_keys = [&zero; LANES];
        let mut nonces = [[0; 4]; LANES];
        for ((task, key), nonce) in tasks.iter().zip(&mut lane_keys).zip(&mut nonces) {
            *key = keys.get(task.key);
            *nonce = task.nonce;
        }
        // SAFETY: the token proves the feature that the function needs.
        let streams = unsafe { blocks(&lane_keys, &nonces) };
        for (record, rows) in records.iter_mut().zip(&streams) {
            // SAFETY: r is two halves of 64 bits.
            unsafe { vst1q_u64(record.r.as_mut_ptr(), vreinterpretq_u64_u32(rows[0])) };
            // SAFETY: so is s.
            unsafe { vst1q_u64(record.s.as_mut_ptr(), vreinterpretq_u64_u32(rows[1])) };
            record.r[0] &= CLAMP[0];
            record.r[1] &= CLAMP[1];
        }
        offered += LANES as u64;
    }
    Lanes {
        used: tasks.len() as u64,
        offered,
    }
}

/// XORs the keystream into every task that is not to be skipped.
#[inline]
pub(crate) fn xor(_: HaveNeon, memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    for_each_stage(memory, keys, tasks, |stage| {
        // SAFETY: the token proves the feature; the stage's lanes are parts of tasks that the memory holds.
        unsafe { run(stage) };
    })
}

/// Computes the tags of the tasks named in `order`.
#[inline]
pub(crate) fn macs(
    _: HaveNeon,
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    mac::macs(memory, tasks, order, records, tags)
}

/// Works on the lanes of a stage that are in use.
///
/// # Safety
/// Each `src` must be readable and each `dst` writable for its `len` bytes, at most 64.
#[target_feature(enable = "neon")]
unsafe fn run(stage: &Stage<'_, LANES>) {
    let streams = blocks(&stage.keys, &stage.nonces);
    for (i, rows) in streams.iter().enumerate() {
        let (src, dst, len) = (stage.src[i], stage.dst[i], stage.len[i]);
        for (piece, row) in rows.iter().enumerate() {
            let at = 16 * piece;
            let stream = vreinterpretq_u8_u32(*row);
            if at + 16 <= len {
                // SAFETY: 16 bytes more are readable.
                let text = unsafe { vld1q_u8(src.add(at)) };
                // SAFETY: 16 bytes more are writable.
                unsafe { vst1q_u8(dst.add(at), veorq_u8(text, stream)) };
            } else if at < len {
                let mut bytes = [0u8; 16];
                // SAFETY: sixteen bytes are writable.
                unsafe { vst1q_u8(bytes.as_mut_ptr(), stream) };
                for (k, byte) in bytes[..len - at].iter().enumerate() {
                    // SAFETY: the place is below the length.
                    unsafe { *dst.add(at + k) = *src.add(at + k) ^ byte };
                }
            }
        }
    }
}
