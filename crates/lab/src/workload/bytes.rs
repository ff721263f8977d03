//! Bytes that look random and are the same on every machine, and nonces that count.

use sealway_aead::Suite;

use crate::stats::SplitMix64;

/// `len` bytes from a seed.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::stream(seed, len as u64);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Nonce number `i` of a script: a fixed field, then the number big-endian.
#[inline(always)]
pub(crate) fn nonce(buffer: &mut [u8; Suite::MAX_NONCE_LEN], len: usize, i: usize) -> &[u8] {
    buffer[len - 8..len].copy_from_slice(&(i as u64).to_be_bytes());
    &buffer[..len]
}
