//! Kernels under one face. Private; the only place in this crate that may hold unsafe code.
//!
//! `portable` is plain Rust and stays readable: it is the oracle of everything faster. The others take a proof token of
//! [`crate::cpu`] with every call, so none can run on a machine that lacks what it needs. All of them give the same bytes.
//!
//! Targets whose compiler may not use vectors at all, those of kernels and firmware, have plain code alone: their `target_feature` lacks
//! SSE2 or Neon, which every other one for the architecture has.
//!
//! Work comes as [`Task`]s, which say where in a [`Memory`] a message lies. A kernel checks each task against the memory
//! before it touches it, so no task, however wrong, can make it read or write elsewhere.

#![allow(unsafe_code)]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "pointer arithmetic and the access it is for stand on one ground; vector arithmetic is counted as unsafe too"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "words and limbs are named by their index in several arrays at once"
)]

use crate::cpu::HaveAvx512Ifma;

pub(crate) mod portable;
mod prefetch;
#[cfg(any(test, not(feature = "aes")))]
mod single;
#[cfg_attr(
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon")
    )),
    allow(dead_code, reason = "some of it is for vectors")
)]
mod types;

#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../tests/common/vectors.rs"]
mod vectors;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx2;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) mod avx512;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
pub(crate) mod neon;

pub use prefetch::prefetch;
pub(crate) use types::{KeyWords, Keyring, MacRecord, Task, Text, Use, scrub_stack, wipe};
pub use types::{Lanes, Memory};

/// A leaf of what the CPU says of itself.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[allow(unused_unsafe, reason = "the intrinsic is a safe function since Rust 1.94")]
pub(crate) fn cpuid(leaf: u32) -> core::arch::x86_64::CpuidResult {
    // SAFETY: every CPU for x86-64 has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::__cpuid(leaf) }
}

/// Which kernels work on one message: with the library underneath those for AVX-512, elsewhere it is at least as fast.
#[cfg(feature = "aes")]
pub(crate) type Single = HaveAvx512Ifma;

#[cfg(not(feature = "aes"))]
pub(crate) use single::{Single, one};

/// The kernels for AVX-512 as those for one message.
#[inline(always)]
pub(crate) const fn wide(have: HaveAvx512Ifma) -> Single {
    #[cfg(feature = "aes")]
    return have;
    #[cfg(not(feature = "aes"))]
    Single::Avx512(have)
}

/// Seals or opens one message with the widest kernels; gives the tag that the ciphertext should have.
///
/// When opening, the text is decrypted whether authentic or not: the caller compares the tags and wipes.
#[cfg(feature = "aes")]
#[inline]
pub(crate) fn one(
    have: Single,
    key: &KeyWords,
    nonce: &[u32; 4],
    aad: &[u8],
    text: &mut Text<'_>,
    way: Use,
) -> [u8; 16] {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return avx512::one(have, key, nonce, aad, text, way);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    {
        let _ = have;
        portable::one(key, nonce, aad, text, way)
    }
}
