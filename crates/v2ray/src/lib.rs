//! The V2Ray family on the wire, its `config.json` and its share links.
//!
//! Nothing here opens a socket, reads a clock or draws a random number: bytes, times and random bytes come in as
//! arguments, and bytes and events go out. Needing more input is a normal result ([`Step::More`]), so every parser can
//! be driven by sockets, by a test that feeds one byte at a time, or by a fuzzer.

#![forbid(unsafe_code)]

pub mod address;
pub mod config;
mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod httpupgrade;
pub mod id;
pub mod link;
pub mod proxy_protocol;
pub mod socks;
mod step;
pub mod vless;
pub mod vmess;
pub mod ws;

pub use address::{Address, Destination, Domain, Network};
pub use error::{Error, Fault, Protocol};
pub use id::{UserId, same_secret};
pub use step::Step;
