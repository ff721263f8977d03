//! Datagrams of 2022.
//!
//! ```text
//! AES       block (session u64, packet u64) | identity headers | sealed (body)
//! ChaCha20  nonce[24] | sealed (session u64, packet u64, body)
//! body      type u8, time u64, of answers the client's session u64, padding, address, payload
//! ```
//!
//! Each end numbers the datagrams of its session; whoever opens them keeps a [`Window`](crate::shadowsocks::Window) of the
//! numbers that came.

mod client;
mod open;
mod seal;

pub use client::ClientSession;
pub use open::{Front, Packet, SessionKey};
pub use seal::PacketSealer;

use sealway_aead::Suite;

/// Most bytes that a datagram with one identity header adds to its payload, padding aside.
pub const MAX_OVERHEAD: usize = 24 + 16 + 16 + 1 + 8 + 8 + 2 + (1 + 1 + 255 + 2) + Suite::TAG_LEN;

/// Bytes of a plain block: session and packet.
const BLOCK: usize = 16;
/// Bytes of the nonce of the ChaCha20 method.
const LONG_NONCE: usize = 24;

/// The plain block of a datagram.
fn block(session: u64, packet: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(&session.to_be_bytes());
    block[8..].copy_from_slice(&packet.to_be_bytes());
    block
}

/// Session and packet of a plain block.
fn numbers(block: &[u8; BLOCK]) -> (u64, u64) {
    let both = u128::from_be_bytes(*block);
    ((both >> 64) as u64, both as u64)
}

/// XORs one block into another.
fn xor(mut block: [u8; BLOCK], with: &[u8; BLOCK]) -> [u8; BLOCK] {
    block.iter_mut().zip(with).for_each(|(byte, with)| *byte ^= with);
    block
}
