//! Many sessions in one connection, by Mux.Cool: what both ends have in common.
//!
//! ```text
//!  session ─ Pipe ────┐                                       ┌── Inbox ─ session
//!  session ─ Packets ─┼─ Link: frames that wait ─ Driver ─ Stream ─ Driver ─┼── Inbox ─ session
//!  session ─ Pipe ────┘                                       └── Inbox ─ session
//! ```
//!
//! A [`Driver`] is the one task that reads and writes the carrier. Sessions append their frames to the batch that waits in the
//! [`Link`], each up to its share; the driver takes the batch when the one before has been written, and lets all go on. So a
//! batch is one write and, under TLS, a few whole records, and nobody gets more than a share of it while others wait. What is
//! read is taken apart where it lies and copied once, to the inbox of its session.
//!
//! The protocol has no flow control. An inbox that is full stops the reading, and with it all other sessions; a session that
//! then takes nothing for [`PATIENCE`] is ended, so that the others go on.

mod driver;
mod inbox;
mod link;
mod meter;
mod packets;
mod pipe;
mod session;
mod xudp;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use driver::{Begun, Driver, Role};
pub(crate) use inbox::{Batch, Inbox, PacketInbox};
pub(crate) use link::{Link, Turn};
pub(crate) use meter::Meter;
pub(crate) use packets::{Packets, push_datagram};
pub(crate) use pipe::Pipe;
pub(crate) use session::{Entry, Owner};
pub(crate) use xudp::Xudp;

/// Bytes of datagrams that may wait for one association to take them. What waits for a stream fits in the largest buffer,
/// which is smaller.
pub(crate) const MAX_WAITING: usize = 256 << 10;
/// Bytes of the buffers in which something waits for the streams of a carrier.
pub(crate) const MAX_WAITING_TOGETHER: usize = 4 << 20;
/// Bytes of datagrams that may wait for all associations of a carrier.
pub(crate) const MAX_DATAGRAMS_TOGETHER: usize = 1 << 20;
/// How long a session may stop all others of its carrier.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Sessions that a client may have in one carrier at once.
pub(crate) const MAX_SESSIONS: usize = 256;
/// How long a server keeps a carrier without sessions.
pub(crate) const SERVER_IDLE: Duration = Duration::from_secs(60);
/// How long a client keeps a carrier without sessions.
pub(crate) const CLIENT_IDLE: Duration = Duration::from_secs(16);

/// Most data in a frame that we write, and the least that a session may add to a batch.
const QUANTUM: usize = 16 << 10;
/// What a session may add to a batch that few others write to.
const QUANTUM_FEW: usize = 64 << 10;
/// What a session may add to a batch that is full otherwise, so that a short request does not wait for long ones.
const QUANTUM_LAST: usize = 2 << 10;
/// Bytes of a batch that is full.
const FULL: usize = 256 << 10;
/// Bytes that the kernel holds of a carrier that the network has not taken: more would only wait there, in front of short
/// requests.
const UNSENT: u32 = 128 << 10;
/// Bytes of a batch above which nothing is read: more could be answers to a peer that does not read them.
const OVERFULL: usize = 768 << 10;
/// How long the frame that begins a session waits for the first data, so that both leave together.
const HOLD: Duration = Duration::from_millis(20);
