//! A relay where two ends meet that cannot reach each other, and the way there.
//!
//! It is blind: it sees a small number (a nameplate) or a random token, and then bytes that only the two ends can read. What
//! it could do, it can do to the bytes only: lose or change them, which the session notices. The messages are in [`wire`] and
//! `docs/reference/relay.md`; [`meet`] and [`pair`] are the ends, [`Server`] is the relay.

mod carry;
mod client;
mod desk;
mod limits;
mod server;
mod socket;
mod stats;
mod visit;
pub mod wire;

pub use client::{Meeting, meet, pair};
pub use limits::Limits;
pub use server::Server;
pub use stats::{Counters, Stats};
