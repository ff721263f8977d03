//! Suites as callers have them: one message, batches of messages, keys and what is derived, against vectors and other libraries.
#![allow(clippy::unwrap_used)]

mod batch;
#[path = "../common/mod.rs"]
mod common;
mod derivation;
mod differential;
#[path = "../common/fuzzing.rs"]
mod fuzzing;
mod keys;
mod keystream;
mod messages;
mod properties;
#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, unreachable_pub)]
mod replay;
mod small_batches;
mod stream;
mod vectors;
mod wycheproof;
