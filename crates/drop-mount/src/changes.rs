//! Changes of a shared folder, on a connection of its own.
//!
//! The folder stays where it is, and its owner does what is asked for: there is one copy, so nothing has to be merged. Every record
//! is one message, and the number of its stream is the tag under which it is answered. The end that mounts sends `CHANGE` (a
//! [`Change`](crate::tree::Change)) and `WRITE` (handle, offset, bytes) without waiting for answers; the other does all of them in
//! this order, but for bringing a file to the disk, which goes on beside what follows, and answers each exactly once by `CHANGED`.
//! See [`message`] for the bytes.
//!
//! Files are opened here, for reading too, and then read and closed as those of [`crate::grpc`] and [`crate::bulk`]: a handle is the
//! same on all three connections of a session.
//!
//! Where both ends look for direct paths, changes may come by direct connections too ([`crate::beside`]). They are numbered then, each one above the
//! one before it, and done in this order whichever way they come; what comes twice is done once.

mod asked;
mod client;
pub mod message;
mod order;
mod server;

pub use asked::Asked;
pub use client::ChangingTree;
pub use server::{Serving, serve};

/// From the oldest change that is unanswered to the newest that is sent, at most.
pub const OUTSTANDING: u32 = 8192;

/// Bytes of changes that are sent and unanswered, at most.
pub const OUTSTANDING_BYTES: usize = 16 << 20;

/// Version of the messages.
pub const VERSION: u32 = 1;
