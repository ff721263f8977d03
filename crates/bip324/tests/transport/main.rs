//! One connection after the other: handshakes, packets and limits, against vectors and other implementations.
#![allow(clippy::unwrap_used)]

#[cfg(feature = "std")]
mod blocking;
#[cfg(all(unix, feature = "std"))]
mod btcd;
#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code)]
mod examples;
mod handshake;
mod interop;
mod limits;
mod packets;
#[cfg(feature = "std")]
mod splits;
mod vectors;
