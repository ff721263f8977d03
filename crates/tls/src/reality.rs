//! REALITY, as pure code.

pub mod certificate;
