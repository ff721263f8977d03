//! AEAD suites, keys and nonces for sealed transport, and the choice of suite by hardware.
//!
//! # Where to start
//!
//! One message: [`SealingKey`] and [`OpeningKey`]. A one-way stream of messages: [`Sealer`] and [`Opener`]. Thousands of small
//! messages at once: [`batch`]. The modules, from the top down:
//!
//! | Module | |
//! |---|---|
//! | [`batch`] | many messages, each with its own key, nonce and length |
//! | [`keystream`] | ChaCha20 alone, for protocols that are built of more than AEADs |
//! | `stream` | [`Sealer`] and [`Opener`]: a key with a nonce sequence and its limits |
//! | `one` | one message, in place or out of place |
//! | `key` | [`SealingKey`] and [`OpeningKey`], which wipe themselves |
//! | [`mod@derive`] | keys that never meet, out of one shared secret |
//! | [`choose`] | a suite, by what both ends can do |
//! | `nonce` | [`Nonce`], and [`NonceSequence`]s that cannot repeat |
//! | `limits` | [`Limits`]: when to rekey, and when sealing is refused |
//! | `suite` | [`Suite`] names the four ciphers |
//! | [`cpu`] | what this machine can do |
//! | [`wipe`] | secrets overwritten: large buffers, and the stack that libraries leave secrets on |
//! | `error` | [`Error`], and whose fault it is |
//! | `library`, `low` | aws-lc, and the kernels of our own |
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
//! Both are on by default.
//!
//! - `std`: the kernels follow what this CPU has, found out while the program runs, and [`cpu::DISABLE_VARIABLE`] is read. Without it
//!   the crate needs `core` and `alloc` only, and the kernels follow what the compiler was told of the CPU (`-C target-feature`).
//! - `aes`, which needs `std`: the AES suites, by aws-lc, which then also does ChaCha20-Poly1305 where it is faster than the
//!   kernels here. Without it only the ChaCha20 suites are there ([`Suite::is_built`]), and no C is compiled.
//!
//! # What holds for every suite
//!
//! - A failed open is one plain [`Error::Unauthentic`] and leaves no plaintext: the output is zeroed.
//! - Keys are wiped when dropped, and sealing keys cannot be cloned: a copied key is how a nonce gets used twice.
//! - Limits are counted, not hoped for: see [`Limits`].

#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

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
