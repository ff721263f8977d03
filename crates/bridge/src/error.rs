//! What can go wrong, by whose fault it is.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use sealway_bip324::Fault;
use sealway_bip324_tokio::TransportError;

/// An error of bridge or probe.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An address could not be listened on.
    Listen {
        /// The address.
        on: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The text names no host and port.
    Target {
        /// The text.
        text: String,
    },
    /// The name has no usable address.
    Resolve {
        /// The name.
        name: String,
        /// What the system says, if anything.
        source: Option<io::Error>,
    },
    /// The other side could not be connected to.
    Connect {
        /// What was dialled.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// The system gives no random bytes.
    Random(io::Error),
    /// There is no v2 connection.
    Handshake {
        /// With whom.
        with: &'static str,
        /// Why.
        source: TransportError,
    },
    /// What answers a v2 handshake does not know v2 of this network.
    NoTerminator {
        /// Bytes that came.
        bytes: u64,
        /// How the handshake ended.
        source: TransportError,
    },
    /// Our own version message came back.
    Echo,
    /// A version of the transport that the settings do not allow here.
    Refused {
        /// Which.
        what: &'static str,
    },
    /// A connection ended.
    Transport {
        /// With whom.
        with: &'static str,
        /// Why.
        source: TransportError,
    },
    /// No message was carried for too long.
    Idle {
        /// How long.
        after: Duration,
    },
    /// A message that cannot be what it says.
    Message {
        /// What is wrong.
        what: &'static str,
    },
    /// What was awaited did not come in time.
    Time {
        /// What.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
}

impl Error {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Listen { .. } | Error::Target { .. } => Fault::User,
            Error::Resolve { .. } | Error::Connect { .. } | Error::Random(_) => Fault::Environment,
            Error::NoTerminator { .. } | Error::Echo => Fault::Peer,
            Error::Handshake { source, .. } | Error::Transport { source, .. } => source.fault(),
            Error::Refused { .. } | Error::Idle { .. } | Error::Message { .. } | Error::Time { .. } => Fault::Peer,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Listen { on, source } => write!(f, "cannot listen on {on}: {source}"),
            Error::Target { text } => write!(f, "{text:?} is no HOST:PORT"),
            Error::Resolve { name, source: Some(e) } => write!(f, "{name} has no address: {e}"),
            Error::Resolve { name, source: None } => write!(f, "{name} has no address"),
            Error::Connect { to, source } => write!(f, "cannot connect to {to}: {source}"),
            Error::Random(source) => write!(f, "the system gives no random bytes: {source}"),
            Error::Handshake { with, source } => write!(f, "no v2 handshake with {with}: {source}"),
            Error::NoTerminator { bytes, .. } => {
                let s = if *bytes == 1 { "" } else { "s" };
                write!(f, "answered {bytes} byte{s}, no terminator: another network?")
            }
            Error::Echo => f.write_str("our own version message came back: an echo, not a node"),
            Error::Refused { what } => f.write_str(what),
            Error::Transport { with, source } => write!(f, "the connection with {with} ended: {source}"),
            Error::Idle { after } => write!(f, "no message for {after:?}"),
            Error::Message { what } => f.write_str(what),
            Error::Time { what, limit } => write!(f, "{what} did not come within {limit:?}"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Listen { source, .. } | Error::Connect { source, .. } | Error::Random(source) => Some(source),
            Error::Resolve { source, .. } => source.as_ref().map(|e| e as _),
            Error::Handshake { source, .. } | Error::NoTerminator { source, .. } | Error::Transport { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}
