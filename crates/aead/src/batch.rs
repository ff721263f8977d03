//! Many messages at once, each with its own key, nonce, associated data, length and direction.
//!
//! A relay or a node with thousands of small packets under different keys leaves most vector lanes empty if it seals them
//! one by one. Here a lane takes *any block of any message*, so the lanes stay full whatever the mix of lengths.
//!
//! - [`Keys`] is a table of resident keys, set up once and named by [`Slot`].
//! - A [`Job`] says what to do with one message. It names memory by offsets into the arenas of a [`Memory`], so many jobs
//!   can read and write one buffer without a borrow each. Outputs of one batch must not overlap; that is checked (a pass
//!   without sorting when the outputs ascend, else one sort of numbers), and so is every bound.
//! - An [`Engine`] owns the scratch memory and runs batches. It allocates only when a batch is larger than any before.
//! - Each job has a [`Status`], in the order of the jobs. A job that does not authenticate has its own output zeroed and
//!   disturbs no other. What a job gives does not depend on the jobs around it: a batch may be cut anywhere.
//! - A batch that breaks a rule (a bound, an overlap, an empty key slot) is refused as a whole, before anything is
//!   touched: see [`crate::JobError`].
//!
//! ```
//! use sealway_aead::batch::{Engine, Job, Keys, Memory, Slot, Status};
//! use sealway_aead::{Nonce, Suite};
//!
//! let suite = Suite::ChaCha20Poly1305;
//! let mut keys = Keys::with_slots(2);
//! keys.set(Slot(0), suite, &[1; 32])?;
//! keys.set(Slot(1), suite, &[2; 32])?;
//!
//! // "first" and "second", each with room for its tag.
//! let mut wire = *b"first................second................";
//! let jobs = [
//!     Job::seal(Slot(0), Nonce::assume_unique(suite, &[7; 12])?, 0..5, 0),
//!     Job::seal(Slot(1), Nonce::assume_unique(suite, &[7; 12])?, 21..27, 21),
//! ];
//! let mut engine = Engine::new();
//! let mut statuses = [Status::Failed; 2];
//! engine.run(&keys, &jobs, Memory::InPlace(&mut wire), &[], &mut statuses)?;
//! assert_eq!(statuses, [Status::Done; 2]);
//!
//! // Opened: ciphertext and tag in, plaintext out, in the order that suits.
//! let jobs = [
//!     Job::open(Slot(1), &[7; 12], 21..43, 21)?,
//!     Job::open(Slot(0), &[7; 12], 0..21, 0)?,
//! ];
//! engine.run(&keys, &jobs, Memory::InPlace(&mut wire), &[], &mut statuses)?;
//! assert_eq!((&wire[..5], &wire[21..27]), (&b"first"[..], &b"second"[..]));
//! # Ok::<(), sealway_aead::Error>(())
//! ```

mod backend;
mod check;
mod chunk;
mod engine;
mod job;
mod keys;
mod library;
mod order;
mod report;

pub use backend::Backend;
pub use check::{Arenas, Rules};
pub use engine::Engine;
pub use job::{Job, Status};
pub use keys::{Keys, Slot};
pub use report::Report;

#[doc(hidden)]
pub use crate::low::prefetch;
pub use crate::low::{Lanes, Memory};
