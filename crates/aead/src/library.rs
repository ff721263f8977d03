//! The library underneath: AES-GCM, and ChaCha20-Poly1305 where it is faster than our own kernels.
//!
//! Only here does the crate touch it. Without feature `aes` there is none: no key of it can be made.

#[cfg(not(feature = "aes"))]
#[path = "library/absent.rs"]
mod face;
#[cfg(feature = "aes")]
#[path = "library/aws_lc.rs"]
mod face;

pub(crate) use face::LibraryKey;
