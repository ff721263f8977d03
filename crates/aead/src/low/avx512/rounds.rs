//! The rounds of ChaCha20, of one state or of two side by side.
//!
//! Two states fill all 32 registers and nothing else fits, but where a vector operation takes two cycles and four go on at a time, as on
//! Zen 5, one state keeps only half of the units busy: its four quarter rounds are four chains.
//!
//! All of this is macros because functions with target features cannot be marked `inline(always)`, and a call would put the vectors
//! through memory.

use core::arch::x86_64::*;

/// One state of sixteen blocks: word w of all of them in vector w.
pub(super) type State = [__m512i; 16];

/// One step of four quarter rounds side by side: `a += b; d = (d ^ a) <<< N`, for each of four, in each state.
///
/// One after the other, not all additions first: rotations have one port, and Intel's processors choose ports in the order
/// of the program. Spread out, they leave the other port less idle: by three in a hundred on Emerald Rapids.
macro_rules! step {
    ([$($v:ident),+], $a:expr, $b:expr, $d:expr, $n:literal) => {
        for i in 0..4 {
            $($v[$a[i]] = _mm512_add_epi32($v[$a[i]], $v[$b[i]]);)+
            $($v[$d[i]] = _mm512_rol_epi32::<$n>(_mm512_xor_si512($v[$d[i]], $v[$a[i]]));)+
        }
    };
}

/// The four quarter rounds of one half of a double round, side by side so that their chains overlap.
macro_rules! quarter_rounds {
    ($v:tt, $a:expr, $b:expr, $c:expr, $d:expr) => {
        step!($v, $a, $b, $d, 16);
        step!($v, $c, $d, $b, 12);
        step!($v, $a, $b, $d, 8);
        step!($v, $c, $d, $b, 7);
    };
}

/// Four columns, then four diagonals, of each state.
macro_rules! double_round {
    ($v:tt) => {
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
            double_round!([v]);
        }
        for i in 0..16 {
            v[i] = _mm512_add_epi32(v[i], start[i]);
        }
        v
    }};
    ($first:expr, $second:expr) => {{
        let (first, second): (State, State) = ($first, $second);
        let (mut v, mut w) = (first, second);
        for _ in 0..10 {
            double_round!([v, w]);
        }
        for i in 0..16 {
            v[i] = _mm512_add_epi32(v[i], first[i]);
        }
        for i in 0..16 {
            w[i] = _mm512_add_epi32(w[i], second[i]);
        }
        (v, w)
    }};
}

pub(super) use {blocks, double_round, quarter_rounds, step};
