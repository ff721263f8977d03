//! The lab on two hosts: a channel between the one that measures and the one that responds.
//!
//! Who measures connects ([`Link::connect`]); who responds listens ([`serve`]) and does a [`Job`] for one client at a time. Both
//! have the same [`Token`]: the handshake of `sealway-session` proves it without showing it, and its records carry what follows. What
//! the messages of a job mean is the job's matter; what is here is bounded whatever they are:
//!
//! - A handshake takes 10 s at most, a message 64 KiB, silence 5 s, a client 12 h. Who measures says something each second.
//! - A wrong token and another protocol look alike from outside. They keep a place among the few handshakes at once, never a turn.
//! - When the channel ends, however it does, the job is dropped with all that it has started.

mod channel;
mod link;
mod serve;
#[cfg(test)]
mod tests;
mod token;

use std::fmt;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use link::Link;
pub use serve::{Event, Job, serve};
pub use token::{Token, TokenError};

use crate::ending::Ending;
use crate::result::Responder;

/// What figures of a run on two hosts cannot show.
pub(crate) const LIMITS: [&str; 3] = [
    "The path between the two hosts is part of every figure: a rate near that of direct is the network's, not a program's.",
    "Each host measures with its own clock; there is no delay of one way, and none is claimed.",
    "One configuration a transport, with defaults elsewhere: other settings can be faster or slower.",
];

/// The version of what both ends say. Ends of different versions part.
const VERSION: u32 = 1;

/// Most bytes of a message.
pub(crate) const MAX_MESSAGE: usize = 64 * 1024;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long the end that measures may say nothing.
const SILENCE: Duration = Duration::from_secs(5);

/// How often it says something.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long an answer may take: programs start in the meantime, and what hangs is given 30 s.
const ANSWER: Duration = Duration::from_secs(60);

/// How long one client may be served.
const SESSION: Duration = Duration::from_secs(12 * 60 * 60);

/// What a responder says first.
#[derive(Debug, Deserialize, Serialize)]
struct Greeting {
    version: u32,
    responder: Responder,
}

/// Reads what a responder says first, for the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads_greeting(said: &[u8]) {
    match link::read::<Greeting>(said) {
        Ok(greeting) => assert!(serde_json::to_vec(&greeting).is_ok_and(|said| link::read::<Greeting>(&said).is_ok())),
        Err(error) => assert_eq!(error.ending(), Ending::RemoteLost),
    }
}

/// Why two hosts do not measure together.
#[derive(Debug)]
#[non_exhaustive]
pub enum RemoteError {
    /// The other host cannot be reached: the network or the address.
    Connect {
        /// Where to.
        address: String,
        /// The system's own error.
        source: io::Error,
    },
    /// The other end closed the connection in the handshake, or is none.
    Refused,
    /// The other end serves another client.
    Busy,
    /// The channel ended or stood still.
    Lost {
        /// What happened, for the reader.
        what: String,
    },
    /// The other end says what no correct one does.
    Malformed {
        /// What, for the reader.
        what: String,
    },
    /// The other end is of another version.
    OtherVersion {
        /// What it has.
        theirs: u32,
    },
    /// This machine does not give what it takes.
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's own words.
        what: String,
    },
}

impl RemoteError {
    fn lost(what: impl fmt::Display) -> RemoteError {
        RemoteError::Lost { what: what.to_string() }
    }

    fn malformed(what: impl fmt::Display) -> RemoteError {
        RemoteError::Malformed { what: what.to_string() }
    }

    fn system(doing: &'static str, what: impl fmt::Display) -> RemoteError {
        let what = what.to_string();
        RemoteError::System { doing, what }
    }

    /// How the command ends that fails with it.
    pub const fn ending(&self) -> Ending {
        match self {
            RemoteError::System { .. } => Ending::Failed,
            _ => Ending::RemoteLost,
        }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteError::Connect { address, source } => write!(f, "cannot connect to {address}: {source}"),
            RemoteError::Refused => {
                f.write_str("the other end refused: the token is not its own, or it is no `sealway lab respond`")
            }
            RemoteError::Busy => f.write_str("the other end serves another client; try again when that is done"),
            RemoteError::Lost { what } => write!(f, "the other host is lost: {what}"),
            RemoteError::Malformed { what } => write!(f, "the other host says what it must not: {what}"),
            RemoteError::OtherVersion { theirs } => write!(
                f,
                "the other host speaks version {theirs} of the lab's protocol, this one {VERSION}; run the same sealway on both"
            ),
            RemoteError::System { doing, what } => write!(f, "cannot {doing}: {what}"),
        }
    }
}

impl std::error::Error for RemoteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RemoteError::Connect { source, .. } => Some(source),
            _ => None,
        }
    }
}
