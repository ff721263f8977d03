//! LocalSend: files sent to and received from devices that have its app, with nothing installed on them.
//!
//! Protocol 2.0 to 2.2: JSON over HTTP/1.1 over TLS with certificates that nobody signed, and announcements by multicast. The published
//! document is that of version 2.1; 2.2 is what version 1.18 of the app does.
//!
//! # Map
//!
//! - Without I/O: [`message`] (JSON), [`query`], [`names`], [`fingerprint`], [`pin`] (guesses), [`session`] (the one slot of a receiver),
//!   [`devices`] (who was heard of).
//! - This end: [`node`] is what others see of it, [`server`] listens, `routes` answers; the certificate and both verifiers are in `tls`;
//!   [`discover`] hears and announces; [`favourites`] are remembered devices, [`find`] goes from a name to a device.
//! - The roles: [`receive`], [`send`], [`pull`]; files come to their places through `landing`.

#![forbid(unsafe_code)]

mod calls;
mod client;
pub mod devices;
pub mod discover;
mod error;
pub mod favourites;
pub mod find;
pub mod fingerprint;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod landing;
pub mod message;
pub mod names;
pub mod node;
pub mod pin;
pub mod pull;
pub mod query;
pub mod receive;
mod routes;
pub mod send;
pub mod server;
pub mod session;
mod stream;
mod tls;

pub use error::Error;
pub use stream::Place;
