//! Sockets, TLS, WebSocket, relay and routing of the proxy.
//!
//! [`settings::Settings`] say what a server does, [`settings::Settings::from_config`] makes them of a `config.json` that has
//! been read, and [`Server::start`] runs them. Wire formats come from `sealway-v2ray`, ciphers from `sealway-aead`.
//!
//! A connection passes three stages. *Begin*: PROXY protocol, TLS, HTTP upgrade and the protocol's header, all under one
//! deadline and in small buffers, for nobody knows yet who is speaking. *Dispatch*: the first rule that fits names an
//! outbound, which dials. *Carry*: payload moves both ways until both are done, in buffers that are held only while there is
//! something in them, or inside the kernel where nothing has to be opened or sealed.

#![forbid(unsafe_code)]

mod body;
mod check;
mod clock;
mod closing;
mod config;
mod dial;
mod dispatch;
mod engine;
mod error;
mod files;
mod inbound;
mod layer;
mod listen;
pub mod log;
mod loops;
mod outbound;
mod policy;
mod pool;
mod proxy_protocol;
mod random;
mod relay;
mod replay;
mod resolver;
mod server;
pub mod settings;
mod sockopt;
mod stats;
mod stream;
mod tls;
mod transport;
mod udp;

use sealway_net::sock;

pub use error::Error;
pub use files::{can_append, readers};
pub use server::Server;
pub use settings::{Parts, Timeouts};
pub use stats::{Counter, Stats};
