//! Connections over tokio: a thin layer over any `AsyncRead` and `AsyncWrite`. Only with cargo feature `tokio`.
//!
//! [`connect`] and [`accept`] run the handshake within a time limit and give [`Messages`]: messages both ways, of one task,
//! or of two after [`Messages::into_split`]. [`ByteStream`] carries a stream of bytes in packets, for programs of which both
//! ends are one's own. [`v1`] is the same for peers that do not speak v2: [`accept`] gives their stream back, with the bytes
//! to read first.
//!
//! # Cancellation
//!
//! Every future of a message may be dropped at any time and called again: no byte is lost, no packet number is used twice,
//! nothing is delivered twice. A message whose [`Sender::feed`] or [`Sender::send`] was dropped before it was ready has not
//! been taken. [`connect`] and [`accept`] own their stream: dropped, they close it.
//!
//! # Time
//!
//! Limits need a runtime with its timers enabled. A handshake has one for all of it. Afterwards a peer may be silent between
//! packets for as long as the caller likes; within a packet [`Patience`] says how long, since a length is not authentic until
//! its packet is whole.

mod buffer;
mod bytes;
mod handshake;
mod incoming;
mod messages;
mod outgoing;
mod patience;
pub mod v1;

pub use crate::stream::{HandshakeError, Received, Sent, TransportError, draw_garbage, draw_key};
pub use bytes::{BYTES_PER_PACKET, ByteStream};
pub use handshake::{Accepted, FirstBytes, HANDSHAKE_LIMIT, accept, accept_after, connect, first_bytes};
pub use messages::{Messages, Receiver, Sender};
pub use patience::Patience;
