//! The engine on devices that are not there, and the kernels it starts as plain C++, which is compiled once for all tests here.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a failed test")]

mod batches;
mod failures;
mod kernels;
mod low_level;
mod slabs;
#[path = "../support/mod.rs"]
mod support;
