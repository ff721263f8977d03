//! Why ends do not find each other.

use std::fmt;

/// Why ends do not find each other.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// This machine cannot speak multicast DNS.
    Multicast(mdns_sd::Error),
    /// The system gives no random bytes.
    Random(getrandom::Error),
    /// Nobody has answered.
    Nobody,
    /// More than one has answered, of whom at most one is meant.
    Several,
    /// The search was stopped.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Multicast(error) => write!(f, "multicast DNS does not work here: {error}"),
            Error::Random(error) => write!(f, "the system gives no random bytes: {error}"),
            Error::Nobody => f.write_str("nobody on this network answers"),
            Error::Several => f.write_str("more than one on this network answers"),
            Error::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Multicast(error) => Some(error),
            Error::Random(error) => Some(error),
            Error::Nobody | Error::Several | Error::Stopped => None,
        }
    }
}

impl From<mdns_sd::Error> for Error {
    fn from(error: mdns_sd::Error) -> Error {
        Error::Multicast(error)
    }
}
