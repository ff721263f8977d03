//! Kernels under one face. Private; the only place in this crate that may hold unsafe code.
//!
//! `portable` is plain Rust and stays readable: it is the oracle of everything faster.

pub(crate) mod portable;
