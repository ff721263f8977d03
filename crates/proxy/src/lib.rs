//! The proxy as a library: sockets, TLS, transports, protocols, routing and relaying.
//!
//! [`settings::Settings`] say what a server does, [`settings::Settings::from_config`] makes them of a `config.json` that has
//! been read, and [`Server::start`] runs them. Wire formats come from `sealway-v2ray`, ciphers from `sealway-aead`.
//!
//! ```
//! use std::time::Duration;
//!
//! use sealway_proxy::{Server, settings::Settings};
//! use sealway_v2ray::config::{File, Options, load};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::TcpStream;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = br#"{
//!     "inbounds": [{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "socks"}],
//!     "outbounds": [{"protocol": "freedom"}]
//! }"#;
//! let loaded = load(&[File { name: "config.json", text }], &Options::default());
//! let config = loaded.config.ok_or("the configuration has errors")?;
//! let server = Server::start(Settings::from_config(&config)?).await?;
//!
//! let mut client = TcpStream::connect(server.addresses("in")[0]).await?;
//! client.write_all(&[5, 1, 0]).await?; // SOCKS 5, no password
//! let mut answer = [0; 2];
//! client.read_exact(&mut answer).await?;
//! assert_eq!(answer, [5, 0]); // agreed
//! drop(client);
//!
//! assert!(server.shutdown(Duration::from_secs(5)).await, "a connection did not end");
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a connection
//!
//! ```text
//! server ─ engine ─ inbound ─ dispatch ─ outbound ─ transport ─ stream ─ tls ─ settings
//!                             rules,     freedom,   ws,         layers,
//!                             log        vless, …   upgrade, …  relay
//! ```
//!
//! Each uses what stands to its right and knows nothing of its left. A connection passes three stages. *Begin*: PROXY
//! protocol, TLS, transport and the protocol's header, all under one deadline and in small buffers, for nobody knows yet who
//! is speaking; the inbound makes a *request* of it. *Dispatch*: the first rule that fits names an outbound, which dials.
//! *Carry*: payload moves both ways until both are done, in buffers that are held only while there is something in them, or
//! inside the kernel where nothing has to be opened or sealed.

#![forbid(unsafe_code)]

mod balance;
mod body;
mod bucket;
mod carrier;
mod check;
mod clock;
mod closing;
mod config;
mod control;
mod dial;
mod dispatch;
mod dns;
mod engine;
mod error;
mod files;
pub mod gateway;
pub mod geo;
mod inbound;
mod inherited;
mod keeper;
mod layer;
mod listen;
mod lists;
pub mod log;
mod loops;
mod meters;
mod monitor;
mod mux;
mod observe;
mod outbound;
mod people;
mod policy;
mod pool;
mod program;
mod proxy_protocol;
mod random;
mod reality;
mod relay;
mod replay;
mod resolver;
mod roads;
pub mod routes;
mod server;
pub mod settings;
mod sockopt;
mod stats;
mod stream;
mod tally;
mod tls;
mod transparent;
mod transport;
mod udp;
mod upstream;

pub use control::{BalancerState, Changes, Control, OnlineUser, Refusal, Routed, RuleName, Show, UserName};
pub use dispatch::watchers::{Decided, Decisions, Missed};
pub use error::Error;
pub use files::{can_append, readers};
pub use inherited::inherit;
pub use lists::ListSize;
pub use people::Refused;
pub use server::Server;
pub use settings::{Parts, Timeouts};
pub use stats::{Counter, Health, Stats};
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub use tls::fuzzing;
pub use tls::verify::chain_digest;
