//! What an end brings to the handshake.

use std::fmt;

use sealway_aead::choose::Offer;
use zeroize::Zeroizing;

use super::StaticKey;
use crate::terms::{Kem, Mode, Role};

/// What an end brings to the handshake.
#[derive(Debug)]
pub struct Config {
    /// Which end this is.
    pub role: Role,
    /// How the ends know each other. Both must have the same kind.
    pub auth: Auth,
    /// The suites this end can use.
    pub offer: Offer,
    /// What an initiator proposes; what a responder insists on if it is the stronger one.
    pub kem: Kem,
    /// What the caller knows that both ends must have alike, such as its own protocol and version. Bound, not sent.
    pub prologue: Vec<u8>,
}

/// How the ends know each other.
pub enum Auth {
    /// By a secret that may be short: an attacker has one guess a handshake, see [`super::Handshake::guess_spent`].
    Code(Zeroizing<Vec<u8>>),
    /// By static keys.
    Keys {
        /// This end's.
        own: StaticKey,
        /// What is expected of the other end's.
        peer: PeerKey,
    },
}

impl Auth {
    /// Which of the two.
    pub const fn mode(&self) -> Mode {
        match self {
            Auth::Code(_) => Mode::Code,
            Auth::Keys { .. } => Mode::Keys,
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Auth::Code(_) => f.write_str("Code"),
            Auth::Keys { own, peer } => f.debug_struct("Keys").field("own", own).field("peer", peer).finish(),
        }
    }
}

/// What is expected of the other end's static key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PeerKey {
    /// This one.
    Pinned([u8; 32]),
    /// One of these.
    OneOf(Vec<[u8; 32]>),
    /// Any. Whoever is there is told to the caller, who compares the check string or remembers the key.
    Unknown,
}

impl PeerKey {
    pub(super) fn accepts(&self, key: &[u8; 32]) -> bool {
        match self {
            PeerKey::Pinned(pinned) => pinned == key,
            PeerKey::OneOf(keys) => keys.contains(key),
            PeerKey::Unknown => true,
        }
    }
}
