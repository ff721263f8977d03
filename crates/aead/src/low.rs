//! Kernels under one face. Private; the only place in this crate that may hold unsafe code.
//!
//! `portable` is plain Rust and stays readable: it is the oracle of everything faster. The others take a proof token of
//! [`crate::cpu`] with every call, so none can run on a machine that lacks what it needs. All of them give the same bytes.
//!
//! Work comes as [`Task`]s, which say where in a [`Memory`] a message lies. A kernel checks each task against the memory
//! before it touches it, so no task, however wrong, can make it read or write elsewhere.

#![allow(unsafe_code)]

pub(crate) mod portable;
mod types;

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

pub(crate) use types::{KeyWords, Keyring, MacRecord, Task, Use, scrub_stack, wipe};
pub use types::{Lanes, Memory};
