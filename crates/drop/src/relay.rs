//! The way to a relay, where two ends meet that cannot reach each other.
//!
//! It is blind: it sees a small number (a nameplate) or a random token, and then bytes that only the two ends can read. What
//! it could do, it can do to the bytes only: lose or change them, which the session notices. The messages are in [`wire`] and
//! `docs/reference/relay.md`; [`meet`] and [`pair`] are the ends. The relay itself is the crate `sealway-drop-relay`.

mod client;
mod socket;
pub mod wire;

pub(crate) use client::seen;
pub use client::{Meeting, meet, pair};
pub use socket::PATIENCE;
