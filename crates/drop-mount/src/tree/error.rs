//! What can go wrong with a call on a tree.

use std::fmt;

use sealway_drop::fault::{Failure, Fault};

/// Why a call on a tree failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// There is nothing of that name.
    NotFound,
    /// A directory was needed.
    NotDirectory,
    /// A regular file was needed.
    NotFile,
    /// A symbolic link was needed.
    NotLink,
    /// The side that serves may not read it, or not change it.
    Denied,
    /// The handle is not open, or names an object that is gone.
    Stale,
    /// The caller asked for something that cannot be: a bad name, too long a read.
    Invalid(&'static str),
    /// Too many open handles or calls.
    Limit,
    /// The side that serves could not read, or not write.
    Failed,
    /// The tree is not offered for changes.
    ReadOnly,
    /// The name is taken.
    Exists,
    /// The directory holds something.
    NotEmpty,
    /// No room, or less than the side that serves keeps free.
    Full,
    /// The file would be larger than it may be.
    TooBig,
    /// Both names must be on one file system.
    CrossDevice,
    /// Somebody else holds the lock.
    Locked,
    /// The side that serves never does this for another end.
    Refused,
    /// The side that serves, or its file system, cannot do this.
    Unsupported,
    /// No answer in time.
    Timeout,
    /// The caller called it off.
    Cancelled,
    /// The way to the tree is gone.
    Lost,
    /// The answer breaks the rules of the protocol.
    Protocol(&'static str),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "no such file or directory",
            Self::NotDirectory => "not a directory",
            Self::NotFile => "not a regular file",
            Self::NotLink => "not a symbolic link",
            Self::Denied => "permission denied by the serving side",
            Self::Stale => "the handle is not open any more",
            Self::Invalid(what) => return write!(f, "invalid request: {what}"),
            Self::Limit => "too many open handles or calls",
            Self::Failed => "the serving side could not read or write",
            Self::ReadOnly => "the tree is read-only",
            Self::Exists => "the name is taken",
            Self::NotEmpty => "the directory is not empty",
            Self::Full => "the serving side has no room left",
            Self::TooBig => "the file would be too large",
            Self::CrossDevice => "the names are on two file systems",
            Self::Locked => "somebody else holds the lock",
            Self::Refused => "the serving side does not do this for another end",
            Self::Unsupported => "the serving side cannot do this",
            Self::Timeout => "no answer in time",
            Self::Cancelled => "called off",
            Self::Lost => "the connection to the serving side is lost",
            Self::Protocol(what) => return write!(f, "the peer broke the protocol: {what}"),
        })
    }
}

impl std::error::Error for TreeError {}

impl Failure for TreeError {
    fn fault(&self) -> Fault {
        Fault::Network
    }

    fn may_be_told(&self) -> bool {
        true
    }
}
