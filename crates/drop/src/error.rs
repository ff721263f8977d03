//! What can go wrong, and whose fault it is.

use std::fmt;
use std::io;

use sealway_session::handshake::Refusal;

use crate::{dest, fault, fuse, identity, source, tree};

/// How what this end asks of a relay begins.
pub(crate) const ASKING: &str = "asking the relay";

/// Whose fault an error is; programs turn it into their exit code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The caller asked for something that makes no sense.
    Usage,
    /// The other end broke the protocol, or what it sent is not what it announced.
    Peer,
    /// The other end is not who it should be: wrong code, unknown or changed key.
    Identity,
    /// The connection was refused, was lost, or took too long.
    Network,
    /// Files or folders of this machine: not found, not allowed, no space.
    Storage,
    /// The other end said no.
    Declined,
    /// This end was told to stop.
    Cancelled,
}

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
    /// What arrived is not what was announced.
    Integrity {
        /// The file, escaped for print.
        path: String,
        /// What differs.
        what: &'static str,
    },
    /// A system call on a connection failed.
    Network {
        /// What was being done.
        doing: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Something is wrong with what is to be sent.
    Source(source::Error),
    /// Something is wrong where files are received.
    Dest(dest::Error),
    /// A system call on a file of this program's own failed.
    Storage {
        /// The file or folder, escaped for print.
        path: String,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A folder of the other end could not be asked.
    Tree(tree::TreeError),
    /// Mounting or unmounting failed.
    Mount(fuse::MountError),
    /// Something is wrong with the key of this machine, or with the keys it knows.
    Identity(identity::Error),
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

/// Why an end gave up, as far as the other one can do something about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum Cause {
    /// Somebody stopped it.
    Stopped = 1,
    /// No space is left where it writes.
    NoRoom = 2,
}

impl Cause {
    /// What a number says; `None` for one that says nothing.
    pub fn of(number: u32) -> Option<Self> {
        [Self::Stopped, Self::NoRoom]
            .into_iter()
            .find(|cause| *cause as u32 == number)
    }
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
            Error::Protocol(_) | Error::Integrity { .. } => Fault::Peer,
            Error::Network { .. } | Error::Remote(_) | Error::OtherEnd(_) => Fault::Network,
            Error::Storage { .. } | Error::Mount(_) => Fault::Storage,
            Error::Tree(_) => Fault::Network,
            Error::Source(error) => of_files(error.fault()),
            Error::Dest(error) => of_files(error.fault()),
            Error::Identity(identity::Error::OtherKey { .. }) => Fault::Identity,
            Error::Identity(error) => of_files(error.fault()),
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

    /// What the other end is told of it. Where things are on this machine is not for its eyes.
    pub(crate) fn for_peer(&self) -> String {
        let why = match self {
            Error::Dest(error @ dest::Error::Twins { .. }) => return error.to_string(),
            Error::Dest(error) if error.fault() == fault::Fault::Peer => return error.to_string(),
            Error::Dest(dest::Error::NoSpace { .. }) => Some(io::ErrorKind::StorageFull),
            Error::Storage { source, .. } => Some(source.kind()),
            Error::Dest(_) | Error::Source(_) | Error::Identity(_) | Error::Mount(_) => root(self),
            _ => return self.to_string(),
        };
        let text = "something is wrong with files or folders there";
        why.map_or_else(|| text.to_owned(), |why| format!("{text}: {why}"))
    }

    /// Why this end gives up, where the other one is told more than words.
    pub(crate) fn cause(&self) -> Option<Cause> {
        match self {
            Error::Cancelled => Some(Cause::Stopped),
            Error::Dest(dest::Error::NoSpace { .. }) => Some(Cause::NoRoom),
            Error::Storage { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(Cause::NoRoom),
            _ => None,
        }
    }

    /// Whether nobody waits at the relay under the number of a code, so that no guess was made.
    pub fn is_unknown_number(&self) -> bool {
        let asked = |doing: &str| doing.starts_with(ASKING);
        matches!(self, Error::Network { doing, source } if source.kind() == io::ErrorKind::NotFound && asked(doing))
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
    pub(crate) fn is_said(&self) -> bool {
        matches!(self, Error::Remote(_) | Error::OtherEnd(_) | Error::Declined(_))
    }

    /// For `map_err` on what a socket was doing.
    pub(crate) fn network(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
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

fn of_files(fault: fault::Fault) -> Fault {
    match fault {
        fault::Fault::Peer => Fault::Peer,
        fault::Fault::User => Fault::Usage,
        fault::Fault::Environment => Fault::Storage,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) => f.write_str(text),
            Error::Session(sealway_session::Error::UnknownPeer { key }) => write!(
                f,
                "the other end has the key {}, which is not one that was given to --peer here",
                identity::PublicKey::new(*key)
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
                identity::PublicKey::new(*own)
            ),
            Error::CodeSpent => f.write_str(
                "the code did not match, or somebody else used the one guess it allows; start again with a new code",
            ),
            Error::Protocol(what) => write!(f, "the other end broke the protocol: {what}"),
            Error::Integrity { path, what } => write!(f, "{path}: {what}"),
            Error::Network { doing, source } => match source.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted => write!(f, "the connection was lost while {doing}"),
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => write!(f, "no answer in time while {doing}"),
                _ => write!(f, "{doing}: {source}"),
            },
            Error::Storage { path, doing, source } => write!(f, "{path}: {doing}: {source}"),
            Error::Tree(error) => error.fmt(f),
            Error::Mount(error) => error.fmt(f),
            Error::Source(error) => error.fmt(f),
            Error::Dest(error) => error.fmt(f),
            Error::Identity(error) => error.fmt(f),
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
            Error::Source(error) => Some(error),
            Error::Dest(error) => Some(error),
            Error::Identity(error) => Some(error),
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

impl From<source::Error> for Error {
    fn from(error: source::Error) -> Self {
        Error::Source(error)
    }
}

impl From<dest::Error> for Error {
    fn from(error: dest::Error) -> Self {
        Error::Dest(error)
    }
}

impl From<identity::Error> for Error {
    fn from(error: identity::Error) -> Self {
        Error::Identity(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_told_no_paths_of_this_machine() {
        let path = || "/home/ann/secret".to_owned();
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let errors = [
            Error::Storage {
                path: path(),
                doing: "opening",
                source: denied(),
            },
            Error::Mount(fuse::MountError::NotEmpty(path().into())),
            Error::Mount(fuse::MountError::Mountpoint {
                path: path().into(),
                error: denied(),
            }),
            Error::Dest(dest::Error::NoSpace {
                path: path(),
                quota: false,
            }),
            Error::Dest(dest::Error::Destination {
                path: path(),
                source: denied(),
            }),
            Error::Dest(dest::Error::Busy { path: path() }),
        ];
        for error in errors {
            assert!(error.to_string().contains("secret"), "{error}");
            let told = error.for_peer();
            assert!(!told.contains("secret") && told.starts_with("something"), "{told}");
        }
        let full = dest::Error::NoSpace {
            path: path(),
            quota: false,
        };
        assert_eq!(Error::Dest(full).cause(), Some(Cause::NoRoom));
        assert_eq!(Error::Cancelled.cause(), Some(Cause::Stopped));
        let denied = Error::Dest(dest::Error::Destination {
            path: path(),
            source: denied(),
        });
        assert_eq!(denied.cause(), None);
        assert!(denied.for_peer().ends_with("permission denied"));
        assert_eq!(Error::Protocol("x").for_peer(), Error::Protocol("x").to_string());
    }
}
