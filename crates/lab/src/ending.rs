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
    /// A required peer is missing, or a peer failed.
    PeerMissing,
    /// The other of two hosts refused or was lost.
    RemoteLost,
    /// A file was written by a newer version.
    NewerSchema,
    /// The lab or the machine failed.
    Failed,
}

impl Ending {
    /// How a finished run ends: wrong data before all else, then a peer that failed, then interruption, then noise under
    /// `strict`.
    ///
    /// Wrong data is also what a peer delivers that lets pass what was changed on the wire of a stack that seals. Under
    /// `strict`, a run is undecidable when any of its rows is marked `unusable`.
    pub fn of(result: &RunResult, strict: bool) -> Ending {
        let warned = |code: WarningCode| result.warnings.iter().any(|warning| warning.code == code.code());
        let unusable = || result.results.iter().any(|row| row.has("unusable"));
        if warned(WarningCode::CellWrong) || warned(WarningCode::Unauthenticated) {
            Ending::Wrong
        } else if warned(WarningCode::CellFailed) {
            Ending::PeerMissing
        } else if !result.complete {
            Ending::Interrupted
        } else if strict && unusable() {
            Ending::Undecidable
        } else {
            Ending::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(codes: &[WarningCode], complete: bool) -> RunResult {
        RunResult {
            complete,
            warnings: codes.iter().map(|code| code.warn("peer", "It did.")).collect(),
            ..RunResult::default()
        }
    }

    #[test]
    fn a_peer_that_lies_or_fails_is_heard_in_the_exit_code() {
        let of = |codes: &[WarningCode], complete| Ending::of(&run(codes, complete), false);
        assert_eq!(of(&[], true), Ending::Done);
        assert_eq!(of(&[WarningCode::CellUnavailable], true), Ending::Done);
        assert_eq!(of(&[WarningCode::CellFailed], true), Ending::PeerMissing);
        assert_eq!(
            of(&[WarningCode::CellFailed, WarningCode::CellWrong], true),
            Ending::Wrong
        );
        assert_eq!(of(&[WarningCode::Unauthenticated], true), Ending::Wrong);
        assert_eq!(of(&[WarningCode::CellWrong], false), Ending::Wrong);
        assert_eq!(of(&[], false), Ending::Interrupted);
    }
}
