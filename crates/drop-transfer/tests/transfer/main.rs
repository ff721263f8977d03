//! Trees and whole transfers: what a scan finds, what a destination takes, and how both ends get over a break.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod common;
mod contain;
mod disks;
mod endings;
mod entries;
mod holes;
mod policies;
mod replace;
mod resume;
mod sampled;
mod settle;
mod source;
mod support;
mod tree;
mod whole;
