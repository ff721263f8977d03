//! Servers of ours, plain and in the shape of others, and the clients of others.
#![allow(clippy::unwrap_used)]

mod common;
mod programs;
mod reality;
mod shape;
mod with_rustls;
