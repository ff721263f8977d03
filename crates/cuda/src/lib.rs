//! Batches of ChaCha20-Poly1305 messages on an NVIDIA GPU.
//!
//! The jobs are those of [`sealway_aead::batch`], and so are the results, byte for byte: each message has its own key, nonce,
//! associated data, length and direction. What differs is where it pays. A message crosses the link to the device and back, so
//! a few thousand messages at a time, or hundreds of thousands, are worth the way, and a handful is not: see
//! `docs/records/` for measurements. Data that is on the device anyway is another matter: [`Resident`].
//!
//! Nothing of CUDA is needed to build this. The driver is looked for when [`Engine::open`] or [`probe`] is called; where it is
//! missing, both say so.
//!
//! ```
//! use sealway_aead::batch::{Job, Memory, Slot, Status};
//! use sealway_aead::{Nonce, Suite};
//! use sealway_cuda::{Engine, Options};
//!
//! let mut engine = match Engine::open(Options::default()) {
//!     Ok(engine) => engine,
//!     Err(error) => {
//!         println!("on the processor, then: {error}");
//!         return Ok(());
//!     }
//! };
//! engine.set_key(Slot(7), &[1; 32])?;
//! let mut wire = *b"attack at dawn................";
//! let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[2; 12])?;
//! let jobs = [Job::seal(Slot(7), nonce, 0..14, 0)];
//! let mut statuses = [Status::Failed];
//! let report = engine.run(&jobs, Memory::InPlace(&mut wire), &[], &mut statuses)?;
//! assert_eq!((report.done, statuses), (1, [Status::Done]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where what is
//!
//! | Types | What they are for |
//! |---|---|
//! | [`Engine`], [`Options`], [`Report`] | jobs on buffers of the caller, copied to the device and back in chunks |
//! | [`Batch`], [`Reserved`], [`Ticket`], [`Finished`] | messages written where the device reads them, so that nothing is copied twice |
//! | [`Engine::slab_mut`], [`Engine::start_slab`], [`Engine::finish_slab`] | packets written there as they stand on a wire, and left there sealed |
//! | [`Resident`] | messages that stay on the device |
//! | [`Error`], [`Stopped`] | what can go wrong, and how far a batch got |
//! | [`device`] | what the engine needs of a device, for tests without one |
//!
//! # When the device fails
//!
//! Every error says whether it is the caller's or the machine's ([`Error::fault`]). If a batch stops half-way, [`Stopped`] says
//! how many jobs, from the first, are complete; the others are as they were, so the processor can do them, with the nonces that
//! they have, to the bytes that the device would have given.

#![deny(unsafe_code)]

mod batch;
pub mod device;
mod driver;
mod engine;
mod error;
mod plan;
mod resident;

pub use batch::{Batch, Finished, Reserved, Ticket};
pub use device::DeviceInfo;
pub use driver::probe;
pub use engine::{Engine, Options, Report, Started, Times, Ways};
pub use error::{Error, Place, Stopped, Wrong};
pub use plan::{Bins, Message};
pub use resident::Resident;
