//! The library underneath: AES-GCM, and ChaCha20-Poly1305 where it is faster than our own kernels.
//!
//! Only here does the crate touch it. Without feature `aes` there is none: no key of it can be made.

#[cfg(not(feature = "aes"))]
mod absent;
#[cfg(feature = "aes")]
mod aws_lc;

#[cfg(not(feature = "aes"))]
pub(crate) use absent::LibraryKey;
#[cfg(feature = "aes")]
pub(crate) use aws_lc::LibraryKey;
