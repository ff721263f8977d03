//! What goes wrong with what is sent.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use sealway_drop::fault::{Failure, Fault};
use sealway_drop::names::{NameError, RelPath};

/// An error of scanning or reading.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A path to send that cannot be looked at.
    Argument {
        /// The path, escaped.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Two paths to send would have one name.
    SameName {
        /// The name, escaped.
        name: String,
        /// The paths, escaped.
        paths: [String; 2],
    },
    /// A path to send whose name cannot travel.
    Name {
        /// The path, escaped.
        path: String,
        /// Why.
        source: NameError,
    },
    /// A path to send that is no file, directory or symbolic link.
    Special {
        /// The path, escaped.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// What comes in a stream cannot be kept until it is sent.
    Spool {
        /// The folder that was to hold it, escaped.
        folder: String,
        /// Why.
        source: io::Error,
    },
    /// Something that cannot be read.
    Unreadable {
        /// Its path, escaped.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What was a file is none any more.
    NotAFile {
        /// Its path.
        path: RelPath,
    },
    /// A file has become shorter while it was sent.
    Shorter {
        /// Its path.
        path: RelPath,
        /// Bytes it had.
        size: u64,
        /// Where it ends now, at most.
        end: u64,
    },
    /// No such entry was found by the scan.
    Unknown {
        /// Its path.
        path: RelPath,
    },
}

impl Failure for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Argument { .. }
            | Error::SameName { .. }
            | Error::Name { .. }
            | Error::Special { .. }
            | Error::Unknown { .. } => Fault::Usage,
            Error::Spool { .. } | Error::Unreadable { .. } | Error::NotAFile { .. } | Error::Shorter { .. } => {
                Fault::Storage
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Argument { path, source } => write!(f, "cannot send {path}: {source}"),
            Error::SameName { name, paths: [a, b] } => {
                write!(
                    f,
                    "{a} and {b} would both be sent as {name}; send them one after the other, or rename one"
                )
            }
            Error::Name { path, source } => write!(f, "cannot send {path}: {source}"),
            Error::Special { path, what } => write!(f, "cannot send {path}: it is {what}"),
            Error::Spool { folder, source } => write!(
                f,
                "cannot keep standard input in {folder} until it is sent: {source}; set TMPDIR to a folder with more room"
            ),
            Error::Unreadable { path, source } => write!(f, "cannot read {path}: {source}"),
            Error::NotAFile { path } => write!(f, "{path} is no regular file any more; it changed while it was sent"),
            Error::Shorter { path, size, end } => {
                write!(
                    f,
                    "{path} had {size} bytes and ends at {end} now; it changed while it was sent"
                )
            }
            Error::Unknown { path } => write!(f, "{path} is not part of what is sent"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Argument { source, .. } | Error::Spool { source, .. } | Error::Unreadable { source, .. } => {
                Some(source)
            }
            Error::Name { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Something that is not sent.
#[derive(Debug)]
pub struct Skipped {
    /// Its path, escaped.
    pub path: String,
    /// Why.
    pub reason: Skip,
}

/// Why something is not sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Skip {
    /// It is no file, directory or symbolic link, but this.
    Special(&'static str),
    /// Its name cannot travel, or it is an unfinished transfer.
    Name(NameError),
    /// It cannot be read.
    Unreadable(io::Error),
    /// It was something else a moment before.
    Changed,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.reason {
            Skip::Special(what) => write!(f, "{path} is {what} and is not sent"),
            Skip::Name(error) => write!(f, "{path} is not sent: {error}"),
            Skip::Unreadable(error) => write!(f, "{path} is not sent: {error}"),
            Skip::Changed => write!(f, "{path} is not sent: it changed while it was looked at"),
        }
    }
}
