//! What can go wrong, and whose fault it is.

use std::fmt;
use std::io;

use sealway_session::handshake::Refusal;

use crate::fault::{Cause, Failure, Fault};
use crate::key::PublicKey;

/// How what this end asks of a relay begins.
pub(crate) const ASKING: &str = "asking the relay";

/// How the waiting for another end at a relay begins.
pub(crate) const WAITING: &str = "waiting at the relay";

/// Why a transfer, a share or a mount ended.
#[derive(Debug)]
pub enum Error {
    /// What the caller asked for makes no sense; the text says what to do.
    Usage(String),
    /// The session refused something: a broken record, a wrong code, a key that is not the pinned one.
    Session(sealway_session::Error),
    /// The guess at the code was wrong, or somebody else used it up.
    CodeSpent,
    /// The other end broke the rules of the protocol.
    Protocol(&'static str),
    /// A system call on a connection failed.
    Network {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Something failed in what stands on these connections, such as reading or writing the files of a transfer. [`Error::part`] says what.
    Part(Box<dyn Failure>),
    /// The other end does not accept the key of this one.
    KeyRefused {
        /// The key of this end.
        own: [u8; 32],
    },
    /// The other end said no.
    Declined(String),
    /// This end said no, for this reason.
    SaidNo(String),
    /// The other end ended the transfer and said why.
    Remote(String),
    /// The other end ended the transfer for a reason that programs know.
    OtherEnd(Cause),
    /// This end was told to stop.
    Cancelled,
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Usage(_) => Fault::Usage,
            Error::Session(
                sealway_session::Error::Unauthentic
                | sealway_session::Error::UnknownPeer { .. }
                | sealway_session::Error::OtherMode { .. }
                | sealway_session::Error::Refused(Refusal::WantsCode | Refusal::WantsKeys | Refusal::UnknownKey),
            ) => Fault::Identity,
            // The ends were told what does not fit.
            Error::Session(
                sealway_session::Error::WeakKem { .. }
                | sealway_session::Error::Suites(sealway_aead::Error::NoCommonSuite)
                | sealway_session::Error::Refused(_),
            ) => Fault::Usage,
            Error::Session(_) => Fault::Peer,
            Error::CodeSpent | Error::KeyRefused { .. } => Fault::Identity,
            Error::Protocol(_) => Fault::Peer,
            Error::Network { .. } | Error::Remote(_) | Error::OtherEnd(_) => Fault::Network,
            Error::Part(part) => part.fault(),
            Error::Declined(_) | Error::SaidNo(_) => Fault::Declined,
            Error::Cancelled => Fault::Cancelled,
        }
    }

    /// What this end says of an error of the session; where its key was refused, which that is.
    pub(crate) fn of_session(error: sealway_session::Error, own: Option<[u8; 32]>) -> Self {
        match (error, own) {
            (sealway_session::Error::Refused(Refusal::UnknownKey), Some(own)) => Error::KeyRefused { own },
            (error, _) => Error::Session(error),
        }
    }

    /// What failed, if it is of this kind ([`Error::Part`]).
    pub fn part<F: Failure>(&self) -> Option<&F> {
        let Error::Part(part) = self else { return None };
        let part: &(dyn std::error::Error + 'static) = &**part;
        part.downcast_ref()
    }

    /// What the other end is told of it. Where things are on this machine is not for its eyes.
    pub fn for_peer(&self) -> String {
        let Error::Part(part) = self else {
            return self.to_string();
        };
        if part.may_be_told() {
            return part.to_string();
        }
        let why = match self.cause() {
            Some(Cause::NoRoom) => Some(io::ErrorKind::StorageFull),
            _ => root(self),
        };
        let text = "something is wrong with files or folders there";
        why.map_or_else(|| text.to_owned(), |why| format!("{text}: {why}"))
    }

    /// Why this end gives up, where the other one is told more than words.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Error::Cancelled => Some(Cause::Stopped),
            Error::Part(part) => part.cause_for_peer(),
            _ => None,
        }
    }

    /// Whether nobody waits at the relay under the number of a code, so that no guess was made.
    pub fn is_unknown_number(&self) -> bool {
        let asked = |doing: &str| doing.starts_with(ASKING);
        matches!(self, Error::Network { doing, source } if source.kind() == io::ErrorKind::NotFound && asked(doing))
    }

    /// Whether a relay has let this end wait, and nobody has come.
    pub(crate) fn is_end_of_waiting(&self) -> bool {
        let waited = |doing: &str| doing.starts_with(WAITING);
        matches!(self, Error::Network { doing, source } if source.kind() == io::ErrorKind::UnexpectedEof && waited(doing))
    }

    /// Whether the ends speak the same protocol and were told what does not fit.
    pub(crate) fn is_mismatch(&self) -> bool {
        match self {
            Error::Session(error) => {
                matches!(error, sealway_session::Error::Refused(_)) || Refusal::of(error).is_some()
            }
            Error::KeyRefused { .. } => true,
            _ => false,
        }
    }

    /// Whether the other end said it, as against what was noticed of a connection.
    pub fn is_said(&self) -> bool {
        matches!(self, Error::Remote(_) | Error::OtherEnd(_) | Error::Declined(_))
    }

    /// For `map_err` on what a socket was doing.
    pub fn network(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Network { doing, source }
    }
}

/// What the system said, below all that was added to it.
fn root(error: &Error) -> Option<io::ErrorKind> {
    let mut error: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        error = error.source()?;
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) => f.write_str(text),
            Error::Session(sealway_session::Error::UnknownPeer { key }) => write!(
                f,
                "the other end has the key {}, which is not one that was given to --peer here",
                PublicKey::new(*key)
            ),
            Error::Session(sealway_session::Error::Refused(Refusal::WantsStrong)) => f.write_str(
                "the other end was told --strong, this end was not: it accepts ml-kem-1024 only; give both --strong",
            ),
            Error::Session(sealway_session::Error::WeakKem { .. }) => f.write_str(
                "this end was told --strong, the other end was not: it proposes ml-kem-768; give both --strong",
            ),
            Error::Session(
                sealway_session::Error::Refused(Refusal::NoCommonSuite)
                | sealway_session::Error::Suites(sealway_aead::Error::NoCommonSuite),
            ) => f.write_str(
                "the two ends have no cipher suite in common that the hardware of both can do; leave out --suite, or name chacha20-poly1305 at both",
            ),
            Error::Session(
                sealway_session::Error::Refused(Refusal::WantsCode)
                | sealway_session::Error::OtherMode { theirs: sealway_session::handshake::Mode::Code },
            ) => f.write_str(
                "the other end wants a code phrase, this end uses keys; give both a code (SEALWAY_CODE, or --code), or neither",
            ),
            Error::Session(
                sealway_session::Error::Refused(Refusal::WantsKeys)
                | sealway_session::Error::OtherMode { theirs: sealway_session::handshake::Mode::Keys },
            ) => f.write_str(
                "the other end uses keys, this end wants a code phrase; give both a code (SEALWAY_CODE, or --code), or neither",
            ),
            Error::Session(error) => write!(f, "{error}"),
            Error::KeyRefused { own } => write!(
                f,
                "the other end does not accept the key of this machine, {}: it was not given to --peer there",
                PublicKey::new(*own)
            ),
            Error::CodeSpent => f.write_str(
                "the code did not match, or somebody else used the one guess it allows; start again with a new code",
            ),
            Error::Protocol(what) => write!(f, "the other end broke the protocol: {what}"),
            Error::Network { doing, source } => match source.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted => write!(f, "the connection was lost while {doing}"),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => write!(f, "no answer in time while {doing}"),
                _ => write!(f, "{doing}: {source}"),
            },
            Error::Part(part) => part.fmt(f),
            Error::Declined(reason) if reason.is_empty() => f.write_str("the other end declined"),
            Error::Declined(reason) => write!(f, "the other end declined: {reason}"),
            Error::SaidNo(reason) => write!(f, "declined at this end: {reason}"),
            Error::Remote(reason) => write!(f, "the other end stopped: {reason}"),
            Error::OtherEnd(Cause::Stopped) => f.write_str("the other end was stopped"),
            Error::OtherEnd(Cause::NoRoom) => f.write_str("the other end had no room left"),
            Error::Cancelled => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Network { source, .. } => Some(source),
            Error::Part(part) => Some(&**part),
            Error::Session(error) => Some(error),
            _ => None,
        }
    }
}

impl From<sealway_session::Error> for Error {
    fn from(error: sealway_session::Error) -> Self {
        Error::Session(error)
    }
}

impl<F: Failure> From<F> for Error {
    fn from(part: F) -> Self {
        Error::Part(Box::new(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Broken(io::Error, Option<Cause>);

    impl fmt::Display for Broken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "/home/ann/secret: {}", self.0)
        }
    }

    impl std::error::Error for Broken {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    impl Failure for Broken {
        fn fault(&self) -> Fault {
            Fault::Storage
        }

        fn cause_for_peer(&self) -> Option<Cause> {
            self.1
        }
    }

    #[test]
    fn the_other_end_is_told_no_paths_of_this_machine() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let (part, full) = (
            Error::from(Broken(denied(), None)),
            Error::from(Broken(denied(), Some(Cause::NoRoom))),
        );
        assert_eq!((part.cause(), full.cause()), (None, Some(Cause::NoRoom)));
        for (error, end) in [(part, "permission denied"), (full, "no storage space")] {
            assert!(error.to_string().contains("secret"), "{error}");
            let told = error.for_peer();
            assert!(!told.contains("secret") && told.starts_with("something"), "{told}");
            assert!(told.ends_with(end), "{told}");
        }
        assert_eq!(Error::Cancelled.cause(), Some(Cause::Stopped));
        assert_eq!(Error::Protocol("x").for_peer(), Error::Protocol("x").to_string());
    }

    #[test]
    fn what_failed_is_found_again() {
        let error = Error::from(Broken(io::ErrorKind::NotFound.into(), None));
        assert!(
            error
                .part::<Broken>()
                .is_some_and(|broken| broken.0.kind() == io::ErrorKind::NotFound)
        );
        assert!(Error::Cancelled.part::<Broken>().is_none());
        assert_eq!(error.fault(), Fault::Storage);
    }
}
