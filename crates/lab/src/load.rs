//! Load on a route: a server at its end, and a client that asks it in a closed or an open loop and checks every byte.
//!
//! Generator and sink know nothing of what lies between: they take an address to connect to. [`cells`] put them at the
//! ends of a [`crate::route`].

mod advice;
pub(crate) mod cells;
pub(crate) mod generator;
pub(crate) mod lens;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod pacer;
pub(crate) mod script;
pub(crate) mod scripts;
pub(crate) mod sink;
pub(crate) mod sources;
pub(crate) mod wire;
pub(crate) mod workload;

#[cfg(test)]
mod fakes;
#[cfg(all(test, target_os = "linux"))]
mod guest_tests;
#[cfg(test)]
mod tests;
