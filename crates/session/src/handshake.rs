//! The handshake: three flights, after which both ends have the same secrets and know with whom.
//!
//! ```text
//! initiator                                                    responder
//! 1  offer, X25519, ML-KEM key, [SPAKE2], commitment  ────────►
//!    ◄──────── offer, choice, X25519, ML-KEM ciphertext, [SPAKE2], nonce, {static key}, confirmation  2
//! 3  {static key, nonce committed to}, confirmation  ────────►
//! ```
//!
//! What is in brackets is there with a code phrase only, `{…}` is sealed, static keys are there without a code phrase only. The
//! initiator may send records right after flight 3.

mod config;
mod dh;
mod flight;
mod kem;
mod machine;
mod pake;
mod schedule;
mod step;

use std::fmt;

use sealway_aead::Suite;

pub use config::{Auth, Config, PeerKey};
pub use dh::StaticKey;
pub use machine::Handshake;

pub use crate::refusal::Refusal;
pub use crate::terms::{Kem, Mode, Role};

use crate::record::{RecvHalf, SendHalf};
use crate::{CheckString, Session};

/// What a finished handshake leaves.
pub struct Established {
    /// The suite of all records.
    pub suite: Suite,
    /// This end's role.
    pub role: Role,
    /// The key encapsulation that was used.
    pub kem: Kem,
    /// The other end's static key, which it proved to have; `None` with a code phrase.
    ///
    /// With [`PeerKey::Unknown`] it is the key of whoever is there: compare [`Established::check`] before believing in it.
    pub peer_key: Option<[u8; 32]>,
    /// For two people to compare.
    pub check: CheckString,
    /// What this end sends on the connection of the handshake.
    pub send: SendHalf,
    /// What it receives there.
    pub recv: RecvHalf,
    /// Secrets and more connections.
    pub session: Session,
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Established")
            .field("suite", &self.suite)
            .field("role", &self.role)
            .field("kem", &self.kem)
            .field("peer_key", &self.peer_key)
            .finish_non_exhaustive()
    }
}
