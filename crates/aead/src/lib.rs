//! AEAD suites, keys and nonces for sealed transport, and the choice of suite by hardware.
//!
//! # Where to start
//!
//! [`Suite`] names the four ciphers. [`SealingKey`] and [`OpeningKey`] seal and open one message at a time, in place or
//! out of place. [`Sealer`] and [`Opener`] add the rest of what a one-way stream of messages needs: a [`NonceSequence`]
//! that cannot repeat, the soft limit at which to rekey and the hard limit at which sealing is refused. [`batch`] seals and
//! opens thousands of small messages at once, each with its own key, nonce and length. [`mod@derive`] turns
//! one shared secret into keys that never meet. [`cpu`] says what this machine can do and [`choose`] picks a suite from
//! what both ends can do.
//!
//! ```
//! use sealway_aead::derive::{Direction, Hash, Label, Prk};
//! use sealway_aead::Suite;
//!
//! let shared = Prk::extract(Hash::Sha256, b"salt of the protocol", b"secret both ends agreed on");
//! let label = Label::new("example", Suite::Aes256Gcm, Direction::InitiatorToResponder);
//! let mut sealer = shared.traffic(&label)?.into_sealer()?;
//! let mut opener = shared.traffic(&label)?.into_opener()?;
//!
//! let mut record = *b"attack at dawn";
//! let sealed = sealer.seal_in_place(b"header", &mut record)?;
//! opener.open_in_place(b"header", &mut record, &sealed.tag)?;
//! assert_eq!(&record, b"attack at dawn");
//! # Ok::<(), sealway_aead::Error>(())
//! ```
//!
//! # Features
//!
//! `aes`, on by default: the AES suites, by aws-lc, which then also does ChaCha20-Poly1305 where it is faster than the kernels
//! here. Without it only the ChaCha20 suites are there ([`Suite::is_built`]), and no C is compiled.
//!
//! # What holds for every suite
//!
//! - A failed open is one plain [`Error::Unauthentic`] and leaves no plaintext: the output is zeroed.
//! - Keys are wiped when dropped, and sealing keys cannot be cloned: a copied key is how a nonce gets used twice.
//! - Limits are counted, not hoped for: see [`Limits`].

#![deny(unsafe_code)]

pub mod batch;
pub mod choose;
pub mod cpu;
pub mod derive;
mod error;
mod key;
pub mod keystream;
mod library;
mod limits;
mod low;
mod nonce;
mod one;
mod stream;
mod suite;
pub mod wipe;

pub use error::{Error, Fault, JobError};
pub use key::{OpeningKey, SealingKey};
pub use limits::{Limits, RekeyPolicy};
pub use nonce::{CounterOrder, Nonce, NonceBytes, NonceSequence, Numbered};
pub use one::Tag;
pub use stream::{Opened, Opener, Sealed, Sealer};
pub use suite::Suite;
