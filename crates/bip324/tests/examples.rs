//! The examples do what they say.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../examples/blocking.rs"]
mod blocking;
#[path = "../examples/sans_io.rs"]
mod sans_io;
#[cfg(feature = "tokio")]
#[path = "../examples/tokio.rs"]
mod with_tokio;

#[test]
fn without_io() {
    sans_io::run().unwrap();
}

#[test]
fn over_std() {
    blocking::run().unwrap();
}

#[cfg(feature = "tokio")]
#[test]
fn over_tokio() {
    with_tokio::run().unwrap();
}
