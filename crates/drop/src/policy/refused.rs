//! What is refused before anybody is asked to come.

use std::fmt;

use sealway_session::code::CodeError;

use super::End;
use crate::key::KeyTextError;

/// Why options, or what was typed, cannot be acted on. Whoever gave them has to change something.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing says where the other end is, and it would wait for this one.
    Nowhere(End),
    /// Nothing says who the other end is, and there is nobody to compare the check words.
    NobodyCompares,
    /// There is nobody to ask whether to take what is offered.
    NobodyAccepts,
    /// There is nobody to ask what becomes of names that are taken.
    NobodyChooses,
    /// Ends meet at a relay by a code or by keys.
    RelayNeedsProof,
    /// No code was given.
    NoCode {
        /// Somebody was asked for it.
        asked: bool,
    },
    /// What was given is no code.
    Mistyped(CodeError),
    /// What is not sealed was not told where to go.
    PlainNowhere,
    /// What is not sealed would leave this machine.
    PlainElsewhere,
    /// The name of another end is not known, and is no key.
    NoKey {
        /// What was given.
        text: String,
        /// Why it is no key.
        error: KeyTextError,
    },
}

impl Refused {
    /// What to do about it, where the words do not say so already.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Refused::Nowhere(end) => {
                let other = end.other();
                return Some(format!(
                    "give `--connect HOST:PORT` as `sealway {other}` shows it there; or wait here with `--listen 0.0.0.0:4000` and \
                     let it come with `--connect`; or meet with `--relay HOST:PORT` at both ends"
                ));
            }
            Refused::NobodyCompares => {
                "use a code or --peer KEY in place of --anyone; --unchecked takes whoever comes first"
            }
            Refused::NobodyAccepts => "give --yes to take it without being asked",
            Refused::NobodyChooses => "give --conflict rename, skip or overwrite",
            Refused::RelayNeedsProof => "leave out --anyone",
            Refused::NoCode { asked: true } => "type it when asked, or set SEALWAY_CODE; or use --peer KEY or --anyone",
            Refused::NoCode { asked: false } => {
                "write it to standard input, or set SEALWAY_CODE; or use --peer KEY or --anyone"
            }
            Refused::PlainNowhere | Refused::PlainElsewhere => return None,
            Refused::Mistyped(_) => "type it as the sender shows it, such as 7-word-word-word",
            Refused::NoKey { .. } => {
                "`sealway identity` at the other end shows its key; `sealway identity remember NAME KEY` gives it a name"
            }
        };
        Some(hint.to_owned())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Nowhere(end) => write!(
                f,
                "nothing says where the other end is, and `sealway {}` waits for this one",
                end.other()
            ),
            Refused::NobodyCompares => {
                f.write_str("nothing says who the other end is, and there is no terminal to compare the check words on")
            }
            Refused::NobodyAccepts => f.write_str("there is no terminal to ask on whether to take what is offered"),
            Refused::NobodyChooses => {
                f.write_str("there is no terminal to ask on what becomes of names that are taken")
            }
            Refused::RelayNeedsProof => f.write_str("a relay brings ends together by a code or by keys"),
            Refused::NoCode { .. } => f.write_str("no code was given"),
            Refused::Mistyped(error) => error.fmt(f),
            Refused::PlainNowhere => f.write_str("--via grpc-plain needs --connect or --listen"),
            Refused::PlainElsewhere => {
                f.write_str("nothing is sealed with --via grpc-plain, so it goes over loopback only")
            }
            Refused::NoKey { text, error } => write!(
                f,
                "--peer {text}: no key of that name is known, and it is no key: {error}"
            ),
        }
    }
}

impl std::error::Error for Refused {}
