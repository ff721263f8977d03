//! Files sent, received, shared and mounted over a sealed session.
//!
//! # Which module does what
//!
//! `link` makes a connection and a session of an address: it dials, listens or meets at a relay, and brings up more data
//! connections for a session that stands. `wire` is what goes over them: control messages and records of file content.
//! `send` and `receive` are the two ends of a transfer. `groups` hashes files piece by piece, in any order, to the hash
//! that `b3sum` prints.
//!
//! Transfers use blocking threads, one for each data connection: a thread that reads, seals and writes 256 KiB at a
//! time has nothing to gain from a scheduler of its own.

#![forbid(unsafe_code)]

pub mod address;
pub mod answer;
mod beneath;
mod both;
pub mod bulk;
pub mod cache;
pub mod cancel;
pub mod confirm;
pub mod dest;
mod dial;
pub mod entry;
mod error;
pub mod fault;
pub mod fuse;
#[doc(hidden)]
pub mod fuzzing;
pub mod groups;
pub mod grpc;
pub mod identity;
pub mod invite;
pub mod link;
pub mod local;
pub mod names;
mod over;
pub mod policy;
pub mod progress;
pub mod ranges;
pub mod receive;
pub mod relay;
pub mod send;
pub mod sharing;
pub mod source;
pub mod tree;
pub mod typing;
pub mod wire;

pub use error::{Error, Fault};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a thread that panicked while it held the lock leaves plain data behind, not broken invariants.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
