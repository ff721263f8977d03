//! VMess with the AEAD header (`alterId` 0).
//!
//! A client makes a [`Session`], seals a [`Request`] with it and sends its body through [`ChunkSealer::request`]. A server
//! has a [`RequestOpener`] for each connection, which finds the user, asks whether the header was seen before, and gives
//! back the same [`Session`]; it answers with [`Session::seal_response`] and [`ChunkSealer::response`]. Whatever is wrong with
//! a header, the server reads on until its [`Drain`] is empty and closes then.

mod auth_id;
mod body;
mod drain;
mod kdf;
mod keys;
mod lengths;
mod nonces;
mod open;
mod request;
mod response;
mod seal;
mod session;
mod users;

pub use auth_id::{CommandKey, MAX_SKEW};
pub use drain::{Drain, Profile};
pub use lengths::MAX_PADDING;
pub use open::{ChunkOpener, Opened};
pub use request::{Accepted, Command, Request, RequestOpener, RequestRandom};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use request::{fnv1a, parse_header};
pub use seal::ChunkSealer;
pub use session::{Options, Security, Session};
pub use users::{Match, Users};

/// Payload bytes of a chunk that make it a little under 16 KiB on the wire: few enough to be read in one go by any peer,
/// many enough that the cost of a chunk does not count.
pub const CHUNK_PAYLOAD: usize = 16_384 - 18 - 16 - MAX_PADDING;

/// Longest payload of one chunk: what a 16-bit size leaves beside the tag and the padding.
pub const MAX_CHUNK_PAYLOAD: usize = 65_535 - 16 - MAX_PADDING;

#[cfg(test)]
pub(crate) mod tests;
