//! The management API of the proxy over gRPC, as panels of the V2Ray family call it.
//!
//! [`Api`] answers on connections that it is handed, and [`Api::wire`] has the proxy hand them to it: those that rules lead to
//! its tag, and those that come to a listener of its own, which is an inbound like any other. So TLS, certificates of clients,
//! unix sockets and their rights are what they are elsewhere in the proxy.
//!
//! [`compiled`] reads and writes the messages that stand for inbounds, outbounds, users and rules; [`client`] is the other end.

#![forbid(unsafe_code)]

pub mod client;
pub mod compiled;
pub mod describe;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod options;
pub mod proto;
mod serve;
mod services;
mod wipe;
mod wire;

pub use options::{LISTENER, Options, Service};
pub use wire::Api;
