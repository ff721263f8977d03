//! Shadowsocks: the AEAD methods of 2017, and those of 2022 with times, salts that count once and several keys (SIP022,
//! SIP023).
//!
//! Both seal a stream as `salt | sealed length | sealed payload | sealed length | …`, each direction under a key that is
//! derived of the password's key and the salt, with a counter as the nonce. They differ in how it begins:
//!
//! - [`classic`] (2017): the payload begins with the target's address. Nothing says when a request was made, and whose it is
//!   shows only by trying every user's key.
//! - [`edition2022`]: a header of fixed length names the time and, in answers, the request's salt; a block in front of it names the
//!   user.
//!
//! Datagrams stand alone in 2017 ([`classic::packet`]) and belong to sessions with numbers in 2022
//! ([`edition2022::packet`]).

pub mod classic;
pub mod edition2022;
mod key;
mod method;
pub mod salts;
mod stream;
mod window;

pub use key::{Key, KeyChain};
pub use method::Method;
pub use stream::{ChunkOpener, ChunkSealer, Opened};
pub use window::Window;

/// Longest salt of any method, bytes.
pub const MAX_SALT: usize = 32;

/// Most payload that is sealed into one chunk, where the method allows for it: few enough bytes to be read and opened in one
/// go by any peer, enough that the cost of a chunk does not count.
pub const CHUNK_PAYLOAD: usize = 32 << 10;

/// Bytes that a chunk adds to its payload: the length, and two tags.
pub const CHUNK_OVERHEAD: usize = 2 + 2 * sealway_aead::Suite::TAG_LEN;

/// Seconds that the clocks of both ends may differ in the methods of 2022.
pub const MAX_SKEW: u64 = 30;

#[cfg(test)]
mod tests;
