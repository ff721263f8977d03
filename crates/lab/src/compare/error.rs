//! Why two runs cannot be compared.

use std::fmt;

use super::{CONTROLS, Side};
use crate::ending::Ending;

/// Why two runs cannot be compared, with advice in its text. All are faults of the input, none of the lab.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CompareError {
    /// The file was written by a newer version.
    NewerSchema {
        /// The run.
        side: Side,
        /// Its schema.
        found: u32,
        /// The highest schema this version reads.
        known: u32,
    },
    /// The run has no results.
    Empty {
        /// The run.
        side: Side,
    },
    /// The run contradicts itself or the format.
    Malformed {
        /// The run.
        side: Side,
        /// The row.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// No peer that may be control is in both runs with equal version.
    NoControl {
        /// For each candidate, why not; empty when no candidate is in either run.
        why: Vec<String>,
    },
    /// The control that was named cannot serve.
    ControlUnfit {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
}

impl CompareError {
    /// How the command ends.
    pub const fn ending(&self) -> Ending {
        match self {
            CompareError::NewerSchema { .. } => Ending::NewerSchema,
            CompareError::Empty { .. }
            | CompareError::Malformed { .. }
            | CompareError::NoControl { .. }
            | CompareError::ControlUnfit { .. } => Ending::Misused,
        }
    }
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::NewerSchema { side, found, known } => write!(
                f,
                "the {} run has schema {found}, this version reads up to {known}: compare with the version that wrote it",
                side.as_str()
            ),
            CompareError::Empty { side } => write!(
                f,
                "the {} run has no results: it was cut short or nothing was measured; run the lab again",
                side.as_str()
            ),
            CompareError::Malformed { side, place, what } => {
                write!(
                    f,
                    "the {} run is not a valid result file: {place}: {what}; use the file as the lab wrote it",
                    side.as_str()
                )
            }
            CompareError::NoControl { why } => {
                f.write_str("the runs share no control, a peer of equal version measured in both")?;
                if !why.is_empty() {
                    write!(f, " ({})", why.join("; "))?;
                }
                write!(
                    f,
                    ": measure both with the same build of one of {}, or name another control",
                    CONTROLS.join(", ")
                )
            }
            CompareError::ControlUnfit { name, why } => write!(
                f,
                "{name:?} cannot be the control: {why}; name a peer of equal version in both runs, or none to let the \
                 lab choose"
            ),
        }
    }
}

impl std::error::Error for CompareError {}
