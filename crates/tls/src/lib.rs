//! TLS 1.3 for what rustls has no hooks for, and the record layer after any handshake; no I/O, no clock and no randomness of its own.
//!
//! # Where what is
//!
//! | Modules | What they hold |
//! |---|---|
//! | [`server`] | the server's side of a handshake: a plain one, and one that looks like another server's |
//! | [`records`] | the record layer after a handshake, ours or another library's, TLS 1.2 and 1.3 |
//! | [`template`] | hellos that look like those of a browser |
//! | [`client`] | the client's side of a handshake |
//! | [`reality`] | REALITY: the session id, who is let in, what a target looks like |
//! | [`schedule`] | the key schedule: every secret, the keys of records, Finished |
//! | [`codec`] | messages of the handshake, read and written; records in the clear |
//! | [`group`] | key agreement: X25519, and X25519 with ML-KEM-768 |
//! | [`suite`] | the three suites, and their hashes |
//! | [`error`] | what can go wrong, whose fault it is, and the alert that the peer is owed |
//!
//! # What it does not do
//!
//! No TLS 1.2 handshake, no resumption, no early data, no client certificates. Whoever needs these has rustls.
//!
//! # What holds everywhere
//!
//! - Random bytes are arguments. Every one of them is to come from a cryptographic generator. What is not drawn here is what
//!   aws-lc draws inside of signing with ML-DSA-65, which is hedged (FIPS 204 section 3.4).
//! - What a peer claims costs no memory: messages and records have bounds with names.
//! - Secrets are wiped, never printed, and compared in constant time.
//! - The first failure of a connection is its last.

#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod group;
pub mod reality;
pub mod records;
pub mod schedule;
pub mod server;
pub mod suite;
pub mod template;

pub use error::{Alert, Error};
pub use zeroize::Zeroizing;
