//! What can go wrong, and how a stream says it.

use std::{fmt, io};

/// Why a handshake or a stream failed. The connection is over.
#[derive(Debug)]
pub enum Error {
    /// The connection failed, or ended too early.
    Io(io::Error),
    /// The handshake failed: by the peer's fault, or because the configuration does not allow it.
    Handshake(rustls::Error),
    /// A record or the peer's use of records was wrong, or the peer gave up.
    Records(sealway_tls::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(error) => error.fmt(f),
            Error::Handshake(error) => error.fmt(f),
            Error::Records(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(error) => error.source(),
            Error::Handshake(error) => error.source(),
            Error::Records(error) => error.source(),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Error {
        Error::Handshake(error)
    }
}

impl From<sealway_tls::Error> for Error {
    fn from(error: sealway_tls::Error) -> Error {
        Error::Records(error)
    }
}

impl From<Error> for io::Error {
    /// An alert is rustls' error whether it came during the handshake or after it: nobody has to look for two.
    fn from(error: Error) -> io::Error {
        match error {
            Error::Io(error) => error,
            Error::Handshake(error) => io::Error::new(io::ErrorKind::InvalidData, error),
            Error::Records(sealway_tls::Error::Alerted(number)) => {
                io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(number.into()))
            }
            Error::Records(error) => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}
