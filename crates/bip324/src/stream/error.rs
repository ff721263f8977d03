//! Why a connection over a stream ended.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::{Error, Fault};

/// Why a connection ended, or why a call was refused. Nothing of it is to be told to the peer.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// The peer, or the calling code, broke a rule of BIP324.
    Protocol(Error),
    /// The peer went away in the middle of the handshake or of a message.
    CutOff,
    /// The handshake was not over in time.
    HandshakeTime {
        /// The limit.
        limit: Duration,
    },
    /// A message that had begun did not get on within the patience that was set.
    Stalled {
        /// How long was waited.
        after: Duration,
    },
    /// Something came after the end of a stream of bytes.
    AfterEnd,
    /// The stream underneath failed.
    Io(io::Error),
}

impl TransportError {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            TransportError::Protocol(error) => error.fault(),
            TransportError::Io(_) => Fault::Environment,
            _ => Fault::Peer,
        }
    }
}

impl From<Error> for TransportError {
    fn from(error: Error) -> Self {
        TransportError::Protocol(error)
    }
}

impl From<io::Error> for TransportError {
    fn from(error: io::Error) -> Self {
        TransportError::Io(error)
    }
}

impl From<TransportError> for io::Error {
    fn from(error: TransportError) -> Self {
        let kind = match &error {
            TransportError::Io(_) => {
                return match error {
                    TransportError::Io(error) => error,
                    other => io::Error::other(other),
                };
            }
            TransportError::CutOff => io::ErrorKind::UnexpectedEof,
            TransportError::HandshakeTime { .. } | TransportError::Stalled { .. } => io::ErrorKind::TimedOut,
            TransportError::Protocol(Error::Closed) => io::ErrorKind::NotConnected,
            TransportError::Protocol(_) | TransportError::AfterEnd => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransportError::Protocol(error) => error.fmt(f),
            TransportError::CutOff => f.write_str("the peer closed the connection in the middle of something"),
            TransportError::HandshakeTime { limit } => {
                write!(f, "the handshake was not over within {limit:?}")
            }
            TransportError::Stalled { after } => {
                write!(f, "a message that had begun was not whole after {after:?}")
            }
            TransportError::AfterEnd => f.write_str("something came after the end of a byte stream"),
            TransportError::Io(error) => error.fmt(f),
        }
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            TransportError::Protocol(error) => Some(error),
            TransportError::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Why there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandshakeError {
    /// What happened.
    pub error: TransportError,
    /// True if nothing came from the peer although it was sent at least 24 bytes, the length of a v1 header: it may be one
    /// that speaks v1 only, and another connection, in v1, is worth a try. Never true for the end that accepted.
    pub peer_may_speak_v1_only: bool,
    /// Bytes that the peer had sent.
    pub bytes_received: u64,
    /// True if the peer's garbage terminator had not come. A peer of another network never sends the one that is awaited, nor
    /// does a program that speaks something else.
    pub before_terminator: bool,
}

impl From<Error> for HandshakeError {
    /// A handshake that did not begin.
    fn from(error: Error) -> Self {
        HandshakeError {
            error: error.into(),
            peer_may_speak_v1_only: false,
            bytes_received: 0,
            before_terminator: false,
        }
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for HandshakeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}
