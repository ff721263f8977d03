//! AVX-512: twice sixteen blocks of ChaCha20 at a time, Poly1305 with the 52-bit multiply (IFMA) for eight messages at a time.

mod chacha;
mod long;
mod mac;
mod one;
mod rounds;
mod shuffle;

use crate::cpu::HaveAvx512Ifma;
use crate::low::{KeyWords, Keyring, Lanes, MacRecord, Memory, Task, Text, Use};

/// Fills in r and s of each task's record from block 0 of its keystream.
#[inline]
pub(crate) fn one_time_keys(_: HaveAvx512Ifma, keys: Keyring<'_>, tasks: &[Task], records: &mut [MacRecord]) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { chacha::one_time_keys(keys, tasks, records) }
}

/// XORs the keystream into every task that is not to be skipped.
#[inline]
pub(crate) fn xor(_: HaveAvx512Ifma, memory: &mut Memory<'_>, keys: Keyring<'_>, tasks: &[Task]) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { chacha::xor(memory, keys, tasks) }
}

/// Computes the tags of the tasks named in `order`.
#[inline]
pub(crate) fn macs(
    _: HaveAvx512Ifma,
    memory: &Memory<'_>,
    tasks: &[Task],
    order: &[u32],
    records: &[MacRecord],
    tags: &mut [[u8; 16]],
) -> Lanes {
    // SAFETY: the token proves the features that the function needs.
    unsafe { mac::macs(memory, tasks, order, records, tags) }
}

/// Seals or opens one message; gives the tag that the ciphertext should have.
///
/// When opening, the text is decrypted whether authentic or not: the caller compares the tags and wipes.
#[inline]
pub(crate) fn one(
    _: HaveAvx512Ifma,
    key: &KeyWords,
    nonce: &[u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    // SAFETY: the token proves the features that the function needs.
    unsafe { one::run(key, nonce, aad, text, way) }
}
