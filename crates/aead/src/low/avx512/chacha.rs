//! ChaCha20, vertical: word w of sixteen blocks stands in vector w, and each lane may be a block of another message.

use core::arch::x86_64::*;
use core::mem::MaybeUninit;

use super::rounds::{State, blocks, double_round, quarter_rounds, step};
use super::shuffle::{first_bytes, transpose_quarters, transpose_words};
use crate::low::portable::{CLAMP, CONSTANTS};
use crate::low::{KeyWords, Keyring, Lanes, MacRecord, Memory, Task, Use, scrub_stack};

/// Blocks at a time.
const LANES: usize = 16;

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

/// Both halves of sixteen keys: words 4 to 11 of the state.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn gather_keys<'a>(key: impl Fn(usize) -> &'a KeyWords) -> [[__m512i; 4]; 2] {
    let half = |i: usize| {
        // SAFETY: a key has 32 bytes.
        unsafe { _mm256_loadu_si256(core::ptr::from_ref(key(i)).cast()) }
    };
    // Two keys of neighbouring lanes a row, so that quarters 0 and 1, and 2 and 3 of the state, come from the same rows.
    let row = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(i)), half(i + 1));
    let a = transpose_words(row(0), row(4), row(8), row(12));
    let b = transpose_words(row(2), row(6), row(10), row(14));
    [
        core::array::from_fn(|i| _mm512_shuffle_i32x4::<0x88>(a[i], b[i])),
        core::array::from_fn(|i| _mm512_shuffle_i32x4::<0xdd>(a[i], b[i])),
    ]
}

/// The state with these keys, and these counters and nonces.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn state([low, high]: [[__m512i; 4]; 2], last: [__m512i; 4]) -> State {
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

/// The state of block 0 of up to sixteen tasks; lanes beyond them have a key of zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn first_blocks(keys: Keyring<'_>, tasks: &[Task]) -> State {
    let zero = KeyWords::default();
    let mut lane_keys = [&zero; LANES];
    let mut nonces = [zero.0.as_ptr().cast::<u8>(); LANES];
    for ((task, key), nonce) in tasks.iter().zip(&mut lane_keys).zip(&mut nonces) {
        *key = keys.get(task.key);
        *nonce = task.nonce.as_ptr().cast();
    }
    // SAFETY: the nonces of tasks and the words of a key have 16 bytes.
    let last = unsafe { gather(|i| nonces[i]) };
    state(gather_keys(|i| lane_keys[i]), last)
}

/// Puts r and s, the first 32 bytes of each block, into the records.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn put_keys(v: &State, records: &mut [MacRecord]) {
    let clamped = |i: usize| {
        let clamp = (CLAMP[i / 2] >> (32 * (i % 2))) as i32;
        _mm512_and_si512(v[i], _mm512_set1_epi32(clamp))
    };
    let low = transpose_words(clamped(0), clamped(1), clamped(2), clamped(3));
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
}

/// Fills in r and s of each task's record from block 0 of its keystream.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn one_time_keys(keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    for (tasks, records) in tasks.chunks(2 * LANES).zip(records.chunks_mut(2 * LANES)) {
        if tasks.len() <= LANES {
            put_keys(&blocks!(first_blocks(keys, tasks)), records);
            continue;
        }
        let (tasks_a, tasks_b) = tasks.split_at(LANES);
        let (records_a, records_b) = records.split_at_mut(LANES);
        let (v, w) = blocks!(first_blocks(keys, tasks_a), first_blocks(keys, tasks_b));
        put_keys(&v, records_a);
        put_keys(&w, records_b);
    }
    Lanes {
        used: tasks.len() as u64,
        offered: tasks.len().next_multiple_of(LANES) as u64,
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
        let written = &self.blocks[..core::mem::take(&mut self.count)];
        // SAFETY: these have been written, and a `MaybeUninit` is laid out as what it holds.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }
}

/// The state of sixteen blocks.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
fn listed_blocks(group: &[Block<'_>; LANES]) -> State {
    // SAFETY: a nonce has 16 bytes.
    let last = unsafe { gather(|i| core::ptr::from_ref(&group[i].nonce).cast()) };
    state(gather_keys(|i| group[i].key), last)
}

/// XORs the keystream of sixteen blocks into their texts.
///
/// # Safety
/// As for [`work_off`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn xor_listed<const MASKED: bool>(v: &State, group: &[Block<'_>; LANES]) {
    for (block, stream) in group.iter().zip(&to_streams(v)) {
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

/// Works on whole sixteens of blocks, two at a time while there are two; gives the rest.
///
/// # Safety
/// Each `src` must be readable and each `dst` writable for its `len` bytes, at most 64. If not `MASKED`, `len` is 64.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn work_off<'b, 'a, const MASKED: bool>(listed: &'b [Block<'a>]) -> &'b [Block<'a>] {
    let (groups, rest) = listed.as_chunks::<LANES>();
    let (pairs, single) = groups.as_chunks::<2>();
    for [a, b] in pairs {
        let (v, w) = blocks!(listed_blocks(a), listed_blocks(b));
        // SAFETY: by the caller's promise.
        unsafe { xor_listed::<MASKED>(&v, a) };
        // SAFETY: likewise.
        unsafe { xor_listed::<MASKED>(&w, b) };
    }
    for group in single {
        // SAFETY: by the caller's promise.
        unsafe { xor_listed::<MASKED>(&blocks!(listed_blocks(group)), group) };
    }
    rest
}

/// Bytes of sixteen blocks.
const KILOBYTE: usize = 64 * LANES;

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
        if left >= 2 * KILOBYTE {
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
const SCRUB_WORDS: usize = if cfg!(debug_assertions) { 1280 } else { 640 };

/// XORs the keystream into the whole kilobytes of a text; gives the bytes that they are. `nonce` is that of block 0.
///
/// # Safety
/// `src` must be readable and `dst` writable for `len` bytes.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
unsafe fn kilobytes(key: &KeyWords, nonce: &[u32; 4], src: *const u8, dst: *mut u8, len: usize) -> usize {
    let mut nonce = *nonce;
    nonce[0] = nonce[0].wrapping_add(1);
    let mut next = || {
        let state = spread(key, &nonce);
        nonce[0] = nonce[0].wrapping_add(LANES as u32);
        state
    };
    let all = len / (2 * KILOBYTE) * 2 * KILOBYTE;
    for at in (0..all).step_by(2 * KILOBYTE) {
        let (v, w) = blocks!(next(), next());
        // SAFETY: as many bytes are left.
        unsafe { xor_kilobyte(&to_streams(&v), src.add(at), dst.add(at)) };
        // SAFETY: likewise.
        unsafe { xor_kilobyte(&to_streams(&w), src.add(at + KILOBYTE), dst.add(at + KILOBYTE)) };
    }
    all
}
