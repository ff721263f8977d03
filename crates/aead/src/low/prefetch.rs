//! A hint to the cache.

/// Bytes asked for at a time.
const PIECE: usize = 1024;

/// Asks for memory that is soon to be written, so that whoever writes it need not wait: whole kilobytes of it and at most four, and nothing
/// where there is no such hint. Neither reads nor writes.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    for piece in bytes.as_chunks::<PIECE>().0.iter().take(4) {
        lines(piece);
    }
}

/// One hint a line, in as many instructions: a loop of unknown length would cost more than the hints.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
#[inline(always)]
fn lines(piece: &[u8; PIECE]) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for line in piece.as_chunks::<64>().0 {
        // SAFETY: any machine with SSE2 has the instruction, which accesses nothing that a program could tell.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
fn lines(_: &[u8; PIECE]) {}
