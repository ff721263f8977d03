//! Sockets of the BIP324 programs.
//!
//! [`Bridge`] listens and connects: what comes as v1 or v2 goes out as v2 or v1. [`probe()`] asks one node whether it speaks
//! v2. Wire formats and ciphers come from `sealway-bip324`.
//!
//! A bridged connection passes three stages. *Begin*: the first bytes say whether it is v1 or v2; a v2 handshake follows.
//! *Dial*: the other side is connected to, by v2 first and by v1 if it seems to know nothing else. *Carry*: messages go both
//! ways until both have ended; each is checked and translated, none is changed. Every stage has its time limit, and whatever
//! a peer does wrong ends its connection without a word. Before all of that stands who is let in: so many of each address, and
//! when all places are taken, those who have said nothing give way.

#![forbid(unsafe_code)]

mod admission;
mod carry;
mod dial;
mod error;
mod origin;
pub mod probe;
mod rate;
mod server;
mod session;
mod settings;
mod stats;
mod target;
mod wire;

pub use error::Error;
pub use probe::probe;
pub use sealway_bip324::Fault;
pub use server::Bridge;
pub use settings::{Decoys, Incoming, Outgoing, Settings};
pub use stats::{Stats, Totals};
pub use target::Target;
pub use wire::SessionId;
