//! What the parts of the file drop stand on: how two ends reach each other, prove who they are, and talk.
//!
//! Files are sent and received by `sealway-drop-transfer`, folders are shared and mounted by `sealway-drop-mount`, and
//! `sealway-drop-relay` is the relay. The three do not know each other.
//!
//! # Map
//!
//! - Who: [`identity`] (the key of this machine, and keys it knows), [`key`] (keys as text), [`typing`] (a code while it is typed),
//!   [`invite`] (what the other end is to type), [`confirm`] (check words compared by people).
//! - Who may connect and what is asked, before anything is opened: [`policy`]. How many at once: [`places`].
//! - Where: [`address`], and [`relay`] for ends that cannot reach each other.
//! - Connections: [`link`] makes a session and its connections; [`cancel`] ends them from elsewhere.
//! - What is said: [`wire`], and how it [ends](ending). What files are called: [`names`]. What of a file is there: [`ranges`]. Files that an end serves whole:
//!   [`pull`].
//! - What can go wrong: [`Error`] and, of the parts, [`fault::Failure`]; [`Fault`] says whose fault it is.
//!
//! # Example
//!
//! Two ends that know the same code, over loopback:
//!
//! ```
//! use std::time::Duration;
//!
//! use sealway_aead::choose::Offer;
//! use sealway_aead::cpu::Cpu;
//! use sealway_drop::cancel::Cancel;
//! use sealway_drop::link::{Identity, Place, Setup, connect};
//! use zeroize::Zeroizing;
//!
//! let setup = || Setup {
//!     identity: Identity::Code(Zeroizing::new(b"castle-lemon-opera".to_vec())),
//!     offer: Offer::of(Cpu::get()),
//!     strong: false,
//! };
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let there = Place::Dial {
//!     addresses: vec![listener.local_addr()?],
//!     patience: Duration::from_secs(10),
//! };
//! let other = std::thread::spawn(move || connect(there, &setup(), 1, &Cancel::new()));
//! let mut here = connect(Place::Listen(listener), &setup(), 1, &Cancel::new())?;
//! let mut there = other.join().expect("the thread ends")?;
//! there.peered.connection.writer.push(1, 0, b"hello")?;
//! there.peered.connection.writer.flush()?;
//! let record = here.peered.connection.reader.next()?.expect("the connection stands");
//! assert_eq!(record.payload, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod address;
pub mod cancel;
pub mod confirm;
mod dial;
pub mod ending;
mod error;
pub mod fault;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod identity;
pub mod invite;
pub mod key;
pub mod link;
pub mod names;
pub mod places;
pub mod policy;
pub mod pull;
pub mod ranges;
pub mod relay;
#[cfg(feature = "test-support")]
#[doc(hidden)]
pub mod testing;
pub mod typing;
pub mod wire;

pub use error::Error;
pub use fault::Fault;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a thread that panicked while it held the lock leaves plain data behind, not broken invariants.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
