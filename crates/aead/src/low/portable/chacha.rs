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
    let nonce = core::array::from_fn(|i| u32::from_le_bytes(nonce[i]));
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
    use crate::low::vectors;

    /// draft-irtf-cfrg-xchacha-03, section 2.2.1.
    #[test]
    fn hchacha20_of_the_draft() {
        let case = vectors::record("xchacha.txt", "2.2.1");
        let mut sub_key = [0; 32];
        hchacha20(&case.array("key"), &case.array("nonce"), &mut sub_key);
        assert_eq!(sub_key, case.array("sub-key"));
    }

    /// RFC 8439 section 2.3.2.
    #[test]
    fn block_of_the_rfc() {
        let case = vectors::record("rfc8439.txt", "2.3.2");
        let words = |name| -> Vec<u32> {
            let bytes = case.bytes(name);
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|word| u32::from_le_bytes(*word)).collect()
        };
        let nonce = words("nonce");
        let counter = case.text("counter").parse().unwrap();
        let mut stream = [0; 16];
        block(
            &words("key").try_into().unwrap(),
            &[counter, nonce[0], nonce[1], nonce[2]],
            &mut stream,
        );
        assert_eq!(stream[..], words("keystream"));
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
