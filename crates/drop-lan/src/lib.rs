//! Two ends of one network find each other, by multicast DNS (RFC 6762) and DNS-based service discovery (RFC 6763).
//!
//! The end that waits announces `_sealway._tcp.local.` under a random name, made anew each time. Behind it stands a [`Sign`]: the
//! number of a code, which is public, or tags for those whose keys it knows. Nothing announced depends on the words of a code, so
//! they cannot be guessed from it; anybody on the network can answer for a number, and then has the one guess that a handshake
//! allows. So [`search`] takes the answers of one end only: those under one name, with one port. Who copies both is taken for that end,
//! and can keep the two apart, as whoever may answer can; one of its addresses has the guess.

#![forbid(unsafe_code)]

mod announce;
mod error;
mod near;
mod question;
mod search;
mod sign;

pub use announce::{Announced, announce};
pub use error::Error;
pub use search::search;
pub use sign::{MAX_PAIRS, Pair, Sign};

/// What ends announce themselves as.
const SERVICE: &str = "_sealway._tcp.local.";

/// The UDP port of multicast DNS.
pub const MDNS_PORT: u16 = 5353;

/// Speaks multicast DNS on all interfaces but loopback and point-to-point ones.
fn daemon() -> Result<mdns_sd::ServiceDaemon, Error> {
    let daemon = mdns_sd::ServiceDaemon::new()?;
    daemon.disable_interface(vec![mdns_sd::IfKind::LoopbackV4, mdns_sd::IfKind::LoopbackV6])?;
    Ok(daemon)
}
