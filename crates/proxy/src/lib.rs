//! Sockets, TLS, WebSocket, relay and routing of the proxy.

#![forbid(unsafe_code)]

mod access;
mod body;
mod config;
mod dial;
mod engine;
mod error;
mod guard;
mod inbound;
mod layer;
mod outbound;
mod pool;
mod proxy_protocol;
mod random;
mod relay;
mod router;
mod server;
pub mod settings;
mod sock;
mod splice;
mod stats;
mod stream;
mod tls;
mod transport;
mod udp;
mod upgrade;
mod ws;

pub use error::Error;
pub use relay::Timeouts;
pub use server::Server;
pub use stats::{Counter, Stats};
