//! The ChaCha20 permutation and HChaCha20.

use crate::low::{KeyWords, wipe};

/// "expand 32-byte k", the constants of RFC 8439 section 2.3.
pub(crate) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// One quarter round (RFC 8439 section 2.1).
#[inline(always)]
fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(16);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(12);
    state[a] = state[a].wrapping_add(state[b]);
    state[d] = (state[d] ^ state[a]).rotate_left(8);
    state[c] = state[c].wrapping_add(state[d]);
    state[b] = (state[b] ^ state[c]).rotate_left(7);
}

/// Twenty rounds: ten times four columns and four diagonals (RFC 8439 section 2.3).
#[inline(always)]
fn permute(state: &mut [u32; 16]) {
    for _ in 0..10 {
        quarter_round(state, 0, 4, 8, 12);
        quarter_round(state, 1, 5, 9, 13);
        quarter_round(state, 2, 6, 10, 14);
        quarter_round(state, 3, 7, 11, 15);
        quarter_round(state, 0, 5, 10, 15);
        quarter_round(state, 1, 6, 11, 12);
        quarter_round(state, 2, 7, 8, 13);
        quarter_round(state, 3, 4, 9, 14);
    }
}

/// The state of a block before the rounds (RFC 8439 section 2.3).
#[inline(always)]
fn initial(key: &[u32; 8], nonce: &[u32; 4]) -> [u32; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&CONSTANTS);
    state[4..12].copy_from_slice(key);
    state[12..].copy_from_slice(nonce);
    state
}

/// One block of keystream; `nonce` is the counter and the three words of the nonce.
pub(crate) fn block(key: &[u32; 8], nonce: &[u32; 4], stream: &mut [u32; 16]) {
    let start = initial(key, nonce);
    *stream = start;
    permute(stream);
    for (word, first) in stream.iter_mut().zip(&start) {
        *word = word.wrapping_add(*first);
    }
}

/// Derives the sub-key of XChaCha20 from a key and the first 16 bytes of its nonce (draft-irtf-cfrg-xchacha-03, 2.2).
///
/// The ChaCha20 permutation without the final addition; words 0-3 and 12-15 are the result. Not inlined: it keeps words of the
/// key on the stack, in a frame that callers clear.
#[inline(never)]
pub(crate) fn hchacha20_words(key: &[u32; 8], nonce: &[u32; 4], sub_key: &mut [u32; 8]) {
    let mut state = initial(key, nonce);
    permute(&mut state);
    sub_key[..4].copy_from_slice(&state[..4]);
    sub_key[4..].copy_from_slice(&state[12..]);
    wipe(&mut state);
}

/// The same on bytes.
pub(crate) fn hchacha20(key: &[u8; 32], nonce: &[u8; 16], sub_key: &mut [u8; 32]) {
    let mut words = KeyWords::default();
    words.set(key);
    let nonce = nonce.as_chunks::<4>().0;
    let nonce = std::array::from_fn(|i| u32::from_le_bytes(nonce[i]));
    let mut result = KeyWords::default();
    hchacha20_words(&words.0, &nonce, &mut result.0);
    for (bytes, word) in sub_key.as_chunks_mut::<4>().0.iter_mut().zip(&result.0) {
        *bytes = word.to_le_bytes();
    }
    wipe(&mut words.0);
    wipe(&mut result.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// draft-irtf-cfrg-xchacha-03, section 2.2.1.
    #[test]
    fn hchacha20_of_the_draft() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let nonce = [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0, 0x31, 0x41, 0x59, 0x27];
        let mut sub_key = [0; 32];
        hchacha20(&key, &nonce, &mut sub_key);
        let want = [
            0x82, 0x41, 0x3b, 0x42, 0x27, 0xb2, 0x7b, 0xfe, 0xd3, 0x0e, 0x42, 0x50, 0x8a, 0x87, 0x7d, 0x73, 0xa0, 0xf9,
            0xe4, 0xd5, 0x8a, 0x74, 0xa8, 0x53, 0xc1, 0x2e, 0xc4, 0x13, 0x26, 0xd3, 0xec, 0xdc,
        ];
        assert_eq!(sub_key, want);
    }

    /// RFC 8439 section 2.3.2.
    #[test]
    fn block_of_the_rfc() {
        let key = std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|j| (4 * i + j) as u8)));
        let mut stream = [0; 16];
        block(&key, &[1, 0x0900_0000, 0x4a00_0000, 0], &mut stream);
        assert_eq!(stream[..4], [0xe4e7_f110, 0x1559_3bd1, 0x1fdd_0f50, 0xc471_20a3]);
        assert_eq!(stream[12..], [0xd19c_12b5, 0xb94e_16de, 0xe883_d0cb, 0x4e3c_50a2]);
    }

    /// RFC 8439 section 2.1.1.
    #[test]
    fn quarter_round_of_the_rfc() {
        let mut state = [0u32; 16];
        state[..4].copy_from_slice(&[0x1111_1111, 0x0102_0304, 0x9b8d_6f43, 0x0123_4567]);
        quarter_round(&mut state, 0, 1, 2, 3);
        assert_eq!(state[..4], [0xea2a_92f4, 0xcb1c_f8ce, 0x4581_472e, 0x5881_c4bb]);
    }
}
