//! ChaCha20, vertical: word w of eight blocks stands in vector w, and each lane may be a block of another message.

use core::arch::x86_64::*;

use crate::low::portable::{CLAMP, CONSTANTS};
use crate::low::types::{Stage, for_each_stage};
use crate::low::{KeyWords, Keyring, Lanes, MacRecord, Memory, Task};

/// Blocks at a time.
const LANES: usize = 8;

/// One state of eight blocks: word w of all of them in vector w.
type State = [__m256i; 16];

// Rounds are macros because functions with target features cannot be marked `inline(always)`.

/// One step of two quarter rounds side by side: `a += b; d = (d ^ a) <<< n`, for each. With sixteen registers, four side
/// by side would go through memory.
macro_rules! step {
    ($v:ident, $a:expr, $b:expr, $d:expr, $rotate:expr) => {
        for i in 0..2 {
            $v[$a[i]] = _mm256_add_epi32($v[$a[i]], $v[$b[i]]);
        }
        for i in 0..2 {
            $v[$d[i]] = $rotate(_mm256_xor_si256($v[$d[i]], $v[$a[i]]));
        }
    };
}

macro_rules! quarter_rounds {
    ($v:ident, $by16:ident, $by8:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {
        step!($v, $a, $b, $d, |x| _mm256_shuffle_epi8(x, $by16));
        step!($v, $c, $d, $b, |x| _mm256_or_si256(
            _mm256_slli_epi32::<12>(x),
            _mm256_srli_epi32::<20>(x)
        ));
        step!($v, $a, $b, $d, |x| _mm256_shuffle_epi8(x, $by8));
        step!($v, $c, $d, $b, |x| _mm256_or_si256(
            _mm256_slli_epi32::<7>(x),
            _mm256_srli_epi32::<25>(x)
        ));
    };
}

/// Twenty rounds and the final addition, of one state or of several side by side.
macro_rules! blocks {
    ($($v:ident = $start:expr),+) => {
        $(let mut $v: State = $start;)+
        let starts = [$($v),+];
        // Bytes of each word rotated by two places and by one. Kept from the compiler, which would make two shuffles of
        // the first.
        let by16 = core::hint::black_box(_mm256_set_epi8(
            13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2, 13, 12, 15, 14, 9, 8, 11, 10, 5, 4, 7, 6, 1, 0, 3, 2,
        ));
        let by8 = core::hint::black_box(_mm256_set_epi8(
            14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3, 14, 13, 12, 15, 10, 9, 8, 11, 6, 5, 4, 7, 2, 1, 0, 3,
        ));
        for _ in 0..10 {
            $(quarter_rounds!($v, by16, by8, [0, 1], [4, 5], [8, 9], [12, 13]);)+
            $(quarter_rounds!($v, by16, by8, [2, 3], [6, 7], [10, 11], [14, 15]);)+
            $(quarter_rounds!($v, by16, by8, [0, 1], [5, 6], [10, 11], [15, 12]);)+
            $(quarter_rounds!($v, by16, by8, [2, 3], [7, 4], [8, 9], [13, 14]);)+
        }
        let mut starts = starts.iter();
        $(for (word, start) in $v.iter_mut().zip(starts.next().into_iter().flatten()) {
            *word = _mm256_add_epi32(*word, *start);
        })+
    };
}

/// Transposes eight rows of eight words.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(r: &[__m256i; 8]) -> [__m256i; 8] {
    let pair = |i: usize| {
        (
            _mm256_unpacklo_epi32(r[i], r[i + 1]),
            _mm256_unpackhi_epi32(r[i], r[i + 1]),
        )
    };
    let ((a0, a1), (b0, b1), (c0, c1), (d0, d1)) = (pair(0), pair(2), pair(4), pair(6));
    let four = |p, q| (_mm256_unpacklo_epi64(p, q), _mm256_unpackhi_epi64(p, q));
    let ((e0, e1), (e2, e3)) = (four(a0, b0), four(a1, b1));
    let ((f0, f1), (f2, f3)) = (four(c0, d0), four(c1, d1));
    [
        _mm256_permute2x128_si256::<0x20>(e0, f0),
        _mm256_permute2x128_si256::<0x20>(e1, f1),
        _mm256_permute2x128_si256::<0x20>(e2, f2),
        _mm256_permute2x128_si256::<0x20>(e3, f3),
        _mm256_permute2x128_si256::<0x31>(e0, f0),
        _mm256_permute2x128_si256::<0x31>(e1, f1),
        _mm256_permute2x128_si256::<0x31>(e2, f2),
        _mm256_permute2x128_si256::<0x31>(e3, f3),
    ]
}

/// The state of eight blocks, each with a key and a nonce of its own.
#[inline]
#[target_feature(enable = "avx2")]
fn gather(keys: &[&KeyWords; LANES], nonces: &[[u32; 4]; LANES]) -> State {
    let mut rows = [_mm256_setzero_si256(); LANES];
    for (row, key) in rows.iter_mut().zip(keys) {
        // SAFETY: a key is 32 bytes.
        *row = unsafe { _mm256_loadu_si256(core::ptr::from_ref(*key).cast()) };
    }
    let words = transpose(&rows);
    let mut state = [_mm256_setzero_si256(); 16];
    for i in 0..4 {
        state[i] = _mm256_set1_epi32(CONSTANTS[i] as i32);
    }
    state[4..12].copy_from_slice(&words);
    for (row, nonce) in rows.iter_mut().zip(nonces) {
        // SAFETY: a nonce is 16 bytes.
        let half = unsafe { _mm_loadu_si128(nonce.as_ptr().cast()) };
        *row = _mm256_castsi128_si256(half);
    }
    state[12..].copy_from_slice(&transpose(&rows)[..4]);
    state
}

/// The state of block 0 of up to eight tasks; lanes beyond them have a key of zeros.
#[inline]
#[target_feature(enable = "avx2")]
fn first_blocks(keys: Keyring<'_>, tasks: &[Task]) -> State {
    let zero = KeyWords::default();
    let mut lane_keys = [&zero; LANES];
    let mut nonces = [[0; 4]; LANES];
    for ((task, key), nonce) in tasks.iter().zip(&mut lane_keys).zip(&mut nonces) {
        *key = keys.get(task.key);
        *nonce = task.nonce;
    }
    gather(&lane_keys, &nonces)
}

/// Puts r and s, the first 32 bytes of each block, into the records.
#[inline]
#[target_feature(enable = "avx2")]
fn put_keys(v: &State, records: &mut [MacRecord]) {
    let mut first: [__m256i; 8] = core::array::from_fn(|i| v[i]);
    for (i, word) in first[..4].iter_mut().enumerate() {
        let clamp = (CLAMP[i / 2] >> (32 * (i % 2))) as i32;
        *word = _mm256_and_si256(*word, _mm256_set1_epi32(clamp));
    }
    for (record, half) in records.iter_mut().zip(&transpose(&first)) {
        // SAFETY: r and s are the first 32 bytes of the record, which is aligned to 64.
        unsafe { _mm256_store_si256(core::ptr::from_mut(record).cast(), *half) };
    }
}

/// Fills in r and s of each task's record from block 0 of its keystream.
#[target_feature(enable = "avx2")]
pub(super) fn one_time_keys(keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    for (tasks, records) in tasks.chunks(2 * LANES).zip(records.chunks_mut(2 * LANES)) {
        if tasks.len() <= LANES {
            blocks!(v = first_blocks(keys, tasks));
            put_keys(&v, records);
            continue;
        }
        let (tasks_a, tasks_b) = tasks.split_at(LANES);
        let (records_a, records_b) = records.split_at_mut(LANES);
        blocks!(v = first_blocks(keys, tasks_a), w = first_blocks(keys, tasks_b));
        put_keys(&v, records_a);
        put_keys(&w, records_b);
    }
    Lanes {
        used: tasks.len() as u64,
        offered: tasks.len().next_multiple_of(LANES) as u64,
    }
}

/// Works on the lanes of a stage that are in use: those of one state first.
///
/// # Safety
/// Each `src` must be readable and each `dst` writable for its `len` bytes, at most 64.
#[target_feature(enable = "avx2")]
unsafe fn run(stage: &Stage<'_, { 2 * LANES }>) {
    let start = |half: usize| {
        let at = LANES * half;
        gather(
            &core::array::from_fn(|i| stage.keys[at + i]),
            &core::array::from_fn(|i| stage.nonces[at + i]),
        )
    };
    if stage.len[LANES] == 0 {
        blocks!(v = start(0));
        // SAFETY: by the caller's promise.
        unsafe { xor_lanes(&v, stage, 0) };
        return;
    }
    blocks!(v = start(0), w = start(1));
    // SAFETY: by the caller's promise.
    unsafe { xor_lanes(&v, stage, 0) };
    // SAFETY: likewise.
    unsafe { xor_lanes(&w, stage, LANES) };
}

/// XORs the keystream of eight blocks into the texts of the lanes from `first` on.
///
/// # Safety
/// As for [`run`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn xor_lanes(v: &State, stage: &Stage<'_, { 2 * LANES }>, first: usize) {
    let (Some(low), Some(high)) = (v.first_chunk::<8>(), v.last_chunk::<8>()) else {
        return;
    };
    let (low, high) = (transpose(low), transpose(high));
    for i in 0..LANES {
        let (src, dst, len) = (stage.src[first + i], stage.dst[first + i], stage.len[first + i]);
        if len == 64 {
            for (half, stream) in [low[i], high[i]].into_iter().enumerate() {
                // SAFETY: 64 bytes are readable.
                let text = unsafe { _mm256_loadu_si256(src.add(32 * half).cast()) };
                // SAFETY: 64 bytes are writable.
                unsafe { _mm256_storeu_si256(dst.add(32 * half).cast(), _mm256_xor_si256(text, stream)) };
            }
        } else {
            // SAFETY: fewer bytes than a block, as the caller promised.
            unsafe { partial(src, dst, len, low[i], high[i]) };
        }
    }
}

/// XORs less than a block: by halves of 32, 16, 8 and 4 bytes, then byte by byte.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes, fewer than 64.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn partial(src: *const u8, dst: *mut u8, len: usize, low: __m256i, high: __m256i) {
    let (mut at, mut rest) = (0, low);
    if len & 32 != 0 {
        // SAFETY: at least 32 bytes.
        let text = unsafe { _mm256_loadu_si256(src.cast()) };
        // SAFETY: likewise.
        unsafe { _mm256_storeu_si256(dst.cast(), _mm256_xor_si256(text, low)) };
        (at, rest) = (32, high);
    }
    let mut last = _mm256_castsi256_si128(rest);
    if len & 16 != 0 {
        // SAFETY: at least 16 bytes more.
        let text = unsafe { _mm_loadu_si128(src.add(at).cast()) };
        // SAFETY: likewise.
        unsafe { _mm_storeu_si128(dst.add(at).cast(), _mm_xor_si128(text, last)) };
        last = _mm256_extracti128_si256::<1>(rest);
        at += 16;
    }
    if len & 8 != 0 {
        // SAFETY: at least 8 bytes more.
        let text = unsafe { _mm_loadl_epi64(src.add(at).cast()) };
        // SAFETY: likewise.
        unsafe { _mm_storel_epi64(dst.add(at).cast(), _mm_xor_si128(text, last)) };
        last = _mm_srli_si128::<8>(last);
        at += 8;
    }
    let mut word = _mm_cvtsi128_si64(last) as u64;
    while at < len {
        // SAFETY: `at` is below the length.
        unsafe { *dst.add(at) = *src.add(at) ^ word as u8 };
        word >>= 8;
        at += 1;
    }
}

/// XORs the keystream into every task that is not to be skipped.
#[target_feature(enable = "avx2")]
pub(super) fn xor(memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    for_each_stage(memory, keys, tasks, |stage| {
        // SAFETY: the stage's lanes are parts of tasks that the memory holds.
        unsafe { run(stage) };
    })
}
