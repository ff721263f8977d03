//! Exit codes of the lab's commands.

use crate::measure::WarningCode;
use crate::result::RunResult;

/// Why a command ended, as the number the shell sees.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Exit {
    /// Done, also when a peer was absent and not required.
    Done = 0,
    /// The lab itself failed.
    Internal = 1,
    /// The command line or a configuration is wrong.
    Usage = 2,
    /// A subject gave wrong data.
    Verification = 3,
    /// A required peer is missing or did not start.
    PeerMissing = 4,
    /// A regression was found or a gate was not met.
    Regression = 5,
    /// Too noisy or undecidable, under `--strict`.
    Undecidable = 6,
    /// The remote end refused or was lost.
    Remote = 7,
    /// The store is unavailable or has a newer schema.
    Store = 8,
    /// The other end is not who it should be: wrong code, unexpected key.
    Identity = 9,
    /// A file or folder of this machine cannot be read or written.
    Storage = 10,
    /// Done, but for some files.
    Partial = 11,
    /// Interrupted; partial results were written.
    Interrupted = 130,
}

impl Exit {
    /// The number for the shell.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// How a finished run ends: wrong data before all else, then interruption, then noise under `strict`.
    ///
    /// Under `strict`, a run is undecidable when any of its rows is marked `unusable`.
    pub fn of(result: &RunResult, strict: bool) -> Exit {
        let wrong = WarningCode::CellWrong.code();
        if result.warnings.iter().any(|warning| warning.code == wrong) {
            Exit::Verification
        } else if !result.complete {
            Exit::Interrupted
        } else if strict
            && result
                .results
                .iter()
                .any(|row| row.flags.iter().any(|flag| flag == "unusable"))
        {
            Exit::Undecidable
        } else {
            Exit::Done
        }
    }
}
