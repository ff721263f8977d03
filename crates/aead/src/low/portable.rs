//! Plain Rust, no vectors, no unsafe.

mod chacha;

pub(crate) use chacha::hchacha20;
