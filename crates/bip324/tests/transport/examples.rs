//! The examples do what they say.

#[cfg(feature = "std")]
#[path = "../../examples/blocking.rs"]
mod blocking;
#[path = "../../examples/sans_io.rs"]
mod sans_io;

#[test]
fn without_io() {
    sans_io::run().unwrap();
}

#[cfg(feature = "std")]
#[test]
fn over_std() {
    blocking::run().unwrap();
}
