//! Sockets, TLS, WebSocket, relay and routing of the proxy.

#![forbid(unsafe_code)]

mod dial;
mod error;
mod guard;
mod layer;
mod pool;
mod relay;
pub mod settings;
mod sock;
mod splice;
mod stats;
mod stream;
mod tls;
mod udp;
mod ws;

pub use error::Error;
pub use relay::Timeouts;
pub use stats::{Counter, Stats};
