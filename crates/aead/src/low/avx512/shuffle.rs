//! Transpositions and masks.

use core::arch::x86_64::*;

/// Transposes four rows of four 128-bit pieces.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn transpose_quarters(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let (ab_low, cd_low) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d));
    let (ab_high, cd_high) = (_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(ab_low, cd_low),
        _mm512_shuffle_i32x4::<0xdd>(ab_low, cd_low),
        _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
        _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
    ]
}

/// Transposes, in each 128-bit piece, four rows of four words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn transpose_words(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    let (ab_low, cd_low) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
    let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab_low, cd_low),
        _mm512_unpackhi_epi64(ab_low, cd_low),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Transposes eight rows of eight 64-bit words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512ifma")]
pub(super) fn transpose_longs(rows: &[__m512i; 8]) -> [__m512i; 8] {
    let even = transpose_quarters(
        _mm512_unpacklo_epi64(rows[0], rows[1]),
        _mm512_unpacklo_epi64(rows[2], rows[3]),
        _mm512_unpacklo_epi64(rows[4], rows[5]),
        _mm512_unpacklo_epi64(rows[6], rows[7]),
    );
    let odd = transpose_quarters(
        _mm512_unpackhi_epi64(rows[0], rows[1]),
        _mm512_unpackhi_epi64(rows[2], rows[3]),
        _mm512_unpackhi_epi64(rows[4], rows[5]),
        _mm512_unpackhi_epi64(rows[6], rows[7]),
    );
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// The mask of the first `count` bytes of a vector, at most 64.
#[inline(always)]
pub(super) fn first_bytes(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}
