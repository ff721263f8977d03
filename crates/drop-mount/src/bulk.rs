//! Content of shared files, on a connection of its own.
//!
//! A folder is served by gRPC ([`crate::grpc`]). What its files hold moves here: reads go out as records and content comes
//! back as records, read from the file into the record, sealed, opened where they arrive and given to the reader as they lie
//! there. A connection belongs to one gRPC connection of the same session and reads what that has opened, nothing else.
//!
//! Every record is one message, and the number of its stream is the tag of a read. The end that mounts sends `READ` (handle,
//! offset, length) and `CANCEL`; the other answers each read exactly once, also one that was called off, in any order, by
//! `CONTENT` (size and version of the file, then the bytes) or `REFUSED` (why). See [`message`] for the bytes.

mod client;
pub mod message;
pub(crate) mod pool;
mod server;
mod tree;

pub use client::{Link, Reads};
pub use server::serve;
pub(crate) use server::{Requests, answer};
pub use tree::BulkTree;

/// Reads that wait for their answers on one connection at most. More are a breach of the protocol.
pub const OUTSTANDING: usize = 128;
