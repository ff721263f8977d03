//! What can be wrong with what this machine keeps.

use std::fmt;
use std::io;

use crate::fault::{Failure, Fault};
use crate::key::PublicKey;

/// Why an identity or the file of known peers cannot be used.
#[derive(Debug)]
pub enum Error {
    /// A system call on a file or folder failed.
    Io {
        /// The file or folder, escaped for print.
        path: String,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The file or folder is not safe from others.
    Exposed {
        /// The file or folder, escaped for print.
        path: String,
        /// What others may do.
        why: &'static str,
        /// The mode that it should have.
        mode: &'static str,
    },
    /// The file is not one of ours.
    Malformed {
        /// The file, escaped for print.
        path: String,
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A name or a day that cannot be kept; the text says what can.
    Unfit(&'static str),
    /// The name is known with another key.
    OtherKey {
        /// The name.
        name: String,
        /// The key it has now.
        found: PublicKey,
        /// The key it is known with.
        known: PublicKey,
    },
    /// The system gives no random bytes, or the library of the derivation refuses.
    Unable(String),
}

impl Failure for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Io { .. } | Error::Unable(_) => Fault::Storage,
            Error::Exposed { .. } | Error::Malformed { .. } | Error::Unfit(_) => Fault::Usage,
            Error::OtherKey { .. } => Fault::Identity,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, doing, source } => write!(f, "{path}: {doing}: {source}"),
            Error::Exposed { path, why, mode } => {
                write!(
                    f,
                    "{path}: {why}; if nobody did so far: chmod {mode} '{path}', else move it away and begin anew"
                )
            }
            Error::Malformed { path, line: 0, what } => write!(f, "{path}: {what}"),
            Error::Malformed { path, line, what } => write!(f, "{path}: line {line}: {what}"),
            Error::Unfit(what) => f.write_str(what),
            Error::OtherKey { name, found, known } => write!(
                f,
                "{name} is known with the key {known} and has the key {found} now; if that is right, forget the old one first"
            ),
            Error::Unable(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
