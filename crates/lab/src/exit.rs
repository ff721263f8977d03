//! Exit codes of the commands.

use crate::measure::WarningCode;
use crate::result::RunResult;

/// Declares the codes with their words, so that none can be without.
macro_rules! exits {
    ($($(#[doc = $doc:literal])* $Name:ident = $code:literal, $words:literal;)*) => {
        /// Why a command ended, as the number the shell sees.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(u8)]
        pub enum Exit {
            $($(#[doc = $doc])* $Name = $code,)*
        }

        impl Exit {
            /// Every code, lowest first.
            pub const ALL: &'static [Exit] = &[$(Exit::$Name),*];

            /// What it means, in the words of help.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Exit::$Name => $words,)*
                }
            }
        }
    };
}

exits! {
    /// Done, also when a peer was absent and not required.
    Done = 0, "done, also when a peer is absent and was not required";
    /// The program itself failed.
    Internal = 1, "internal error";
    /// The command line or a configuration is wrong.
    Usage = 2, "the command line or a configuration is wrong";
    /// A subject gave wrong data.
    Verification = 3, "verification failed: a subject gave wrong data, or what arrived is not what was announced";
    /// A required peer is missing or did not start.
    PeerMissing = 4, "a required peer is missing or did not start";
    /// A regression was found or a gate was not met.
    Regression = 5, "a regression was found or a gate was not met";
    /// Too noisy or undecidable, under `--strict`.
    Undecidable = 6, "too noisy or undecidable, with --strict";
    /// The remote end refused or was lost.
    Remote = 7, "the remote end refused or was lost";
    /// The store is unavailable or has a newer schema.
    Store = 8, "the store is unavailable or has a newer schema";
    /// The other end is not who it should be: wrong code, unexpected key.
    Identity = 9, "wrong code, or a key that is not the expected one";
    /// A file or folder of this machine cannot be read or written.
    Storage = 10, "a file or folder of this machine could not be read or written, or no space is left";
    /// Done, but for some files.
    Partial = 11, "done, but for some files; they are named";
    /// Interrupted; partial results were written.
    Interrupted = 130, "interrupted; partial results were written";
}

impl Exit {
    /// The list for help: every code and what it means.
    pub fn help() -> String {
        let lines = Exit::ALL
            .iter()
            .map(|exit| format!("\n{:>5}  {}", exit.code(), exit.words()));
        std::iter::once("Exit codes:".to_owned()).chain(lines).collect()
    }

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
