//! What handshake, records and errors all speak of: the two ends, the ways to know each other, key encapsulations, limits.

use std::fmt;

use sealway_aead::derive::Direction;

/// Longest payload, bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Highest kind that applications may use.
pub const MAX_KIND: u8 = 47;

/// Which end of the handshake: whoever dialled is the initiator.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// The end that dialled and speaks first.
    Initiator,
    /// The end that was dialled.
    Responder,
}

impl Role {
    /// The other end's.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Role::Initiator => Role::Responder,
            Role::Responder => Role::Initiator,
        }
    }

    /// The way in which this end seals.
    pub const fn direction(self) -> Direction {
        match self {
            Role::Initiator => Direction::InitiatorToResponder,
            Role::Responder => Direction::ResponderToInitiator,
        }
    }

    /// Its number in what is derived.
    pub(crate) const fn id(self) -> u8 {
        match self {
            Role::Initiator => 1,
            Role::Responder => 2,
        }
    }
}

/// The two kinds of [`Auth`](crate::handshake::Auth).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// A code phrase.
    Code,
    /// Static keys.
    Keys,
}

impl Mode {
    pub(crate) const fn id(self) -> u8 {
        match self {
            Mode::Code => 1,
            Mode::Keys => 2,
        }
    }

    pub(crate) const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Mode::Code),
            2 => Some(Mode::Keys),
            _ => None,
        }
    }
}

/// A key encapsulation.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kem {
    /// ML-KEM-768: key 1184 bytes, ciphertext 1088.
    MlKem768,
    /// ML-KEM-1024: key 1568 bytes, ciphertext 1568.
    MlKem1024,
}

impl fmt::Display for Kem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kem::MlKem768 => "ml-kem-768",
            Kem::MlKem1024 => "ml-kem-1024",
        })
    }
}

impl Kem {
    pub(crate) const fn id(self) -> u8 {
        match self {
            Kem::MlKem768 => 1,
            Kem::MlKem1024 => 2,
        }
    }

    pub(crate) const fn from_id(id: u8) -> Option<Self> {
        match id {
            1 => Some(Kem::MlKem768),
            2 => Some(Kem::MlKem1024),
            _ => None,
        }
    }
}
