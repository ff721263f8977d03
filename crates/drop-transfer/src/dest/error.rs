//! What goes wrong where files are received.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use rustix::io::Errno;

use sealway_drop::fault::{Cause, Failure, Fault};
use sealway_drop::names::RelPath;

/// An error of receiving into a folder.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The destination cannot be used.
    Destination {
        /// The folder, escaped.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Another program receives the same transfer into the same folder.
    Busy {
        /// The staging folder, escaped.
        path: String,
    },
    /// Something that is not ours, or that others may write to, has the name of the staging folder.
    NotOurs {
        /// The staging folder, escaped.
        path: String,
    },
    /// The peer sent one path twice.
    Twice {
        /// The path.
        path: RelPath,
    },
    /// Two paths that this file system takes for one.
    Twins {
        /// The path.
        path: RelPath,
        /// The path that was there first.
        other: RelPath,
    },
    /// The peer sent something below what it had not sent as a directory.
    Parent {
        /// The path.
        path: RelPath,
        /// What stands where the directory should be.
        found: &'static str,
    },
    /// A directory of the path was replaced by a link or a file while files came in.
    Swapped {
        /// The path.
        path: String,
    },
    /// A directory below the destination is another file system, into which nothing can be renamed.
    OtherFileSystem {
        /// The path.
        path: String,
    },
    /// No room is left.
    NoSpace {
        /// What did not fit.
        path: String,
        /// Whether it is a quota, not the disk, that is full.
        quota: bool,
    },
    /// A system call failed.
    Io {
        /// What it was about.
        path: String,
        /// What was tried, as in `cannot … PATH`.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Data outside a file.
    Outside {
        /// The file.
        path: RelPath,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Size of the file.
        size: u64,
    },
    /// A file that is not whole was to be put in its place.
    Incomplete {
        /// The file.
        path: RelPath,
        /// Bytes that are missing.
        missing: u64,
    },
    /// The entry with this number is not being received, or is finished already.
    NotOpen {
        /// The number.
        id: u32,
    },
    /// Files are still missing.
    Unfinished {
        /// How many.
        files: usize,
    },
}

impl Error {
    /// What a failed system call means.
    pub(super) fn system(path: impl fmt::Display, doing: &'static str, errno: Errno) -> Error {
        let path = path.to_string();
        match errno {
            Errno::NOSPC => Error::NoSpace { path, quota: false },
            Errno::DQUOT => Error::NoSpace { path, quota: true },
            Errno::LOOP | Errno::NOTDIR => Error::Swapped { path },
            Errno::XDEV => Error::OtherFileSystem { path },
            errno => Error::Io {
                path,
                doing,
                source: errno.into(),
            },
        }
    }
}

impl Failure for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::Twice { .. }
            | Error::Parent { .. }
            | Error::Outside { .. }
            | Error::Incomplete { .. }
            | Error::NotOpen { .. }
            | Error::Unfinished { .. } => Fault::Peer,
            Error::Destination { .. } | Error::Busy { .. } | Error::Twins { .. } => Fault::Usage,
            Error::NotOurs { .. }
            | Error::Swapped { .. }
            | Error::OtherFileSystem { .. }
            | Error::NoSpace { .. }
            | Error::Io { .. } => Fault::Storage,
        }
    }

    fn may_be_told(&self) -> bool {
        self.fault() == Fault::Peer || matches!(self, Error::Twins { .. })
    }

    fn cause_for_peer(&self) -> Option<Cause> {
        matches!(self, Error::NoSpace { .. }).then_some(Cause::NoRoom)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Destination { path, source } => write!(f, "cannot receive into {path}: {source}"),
            Error::Busy { path } => {
                write!(
                    f,
                    "{path} is in use: this transfer is being received there already; wait for it or end it"
                )
            }
            Error::NotOurs { path } => {
                write!(
                    f,
                    "{path} belongs to someone else or is open to others; remove it, or receive elsewhere"
                )
            }
            Error::Twice { path } => write!(f, "the peer sent {path} twice"),
            Error::Twins { path, other } => {
                write!(
                    f,
                    "{path} and {other} are one name on this file system; receive elsewhere, or rename one"
                )
            }
            Error::Parent { path, found } => write!(f, "the peer sent {path}, but what it is in is {found}"),
            Error::Swapped { path } => {
                write!(
                    f,
                    "a folder of {path} was replaced by a link or a file; nothing was written through it"
                )
            }
            Error::OtherFileSystem { path } => {
                write!(
                    f,
                    "{path} is on another file system than the destination; receive into that folder itself"
                )
            }
            Error::NoSpace { path, quota: false } => {
                write!(
                    f,
                    "the disk is full at {path}; make room and start again, what was received is kept"
                )
            }
            Error::NoSpace { path, quota: true } => {
                write!(
                    f,
                    "your quota is used up at {path}; make room and start again, what was received is kept"
                )
            }
            Error::Io { path, doing, source } => write!(f, "cannot {doing} {path}: {source}"),
            Error::Outside {
                path,
                offset,
                bytes,
                size,
            } => {
                write!(f, "the peer sent {bytes} bytes at {offset} of {path}, which has {size}")
            }
            Error::Incomplete { path, missing } => write!(f, "{path} misses {missing} bytes"),
            Error::NotOpen { id } => write!(f, "entry {id} is not being received"),
            Error::Unfinished { files } => write!(f, "{files} files have not come"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Destination { source, .. } | Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_told_no_paths_of_this_machine() {
        let path = || "/home/ann/secret".to_owned();
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        for (error, cause) in [
            (
                Error::NoSpace {
                    path: path(),
                    quota: false,
                },
                Some(Cause::NoRoom),
            ),
            (
                Error::Destination {
                    path: path(),
                    source: denied(),
                },
                None,
            ),
            (Error::Busy { path: path() }, None),
        ] {
            let error = sealway_drop::Error::from(error);
            assert!(error.to_string().contains("secret"), "{error}");
            let told = error.for_peer();
            assert!(!told.contains("secret") && told.starts_with("something"), "{told}");
            assert_eq!(error.cause(), cause);
        }
        let denied = Error::Destination {
            path: path(),
            source: denied(),
        };
        assert!(
            sealway_drop::Error::from(denied)
                .for_peer()
                .ends_with("permission denied")
        );
    }
}
