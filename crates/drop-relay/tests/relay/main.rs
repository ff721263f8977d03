//! A relay and those who come to it: two ends, strangers, and who waits too long.
#![allow(clippy::unwrap_used)]

mod ends;
mod limits;
mod meetings;
mod support;
