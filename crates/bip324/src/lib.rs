//! BIP324, the encrypted transport between Bitcoin nodes: bytes in, messages out, and the other way round.
//!
//! Nothing here opens a socket, reads a clock or draws a random number; bytes and randomness are arguments. It follows BIP324
//! version 1.0.2.
//!
//! # Where to start
//!
//! [`Connection`] is one end of a connection, from the first byte on: give it what came, take events and what is to be sent.
//! It knows v1 by its prefix and says so. The modules, from the top down:
//!
//! | Module | |
//! |---|---|
//! | [`blocking`]¹ | connections over any stream of `std::io`; the crate `sealway-bip324-tokio` has them over tokio's |
//! | [`stream`]¹ | what both of them drive: handshake and messages over a stream, without the stream |
//! | [`batch`]¹ | packets of many established connections at once |
//! | `connection` | [`Connection`] and what goes in and comes out: [`Options`], [`Event`], [`Parts`] |
//! | [`handshake`] | the handshake as types |
//! | [`decoy`] | when to send packets that mean nothing |
//! | [`message`] | what contents mean, and the framing of v1 |
//! | `packet` | the packets of one direction: [`PacketSealer`] and [`PacketOpener`] |
//! | [`fschacha`] | FSChaCha20 and FSChaCha20Poly1305: packet numbers, masks and keys, without sealing anything |
//! | `key` | [`LocalKey`], and the [`SessionKeys`] that both ends make of theirs |
//! | `buffer` | bytes between a stream and what reads or writes frames on it |
//! | `magic` | [`Magic`] names a network, [`Role`] an end of a connection |
//! | `error` | [`Error`], and whose fault it is |
//!
//! ¹ With feature `std`.
//!
//! Two programs that run: `examples/sans_io.rs` and `examples/blocking.rs`.
//!
//! ```
//! use sealway_bip324::{Connection, Event, LocalKey, Magic, Options};
//!
//! // Both pairs of 32 bytes come from a cryptographic generator.
//! # let (secret_a, random_a, secret_b, random_b) = ([1; 32], [2; 32], [3; 32], [4; 32]);
//! let key = LocalKey::new(&secret_a, &random_a)?;
//! let mut here = Connection::initiator(Magic::REGTEST, key, Options::default())?;
//! let key = LocalKey::new(&secret_b, &random_b)?;
//! let mut there = Connection::responder(Magic::REGTEST, key, Options::default())?;
//!
//! // What one has to send, the other is given.
//! for _ in 0..2 {
//!     let n = there.handle_input(here.output())?;
//!     here.advance_output(n);
//!     let n = here.handle_input(there.output())?;
//!     there.advance_output(n);
//! }
//! assert!(matches!(here.poll_event(), Some(Event::Established { .. })));
//! assert_eq!(here.session_id(), there.session_id());
//!
//! here.send(b"\x12nonce of a ping")?;
//! there.handle_input(here.output())?;
//! assert!(matches!(there.poll_event(), Some(Event::Established { .. })));
//! assert!(matches!(there.poll_event(), Some(Event::Message(contents)) if *contents == *b"\x12nonce of a ping"));
//! # Ok::<(), sealway_bip324::Error>(())
//! ```
//!
//! # Features
//!
//! - `std`, on by default: [`stream`], [`blocking`] and [`batch`], and kernels that follow what this CPU has. Without it the crate needs
//!   `core`, `alloc` and atomic pointers that compare and swap; the kernels follow what the compiler was told of the CPU
//!   (`-C target-feature`).
//! - `aws-lc`, on by default, needs `std`: messages on their own through aws-lc where it is faster than the kernels of `sealway-aead`,
//!   which is on processors without AVX-512. Without it no C but libsecp256k1 is compiled.
//! - `cuda` needs `std`: batches may go to an NVIDIA GPU. Nothing of CUDA is needed to build it.
//! - `fuzzing` is for the fuzz targets and no part of the public interface.
//!
//! # What holds everywhere
//!
//! - A packet number is used up when it is given, and never given again.
//! - What did not authenticate is not seen: not its header, not a byte of it. After the first failure nothing more of that
//!   direction is delivered, and its keys are wiped.
//! - What a peer claims costs no memory: a receive buffer follows what has come.
//! - Nothing that holds a key can be cloned; keys are wiped when dropped, keys of finished epochs at once.
//! - Every fault of a peer ends alike: the connection is closed without a word.

#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "std")]
pub mod batch;
#[cfg(feature = "std")]
pub mod blocking;
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "some of it is for streams"))]
mod buffer;
mod connection;
pub mod decoy;
mod error;
pub mod fschacha;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;
mod key;
mod magic;
pub mod message;
mod packet;
#[cfg(feature = "std")]
pub mod stream;
mod wipe;

pub use connection::{
    Awaiting, Connection, Contents, Counters, DEFAULT_CONTENTS_LIMIT, Event, Options, Parts, Progress,
};
pub use error::Error;
pub use key::{LocalKey, SessionKeys};
pub use magic::{Magic, Role, V1_PREFIX_LEN};
pub use packet::{Kind, PacketOpener, PacketSealer};
pub use sealway_aead::Fault;

/// Bytes of an ElligatorSwift encoding.
pub const ELLSWIFT_LEN: usize = 64;

/// Most bytes of garbage.
pub const GARBAGE_MAX: usize = 4095;

/// Bytes of a garbage terminator.
pub const TERMINATOR_LEN: usize = 16;

/// Bytes of a length on the wire.
pub const LENGTH_LEN: usize = 3;

/// Bytes of the header of a packet, inside its sealed part.
pub const HEADER_LEN: usize = 1;

/// Bytes of a tag.
pub const TAG_LEN: usize = 16;

/// Bytes by which a packet is longer than its contents.
pub const OVERHEAD: usize = LENGTH_LEN + HEADER_LEN + TAG_LEN;

/// Most bytes of contents that a length can say.
pub const CONTENTS_MAX: usize = (1 << 24) - 1;
