//! Bytes that look random and are the same on every machine.

use crate::stats::SplitMix64;

/// `len` bytes from a seed.
pub(super) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::stream(seed, len as u64);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
