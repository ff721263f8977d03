//! Load on a path: a server at its end, and a client that asks it in a closed or an open loop and checks every byte.
//!
//! Knows nothing of what lies between: it takes an address to connect to.

pub(crate) mod generator;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod pacer;
pub(crate) mod poller;
pub(crate) mod script;
pub(crate) mod scripts;
pub(crate) mod sink;
pub(crate) mod sources;
pub(crate) mod wire;

#[cfg(test)]
mod fakes;
#[cfg(test)]
mod tests;
