//! What can go wrong before anybody comes.

use std::fmt;
use std::io;
use std::path::PathBuf;

use sealway_drop::fault::{Failure, Fault};
use sealway_drop::names::Escaped;

/// Why nothing can be served.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// What is to be shared cannot be opened.
    Share {
        /// What was named.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Two things that are to be shared are called the same.
    Twice(Vec<u8>),
    /// Files can be taken into one folder only.
    NoFolder,
    /// Something of the certificate or its key.
    Certificate {
        /// What was being done.
        doing: String,
        /// What is wrong.
        why: String,
    },
    /// The address cannot be listened at, or the system gives no threads.
    Listen {
        /// What was being done.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
    /// The system gives no random bytes.
    Random(getrandom::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Share { path, source } => {
                write!(f, "{}: {source}", Escaped(path.as_os_str().as_encoded_bytes()))
            }
            Error::Twice(name) => write!(
                f,
                "two of the paths are called {}; share the folder they are in, or one after the other",
                Escaped(name)
            ),
            Error::NoFolder => f.write_str("files can be sent into one shared folder only, not into a list of names"),
            Error::Certificate { doing, why } => write!(f, "{doing}: {why}"),
            Error::Listen { doing, source } => write!(f, "{doing}: {source}"),
            Error::Random(error) => write!(f, "the system gives no random bytes: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Share { source, .. } | Error::Listen { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Failure for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Share { .. } | Error::Certificate { .. } | Error::Random(_) => Fault::Storage,
            Error::Twice(_) | Error::NoFolder => Fault::Usage,
            Error::Listen { .. } => Fault::Network,
        }
    }
}
