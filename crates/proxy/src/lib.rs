//! Sockets, TLS, WebSocket, relay and routing of the proxy.

#![forbid(unsafe_code)]

mod error;
mod layer;
mod pool;
mod relay;
mod sock;
mod splice;
mod stats;
mod stream;
mod tls;
mod ws;

pub use error::Error;
