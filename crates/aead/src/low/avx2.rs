//! AVX2: twice eight blocks of ChaCha20 at a time, Poly1305 for four messages at a time.

mod chacha;
mod mac;

use crate::cpu::HaveAvx2;
use crate::low::{Keyring, Lanes, MacRecord, Memory, Task};

/// Fills in r and s of each task's record from block 0 of its keystream.
#[inline]
pub(crate) fn one_time_keys(_: HaveAvx2, keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { chacha::one_time_keys(keys, tasks, records) }
}

/// XORs the keystream into every task that is not to be skipped.
#[inline]
pub(crate) fn xor(_: HaveAvx2, memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { chacha::xor(memory, keys, tasks) }
}

/// Computes the tags of the tasks named in `order`.
#[inline]
pub(crate) fn macs(
    _: HaveAvx2,
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { mac::macs(memory, tasks, order, records, tags) }
}
