//! Why there is no result.

use std::fmt;
use std::io;

use crate::ending::Ending;
use crate::plan::PlanError;
use crate::run::{NoEntropy, ScheduleError};

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The caller asked for what cannot be planned.
    Plan(PlanError),
    /// The caller named a peer that does not exist.
    UnknownPeer {
        /// The name.
        name: String,
        /// The names there are.
        known: &'static [&'static str],
    },
    /// A peer that was asked for by name is not there.
    PeerMissing {
        /// The name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// A GPU was asked for, and there is none that can be used. No failure: there is nothing to measure.
    NoDevice {
        /// Why.
        why: String,
    },
    /// A GPU is there and does not work.
    Device {
        /// What it said.
        why: String,
    },
    /// The request names what cannot be measured between two hosts.
    OneHostOnly {
        /// What.
        what: String,
    },
    /// The request does not say where our own program is.
    NoProgram,
    /// The system refused what it takes to emulate a link.
    Link(io::Error),
    /// The system gave no random bytes.
    Entropy(NoEntropy),
    /// The lab's own mistake.
    Schedule(ScheduleError),
}

impl From<PlanError> for LabError {
    fn from(error: PlanError) -> LabError {
        LabError::Plan(error)
    }
}

impl LabError {
    /// How the command ends that fails with it.
    pub const fn ending(&self) -> Ending {
        match self {
            LabError::NoDevice { .. } => Ending::Done,
            LabError::Plan(_) | LabError::UnknownPeer { .. } | LabError::OneHostOnly { .. } => Ending::Misused,
            LabError::PeerMissing { .. } => Ending::PeerMissing,
            LabError::Device { .. }
            | LabError::NoProgram
            | LabError::Link(_)
            | LabError::Entropy(_)
            | LabError::Schedule(_) => Ending::Failed,
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Plan(error) => error.fmt(f),
            LabError::UnknownPeer { name, known } => {
                write!(
                    f,
                    "no peer here is called \"{name}\"; the peers are {}",
                    known.join(", ")
                )
            }
            LabError::PeerMissing { name, why } => write!(f, "peer {name}: {why}"),
            LabError::Device { why } => write!(f, "the GPU does not work: {why}"),
            LabError::NoDevice { why } => write!(f, "no GPU to measure here: {why}"),
            LabError::OneHostOnly { what } => write!(f, "{what} can be measured on one host only; leave out --remote"),
            LabError::NoProgram => f.write_str("the request names no program to measure as sealway"),
            LabError::Link(error) => write!(f, "the link cannot be emulated: {error}"),
            LabError::Entropy(error) => error.fmt(f),
            LabError::Schedule(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {}
