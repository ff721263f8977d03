//! How a command of the lab ends, for the program that was asked to run it.

use crate::measure::WarningCode;
use crate::result::RunResult;

/// How a run, a comparison, or an attempt at one ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Done, also when a peer was absent and not required.
    Done,
    /// A subject gave wrong data.
    Wrong,
    /// Something became slower.
    Slower,
    /// Too noisy, or too little in common, to say anything.
    Undecidable,
    /// Told to stop; what is known by then is kept.
    Interrupted,
    /// The caller asked for what cannot be done.
    Misused,
    /// A required peer is missing or did not start.
    PeerMissing,
    /// A file was written by a newer version.
    NewerSchema,
    /// The lab or the machine failed.
    Failed,
}

impl Ending {
    /// How a finished run ends: wrong data before all else, then interruption, then noise under `strict`.
    ///
    /// Under `strict`, a run is undecidable when any of its rows is marked `unusable`.
    pub fn of(result: &RunResult, strict: bool) -> Ending {
        let wrong = WarningCode::CellWrong.code();
        let unusable = || {
            result
                .results
                .iter()
                .any(|row| row.flags.iter().any(|flag| flag == "unusable"))
        };
        if result.warnings.iter().any(|warning| warning.code == wrong) {
            Ending::Wrong
        } else if !result.complete {
            Ending::Interrupted
        } else if strict && unusable() {
            Ending::Undecidable
        } else {
            Ending::Done
        }
    }
}
