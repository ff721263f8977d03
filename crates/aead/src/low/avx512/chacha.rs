//! ChaCha20, vertical: word w of sixteen blocks stands in vector w, and each lane may be a block of another message.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::shuffle::{first_bytes, transpose_quarters, transpose_words};
use crate::low::portable::{CLAMP, CONSTANTS};
use crate::low::{KeyWords, Keyring, Lanes, MacRecord, Memory, Task, Use, scrub_stack};

/// Blocks at a time.
const LANES: usize = 16;

/// One state of sixteen blocks: word w of all of them in vector w.
pub(super) type State = [__m512i; 16];

// Rounds are macros because functions with target features cannot be marked `inline(always)`, and a call would put all
// sixteen vectors through memory.

/// One step of four quarter rounds side by side: `a += b; d = (d ^ a) <<< N`, for each of four.
///
/// One after the other, not all additions first: rotations have one port, and Intel's processors choose ports in the order
/// of the program. Spread out, they leave the other port less idle: by three in a hundred on Emerald Rapids.
macro_rules! step {
    ($v:ident, $a:expr, $b:expr, $d:expr, $n:literal) => {
        for i in 0..4 {
            $v[$a[i]] = _mm512_add_epi32($v[$a[i]], $v[$b[i]]);
            $v[$d[i]] = _mm512_rol_epi32::<$n>(_mm512_xor_si512($v[$d[i]], $v[$a[i]]));
        }
    };
}

/// The four quarter rounds of one half of a double round, side by side so that their chains overlap.
macro_rules! quarter_rounds {
    ($v:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {
        step!($v, $a, $b, $d, 16);
        step!($v, $c, $d, $b, 12);
        step!($v, $a, $b, $d, 8);
        step!($v, $c, $d, $b, 7);
    };
}

/// Four columns, then four diagonals.
macro_rules! double_round {
    ($v:ident) => {
        quarter_rounds!($v, [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]);
        quarter_rounds!($v, [0, 1, 2, 3], [5, 6, 7, 4], [10, 11, 8, 9], [15, 12, 13, 14]);
    };
}

/// Twenty rounds and the final addition.
macro_rules! blocks {
    ($start:expr) => {{
        let start: State = $start;
        let mut v = start;
        for _ in 0..10 {
            double_round!(v);
        }
        for i in 0..16 {
            v[i] = _mm512_add_epi32(v[i], start[i]);
        }
        v
    }};
}

pub(super) use {blocks, double_round, quarter_rounds, step};

/// The keystream of sixteen blocks, one a vector, in the order of lanes that [`gather`] and [`spread`] have.
///
/// Lane 4L + j of the state is block 4j + L: quarter L of every word vector holds four lanes, and after the words are
/// transposed within quarters, quarter L of each vector belongs to one block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn to_streams(v: &State) -> [__m512i; 16] {
    let a = transpose_words(v[0], v[1], v[2], v[3]);
    let b = transpose_words(v[4], v[5], v[6], v[7]);
    let c = transpose_words(v[8], v[9], v[10], v[11]);
    let d = transpose_words(v[12], v[13], v[14], v[15]);
    let mut out = [_mm512_setzero_si512(); 16];
    for j in 0..4 {
        let four = transpose_quarters(a[j], b[j], c[j], d[j]);
        out[4 * j..4 * j + 4].copy_from_slice(&four);
    }
    out
}

/// Loads 16 bytes from each of four places into the quarters of a vector.
///
/// # Safety
/// Each place must be readable for 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_quarters(places: [*const u8; 4]) -> __m512i {
    // SAFETY: by the caller's promise.
    let quarter = |i: usize| unsafe { _mm_loadu_si128(places[i].cast()) };
    let v = _mm512_castsi128_si512(quarter(0));
    let v = _mm512_inserti32x4::<1>(v, quarter(1));
    let v = _mm512_inserti32x4::<2>(v, quarter(2));
    _mm512_inserti32x4::<3>(v, quarter(3))
}

/// Four words of the state of sixteen blocks, each of which has them at a place of its own.
///
/// # Safety
/// Each place must be readable for 16 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn gather(place: impl Fn(usize) -> *const u8) -> [__m512i; 4] {
    // In pieces of the size in which nonces are written: a wider load would wait until those writes have reached the cache.
    let four = |i: usize| {
        // SAFETY: by the caller's promise.
        unsafe { load_quarters([place(4 * i), place(4 * i + 1), place(4 * i + 2), place(4 * i + 3)]) }
    };
    transpose_words(four(0), four(1), four(2), four(3))
}

/// The state with these halves of the keys, and these counters and nonces.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn state(low: [__m512i; 4], high: [__m512i; 4], last: [__m512i; 4]) -> State {
    let mut state = [_mm512_setzero_si512(); 16];
    for i in 0..4 {
        state[i] = _mm512_set1_epi32(CONSTANTS[i] as i32);
    }
    state[4..8].copy_from_slice(&low);
    state[8..12].copy_from_slice(&high);
    state[12..].copy_from_slice(&last);
    state
}

/// The state of sixteen successive blocks of one message; `nonce` is that of the first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn spread(key: &KeyWords, nonce: &[u32; 4]) -> State {
    let mut state = [_mm512_setzero_si512(); 16];
    for i in 0..4 {
        state[i] = _mm512_set1_epi32(CONSTANTS[i] as i32);
        state[12 + i] = _mm512_set1_epi32(nonce[i] as i32);
    }
    for i in 0..8 {
        state[4 + i] = _mm512_set1_epi32(key.0[i] as i32);
    }
    // Lane 4L + j is block 4j + L.
    let number = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    state[12] = _mm512_add_epi32(state[12], number);
    state
}

/// Fills in r and s of each task's record from block 0 of its keystream.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn one_time_keys(keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    let zero = KeyWords::default();
    let mut offered = 0;
    let clamp: [__m512i; 4] = core::array::from_fn(|i| {
        let half = CLAMP[i / 2];
        _mm512_set1_epi32((half >> (32 * (i % 2))) as i32)
    });
    for (tasks, records) in tasks.chunks(LANES).zip(records.chunks_mut(LANES)) {
        let mut lane_keys = [&zero; LANES];
        let mut nonces = [zero.0.as_ptr().cast::<u8>(); LANES];
        for ((task, key), nonce) in tasks.iter().zip(&mut lane_keys).zip(&mut nonces) {
            *key = keys.get(task.key);
            *nonce = task.nonce.as_ptr().cast();
        }
        // SAFETY: a key has 32 bytes.
        let low = unsafe { gather(|i| lane_keys[i].0.as_ptr().cast()) };
        // SAFETY: likewise.
        let high = unsafe { gather(|i| lane_keys[i].0[4..].as_ptr().cast()) };
        // SAFETY: the nonces of tasks and the words of a key have 16 bytes.
        let last = unsafe { gather(|i| nonces[i]) };
        let mut v = blocks!(state(low, high, last));
        for i in 0..4 {
            v[i] = _mm512_and_si512(v[i], clamp[i]);
        }
        // Only words 0 to 7 are wanted: 32 bytes of each block.
        let low = transpose_words(v[0], v[1], v[2], v[3]);
        let high = transpose_words(v[4], v[5], v[6], v[7]);
        let first_two = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
        let last_two = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
        let mut out = [_mm256_setzero_si256(); LANES];
        for j in 0..4 {
            let ab = _mm512_permutex2var_epi64(low[j], first_two, high[j]);
            let cd = _mm512_permutex2var_epi64(low[j], last_two, high[j]);
            out[4 * j] = _mm512_castsi512_si256(ab);
            out[4 * j + 1] = _mm512_extracti64x4_epi64::<1>(ab);
            out[4 * j + 2] = _mm512_castsi512_si256(cd);
            out[4 * j + 3] = _mm512_extracti64x4_epi64::<1>(cd);
        }
        for (record, half) in records.iter_mut().zip(&out) {
            // SAFETY: r and s are the first 32 bytes of the record, which is aligned to 64.
            unsafe { _mm256_store_si256(core::ptr::from_mut(record).cast(), *half) };
        }
        offered += LANES as u64;
    }
    Lanes {
        used: tasks.len() as u64,
        offered,
    }
}

/// A block about to be worked on.
#[derive(Clone, Copy)]
struct Block<'a> {
    /// Words 12 to 15 of its state.
    nonce: __m128i,
    key: &'a KeyWords,
    src: *const u8,
    dst: *mut u8,
    /// Bytes that there are of it, 1 to 64; 0 for a lane not in use.
    len: usize,
}

/// Whole blocks listed before they are worked on, and parts of blocks: with nothing but vector code in between, a processor
/// starts on the next sixteen while the last ones are on their way to memory. They are apart because masks cost time: on Intel.
const WHOLE: usize = 8 * LANES;
const PARTS: usize = 4 * LANES;

/// Blocks listed, of which the first `count` are set. Not filled in beforehand: for a few packets that would take longer
/// than they do.
struct List<'a, const N: usize> {
    blocks: [MaybeUninit<Block<'a>>; N],
    count: usize,
}

impl<'a, const N: usize> List<'a, N> {
    fn new() -> Self {
        List {
            blocks: [const { MaybeUninit::uninit() }; N],
            count: 0,
        }
    }

    /// Adds a block; true if that was the last one there is room for.
    #[inline(always)]
    fn push(&mut self, block: Block<'a>) -> bool {
        self.blocks[self.count].write(block);
        self.count += 1;
        self.count == N
    }

    /// The blocks, and no more from now on.
    #[inline(always)]
    fn take(&mut self) -> &[Block<'a>] {
        let count = core::mem::take(&mut self.count);
        // SAFETY: so many have been written.
        unsafe { self.blocks[..count].assume_init_ref() }
    }
}

/// Works on whole sixteens of blocks, as many as there are; gives the rest.
///
/// # Safety
/// Each `src` must be readable and each `dst` writable for its `len` bytes, at most 64. If not `MASKED`, `len` is 64.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn work_off<'b, 'a, const MASKED: bool>(listed: &'b [Block<'a>]) -> &'b [Block<'a>] {
    let (groups, rest) = listed.as_chunks::<LANES>();
    let Some(first) = groups.first() else { return rest };
    // SAFETY: a key has 32 bytes.
    let low = |of: &[Block<'_>; LANES]| unsafe { gather(|i| of[i].key.0.as_ptr().cast()) };
    // SAFETY: likewise.
    let high = |of: &[Block<'_>; LANES]| unsafe { gather(|i| of[i].key.0[4..].as_ptr().cast()) };
    // SAFETY: a nonce has 16 bytes.
    let last = |of: &[Block<'_>; LANES]| unsafe { gather(|i| core::ptr::from_ref(&of[i].nonce).cast()) };
    let mut start = state(low(first), high(first), last(first));
    for (i, group) in groups.iter().enumerate() {
        // The next state is gathered between the rounds: gathering keeps one of two ports busy, and all would wait for it.
        let next = groups.get(i + 1).unwrap_or(group);
        let mut v = start;
        for _ in 0..3 {
            double_round!(v);
        }
        let low = low(next);
        for _ in 0..2 {
            double_round!(v);
        }
        let high = high(next);
        for _ in 0..2 {
            double_round!(v);
        }
        let last = last(next);
        for _ in 0..3 {
            double_round!(v);
        }
        for i in 0..16 {
            v[i] = _mm512_add_epi32(v[i], start[i]);
        }
        start = state(low, high, last);
        for (block, stream) in group.iter().zip(&to_streams(&v)) {
            if MASKED {
                let mask = first_bytes(block.len);
                // SAFETY: only the bytes of the mask are read, and they are readable.
                let text = unsafe { _mm512_maskz_loadu_epi8(mask, block.src.cast()) };
                // SAFETY: only the bytes of the mask are written, and they are writable.
                unsafe { _mm512_mask_storeu_epi8(block.dst.cast(), mask, _mm512_xor_si512(text, *stream)) };
            } else {
                // SAFETY: 64 bytes are readable, by the caller's promise.
                let text = unsafe { _mm512_loadu_si512(block.src.cast()) };
                // SAFETY: 64 bytes are writable, likewise.
                unsafe { _mm512_storeu_si512(block.dst.cast(), _mm512_xor_si512(text, *stream)) };
            }
        }
    }
    rest
}

/// XORs sixteen vectors of keystream into 1024 bytes.
///
/// # Safety
/// `src` must be readable and `dst` writable for 1024 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) unsafe fn xor_kilobyte(streams: &[__m512i; 16], src: *const u8, dst: *mut u8) {
    for (i, stream) in streams.iter().enumerate() {
        // SAFETY: 16 times 64 bytes are readable.
        let text = unsafe { _mm512_loadu_si512(src.add(64 * i).cast()) };
        // SAFETY: 16 times 64 bytes are writable.
        unsafe { _mm512_storeu_si512(dst.add(64 * i).cast(), _mm512_xor_si512(text, *stream)) };
    }
}

/// XORs the keystream into every task that is not to be skipped.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn xor(memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    let zero = KeyWords::default();
    let (src, dst) = memory.pointers();
    let mut whole = List::<WHOLE>::new();
    // With room for what is left of the whole ones at the end.
    let mut parts = List::<{ PARTS + LANES }>::new();
    let mut lanes = Lanes::default();
    let mut worked = |blocks: usize| {
        lanes.used += blocks as u64;
        lanes.offered += blocks.next_multiple_of(LANES) as u64;
    };
    let one = _mm_set_epi32(0, 0, 0, 1);
    for task in tasks.iter().filter(|task| task.way != Use::Skip) {
        assert!(memory.holds(task), "a task outside its memory");
        let key = keys.get(task.key);
        // SAFETY: a nonce has 16 bytes.
        let mut nonce = unsafe { _mm_loadu_si128(task.nonce.as_ptr().cast()) };
        // SAFETY: the offsets are inside both arenas, as was asserted.
        let (mut from, mut to) = unsafe { (src.add(task.src()), dst.add(task.dst())) };
        let mut left = task.len();
        if left >= 64 * LANES {
            // SAFETY: the memory holds the task.
            let done = unsafe { kilobytes(key, &task.nonce, from, to, left) };
            worked(done / 64);
            nonce = _mm_add_epi32(nonce, _mm_set_epi32(0, 0, 0, (done / 64) as i32));
            (from, to) = (from.wrapping_add(done), to.wrapping_add(done));
            left -= done;
        }
        while left >= 64 {
            nonce = _mm_add_epi32(nonce, one);
            let block = Block {
                nonce,
                key,
                src: from,
                dst: to,
                len: 64,
            };
            if whole.push(block) {
                // SAFETY: each block is a part of a task, which the memory holds.
                unsafe { work_off::<false>(whole.take()) };
                worked(WHOLE);
            }
            (from, to) = (from.wrapping_add(64), to.wrapping_add(64));
            left -= 64;
        }
        if left > 0 {
            let block = Block {
                nonce: _mm_add_epi32(nonce, one),
                key,
                src: from,
                dst: to,
                len: left,
            };
            parts.push(block);
            if parts.count == PARTS {
                // SAFETY: as above.
                unsafe { work_off::<true>(parts.take()) };
                worked(PARTS);
            }
        }
    }
    // What is left of the whole ones goes with the parts.
    let listed = whole.take();
    // SAFETY: as above.
    let rest = unsafe { work_off::<false>(listed) };
    worked(listed.len() - rest.len());
    for block in rest {
        parts.push(*block);
    }
    let unused = Block {
        nonce: _mm_setzero_si128(),
        key: &zero,
        src,
        dst,
        len: 0,
    };
    worked(parts.count);
    while !parts.count.is_multiple_of(LANES) {
        parts.push(unused);
    }
    // SAFETY: as above; lanes past the last touch no memory.
    unsafe { work_off::<true>(parts.take()) };
    // The lists hold no secrets, but they lie between the frames that do and those that the caller clears.
    scrub_stack::<SCRUB_WORDS>();
    lanes
}

/// Words of stack that [`work_off`] and [`kilobytes`] use at most: 0.6 KiB by the compiled code, 4.4 KiB with debug assertions.
const SCRUB_WORDS: usize = if cfg!(debug_assertions) { 640 } else { 256 };

/// XORs the keystream into the whole kilobytes of a text; gives the bytes that they are. `nonce` is that of block 0.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn kilobytes(key: &KeyWords, nonce: &[u32; 4], src: *const u8, dst: *mut u8, len: usize) -> usize {
    let mut nonce = *nonce;
    nonce[0] = nonce[0].wrapping_add(1);
    let all = len / (64 * LANES) * 64 * LANES;
    for at in (0..all).step_by(64 * LANES) {
        let streams = to_streams(&blocks!(spread(key, &nonce)));
        // SAFETY: as many bytes are left.
        unsafe { xor_kilobyte(&streams, src.add(at), dst.add(at)) };
        nonce[0] = nonce[0].wrapping_add(LANES as u32);
    }
    all
}
