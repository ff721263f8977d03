//! Handshakes, records and further connections of a session, against vectors and against whoever sits between.
#![allow(clippy::unwrap_used)]

mod agreement;
mod attach;
mod common;
mod records;
mod rekey;
mod tampering;
mod vectors;
