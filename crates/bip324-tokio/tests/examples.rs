//! The example does what it says.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../examples/echo.rs"]
mod echo;

#[test]
fn over_tcp() {
    echo::run().unwrap();
}
