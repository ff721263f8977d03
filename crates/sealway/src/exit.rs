//! Exit codes of the commands.

use std::process::ExitCode;

use sealway_lab::ending::Ending;

/// Declares the codes with their words, so that none can be without.
macro_rules! exits {
    ($($(#[doc = $doc:literal])* $Name:ident = $code:literal, $words:literal;)*) => {
        /// Why a command ended, as the number the shell sees.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        #[repr(u8)]
        pub(crate) enum Exit {
            $($(#[doc = $doc])* $Name = $code,)*
        }

        impl Exit {
            /// Every code, lowest first.
            pub(crate) const ALL: &'static [Exit] = &[$(Exit::$Name),*];

            /// What it means, in the words of help.
            pub(crate) const fn words(self) -> &'static str {
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
    /// A required peer is missing, or a peer failed.
    PeerMissing = 4, "a required peer is missing, or a peer did not start or failed";
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
    pub(crate) fn help() -> String {
        list(Exit::ALL.iter().map(|exit| (*exit, exit.words())))
    }

    /// The same of a command that ends with these alone, in words of its own.
    pub(crate) fn help_of(some: &[(Exit, &str)]) -> String {
        list(some.iter().copied())
    }

    /// The number for the shell.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

fn list<'a>(exits: impl Iterator<Item = (Exit, &'a str)>) -> String {
    let lines = exits.map(|(exit, words)| format!("\n{:>5}  {words}", exit.code()));
    std::iter::once("Exit codes:".to_owned()).chain(lines).collect()
}

/// What a run or a comparison of the lab came to.
impl From<Ending> for Exit {
    fn from(ending: Ending) -> Exit {
        match ending {
            Ending::Done => Exit::Done,
            Ending::Wrong => Exit::Verification,
            Ending::Slower => Exit::Regression,
            Ending::Undecidable => Exit::Undecidable,
            Ending::Interrupted => Exit::Interrupted,
            Ending::Misused => Exit::Usage,
            Ending::PeerMissing => Exit::PeerMissing,
            Ending::RemoteLost => Exit::Remote,
            Ending::NewerSchema => Exit::Store,
            Ending::Failed => Exit::Internal,
        }
    }
}
