//! Packets of many connections at once: the fastest way to seal and open them.
//!
//! A node with a thousand peers sends and receives thousands of small packets, each under another key. One after the other
//! they leave most of a processor's vector lanes empty. [`BatchTransport`] takes the packets of all connections and works on
//! them together, in three steps:
//!
//! 1. **Plan**, when a packet is submitted. Its number, the mask of its length and the key of its epoch depend on nothing in
//!    it, so they are given out at once; order on the wire is order of submission. Of what was received, the lengths are
//!    opened one after the other, which finds where each packet starts and ends.
//! 2. **Crypt**. From here on no packet depends on another. All go to a [`Backend`] of [`sealway_aead::batch`], or to another
//!    [`Executor`] of the same jobs, and are sealed or opened where they lie. This happens whenever enough packets wait to
//!    fill the lanes, and at the latest when results are asked for.
//! 3. **Deliver**. Results come in order, connection by connection. A packet that is not authentic ends its own connection:
//!    nothing of that connection is delivered from it on, its keys are wiped, and no other connection notices.
//!
//! There are no sockets and no clock in here, and no global state: give each thread a transport of its own. [`Shards`] are one
//! for each thread, and share connections out to them; in a [`Crew`], threads with nothing to do take over packets of the others.
//!
//! ```
//! use sealway_bip324::Kind;
//! use sealway_bip324::batch::{BatchOptions, BatchTransport};
//! use sealway_bip324::fschacha::{RecvChain, SendChain};
//! # let (length_key, content_key) = ([1; 32], [2; 32]);
//! # let chains = || -> Result<_, sealway_bip324::Error> {
//! #     Ok((SendChain::new(&length_key, &content_key)?, RecvChain::new(&length_key, &content_key)?))
//! # };
//!
//! let mut batch = BatchTransport::new(BatchOptions::default())?;
//! // The two chains are those of `Connection::into_parts`. This end hears itself.
//! let (send, recv) = chains()?;
//! let peer = batch.add(send, recv, &[])?;
//!
//! batch.submit(peer, Kind::Genuine, b"\x12one ping")?;
//! batch.reserve(peer, Kind::Genuine, 3)?.copy_from_slice(b"\x13po");
//! let mut wire = Vec::new();
//! for output in batch.seal().iter() {
//!     // One slice here; as many as there were turns between connections.
//!     wire.extend(output.slices().flatten());
//! }
//!
//! batch.receive(peer, &wire)?;
//! let incoming = batch.open();
//! let contents: Vec<_> = incoming.iter().map(|message| message.contents).collect();
//! assert_eq!(contents, [&b"\x12one ping"[..], b"\x13po"]);
//! # Ok::<(), sealway_bip324::Error>(())
//! ```
//!
//! # Bounds
//!
//! Each direction has one arena of a fixed size. What does not fit is refused with [`crate::Error::ArenaFull`] before a
//! number is given out: the caller seals or opens, and goes on. A packet that has not come whole costs what has come of it
//! and at most 256 KiB more. At most two keys of a direction are in memory: those of the epoch it is in and of the one
//! before or after, until the last packet of that is done. Slabs of an executor come on top: as many as it has.
//!
//! # What a number is worth
//!
//! A packet number is given out when a packet is submitted and is never given out again: not after an error, and not when
//! another [`Executor`] fails and the work is done over. What is done over is the same packet, byte for byte: the processor
//! does what the executor says it has left as it was, and only if nothing contradicts it. If something does, those packets are
//! lost and their connections end, for to seal twice in one place would send the plaintext.
//!
//! # Another executor
//!
//! [`BatchTransport::set_executor`] sets something else to work beside the processor, a graphics card for instance. A small
//! batch is not worth the way there, and of a large one the processor can do a part meanwhile. [`Routing`] says who does what;
//! with [`Routing::Measured`] it follows what [`Costs::measure`] found on this machine. All keys are in both tables at all
//! times, so that any job can be done by either, and [`BatchCounters`] tell what went where. [`KeptCosts`] are the text of a
//! file of costs, by which a program measures once and not at every start. With cargo feature `cuda`, the engine of
//! `sealway-cuda` is such an executor.
//!
//! One that has slabs ([`Executor::slabs`]) gets packets without a copy: they are submitted and received into its memory,
//! and read from there. A full slab is begun with at once, the last when results are asked for, or before that with
//! [`BatchTransport::begin_seal`] and [`BatchTransport::begin_open`], so that this thread has something else to do meanwhile.
//! A slab goes there whole or stays whole.
//!
//! ```no_run
//! # use sealway_bip324::batch::{Backend, BatchTransport, Costs, Executor, MeasureError, Routing};
//! # fn set(batch: &mut BatchTransport, mut device: Box<dyn Executor>, kept: Option<String>) -> Result<(), MeasureError> {
//! let known: Option<Costs> = kept.and_then(|line| line.parse().ok());
//! let costs = match known {
//!     Some(costs) => costs,
//!     None => {
//!         let begin = std::time::Instant::now();
//!         Costs::measure(&mut *device, Backend::best(), &mut || begin.elapsed())?
//!     }
//! };
//! batch.set_executor(device, Routing::Measured(costs));
//! # Ok(())
//! # }
//! ```

mod costs;
mod crew;
mod crypt;
#[cfg(feature = "cuda")]
mod cuda;
mod executor;
mod id;
mod incoming;
mod kept;
mod measure;
mod options;
mod outgoing;
mod recv;
mod router;
mod send;
mod shards;
mod sheet;
mod stock;
mod transport;

pub use costs::{Costs, CostsError, Line};
pub use crew::{Crew, CrewMember};
pub use executor::{Executor, ExecutorFailure, Stopped};
pub use id::ConnectionId;
pub use incoming::{Incoming, Message};
pub use kept::KeptCosts;
pub use measure::MeasureError;
pub use options::{BatchCounters, BatchOptions, Due, FlushPolicy};
pub use outgoing::{Outgoing, Output};
pub use router::Routing;
pub use sealway_aead::batch::Backend;
pub use shards::{ShardedId, Shards};
pub use transport::BatchTransport;

#[cfg(test)]
mod tests;
