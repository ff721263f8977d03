//! WebSocket (RFC 6455) as a carrier of a byte stream.
//!
//! Borders of messages mean nothing: payload of binary and text frames, whole or in fragments, is one stream. There is no
//! compression. Frames are never held back until they are complete.

pub mod early;
pub mod frame;
pub mod handshake;
mod mask;

pub use mask::mask;
