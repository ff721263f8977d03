//! Handshake and records of the file drop, with no I/O, no clock and no randomness of its own.
//!
//! # Where to start
//!
//! [`handshake::Handshake`] makes two ends agree: on who they are, by a [`code`] phrase or by static keys, on a suite by the
//! hardware of both, and on secrets that no recording of the connection gives away later, not even to a quantum computer. It
//! ends as [`handshake::Established`]: the two halves of the connection it ran on ([`record::SendHalf`] and
//! [`record::RecvHalf`]), a [`CheckString`] to compare by voice, and a [`Session`], which exports secrets and from which more
//! connections follow without public-key work ([`attach`]).
//!
//! ```
//! use sealway_aead::{Suite, choose::Offer};
//! use sealway_session::handshake::{Auth, Config, Handshake, Kem, Role};
//! use sealway_session::record::{OVERHEAD, Opened};
//! use sealway_session::code::CodePhrase;
//!
//! // Random bytes come from a cryptographic generator.
//! # let mut state = 1u64;
//! # let mut random = |out: &mut [u8]| for byte in out {
//! #     state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//! #     *byte = (state >> 56) as u8;
//! # };
//! let code = CodePhrase::generate(&mut random);
//! let config = |role| Config {
//!     role,
//!     auth: Auth::Code(code.secret()),
//!     offer: Offer::new(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305], true).unwrap(),
//!     kem: Kem::MlKem768,
//!     prologue: b"example 1".to_vec(),
//! };
//! let mut here = Handshake::new(config(Role::Initiator), &mut random)?;
//! let mut there = Handshake::new(config(Role::Responder), &mut random)?;
//!
//! // What one writes, the other reads.
//! while !(here.is_done() && there.is_done()) {
//!     if let Some(flight) = here.write() {
//!         there.read(&flight)?;
//!     }
//!     if let Some(flight) = there.write() {
//!         here.read(&flight)?;
//!     }
//! }
//! let (mut here, mut there) = (here.finish()?, there.finish()?);
//! assert_eq!(here.check, there.check);
//!
//! let mut record = vec![0; OVERHEAD + 5];
//! record[8..13].copy_from_slice(b"hello");
//! here.send.seal(1, 7, &mut record)?;
//! let Opened::Data { kind: 1, stream: 7, payload } = there.recv.open(&mut record)? else { panic!() };
//! assert_eq!(&record[payload], b"hello");
//! # Ok::<(), sealway_session::Error>(())
//! ```
//!
//! # Where what is
//!
//! | Modules | What they hold |
//! |---|---|
//! | [`handshake`] | three flights, after which both ends share secrets and know with whom |
//! | [`record`] | how payload is sealed and framed, and when its key is replaced |
//! | [`attach`], [`Session`] | more connections of a session, secrets for the application |
//! | [`code`], [`words`], [`CheckString`] | what people type and compare |
//!
//! # What holds everywhere
//!
//! - Every byte of the handshake, and the prologue of the caller, goes into every key.
//! - A nonce is a counter that is never on the wire: what is left out, sent twice, moved or turned round does not open.
//! - The first failure of a direction is its last: nothing more of it is delivered.
//! - What a peer claims costs no memory: each flight has one length, known from its first bytes, and a record at most
//!   [`record::MAX_PAYLOAD`].
//! - Secrets are wiped, never printed, and compared in constant time.
//!
//! The protocol is written down for a second implementation in `docs/reference/session.md`.

#![forbid(unsafe_code)]

pub mod attach;
mod check;
pub mod code;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod handshake;
pub mod record;
mod refusal;
mod session;
mod terms;
mod wipe;
pub mod words;

pub use check::{CHECK_WORDS, CheckString};
pub use error::Error;
pub use session::Session;
pub use zeroize::Zeroizing;
