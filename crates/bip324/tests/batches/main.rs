//! Transports that seal and open the packets of many connections together, on the processor and beside it.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used)]

#[path = "../common/both.rs"]
mod both;
#[path = "../common/mod.rs"]
mod common;
mod crew;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(feature = "cuda", target_os = "linux"))]
mod devices;
#[path = "../common/elsewhere.rs"]
mod elsewhere;
mod equal;
mod executor;
mod faults;
mod measure;
#[cfg(feature = "cuda")]
mod slabs;
#[cfg(feature = "cuda")]
#[path = "../../../cuda/tests/support/mod.rs"]
mod support;
