//! BIP324 over tokio: handshakes, messages and byte streams over any `AsyncRead` and `AsyncWrite`.
//!
//! A thin layer: what is sent and what comes is worked out by `sealway_bip324::stream`, without I/O; here it is read and
//! written, in time.
//!
//! | Module | |
//! |---|---|
//! | `handshake` | [`connect`], [`accept`], and [`first_bytes`] for whoever wants to know the version before paying for a key |
//! | `messages` | [`Messages`] both ways for one task; [`Receiver`] and [`Sender`] for two, after [`Messages::into_split`] |
//! | `bytes` | [`ByteStream`]: a stream of bytes in packets, for programs of which both ends are one's own |
//! | [`v1`] | the same for peers that do not speak v2: [`accept`] gives their stream back, with the bytes to read first |
//! | `cover` | [`Sender::cover`]: decoys while there is nothing to send |
//! | `patience` | [`Patience`]: how long a message that has begun is waited for |
//! | `incoming`, `outgoing` | reading and writing, for all of them |
//!
//! ```
//! use sealway_bip324::{LocalKey, Magic, Options};
//! use sealway_bip324_tokio::{Accepted, HANDSHAKE_LIMIT, accept, connect};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Any two streams. Both pairs of 32 bytes come from a cryptographic generator, see `draw_key`.
//! # let (secret_a, random_a, secret_b, random_b) = ([1; 32], [2; 32], [3; 32], [4; 32]);
//! let (client, server) = tokio::io::duplex(4096);
//! let key = LocalKey::new(&secret_a, &random_a)?;
//! let here = connect(client, Magic::REGTEST, key, Options::default(), HANDSHAKE_LIMIT);
//! let key = LocalKey::new(&secret_b, &random_b)?;
//! let there = accept(server, Magic::REGTEST, key, Options::default(), HANDSHAKE_LIMIT);
//! let (here, there) = tokio::try_join!(here, there)?;
//! let (mut here, Accepted::V2(mut there)) = (here, there) else {
//!     panic!("taken for v1")
//! };
//! assert_eq!(here.session_id(), there.session_id());
//!
//! here.send(b"\x12nonce of a ping").await?;
//! assert_eq!(there.recv().await?, Some(&b"\x12nonce of a ping"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! `examples/echo.rs` is a whole program over TCP.
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

#![forbid(unsafe_code)]

mod bytes;
mod cover;
mod handshake;
mod incoming;
mod messages;
mod outgoing;
mod patience;
pub mod v1;

pub use bytes::{BYTES_PER_PACKET, ByteStream};
pub use handshake::{Accepted, FirstBytes, HANDSHAKE_LIMIT, accept, accept_after, connect, first_bytes};
pub use messages::{Messages, Receiver, Sender};
pub use patience::Patience;
pub use sealway_bip324::stream::{HandshakeError, Received, Sent, TransportError, draw_garbage, draw_key};
