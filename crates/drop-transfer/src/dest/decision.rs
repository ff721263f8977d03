//! What becomes of an entry, and why.

use std::fmt;
use std::ops::Range;

use crate::entry::Time;
use sealway_drop::names::RelPath;

/// What is to happen with an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Admission {
    /// It is there already.
    Same,
    /// It is left out.
    Skipped(Skip),
    /// The directory is there.
    Directory {
        /// Whether this transfer made it, now or in an earlier run, and so sets its mode and time at the end.
        made: bool,
    },
    /// The symbolic link is made by [`Staging::conclude`](super::Staging::conclude).
    Symlink,
    /// The content is wanted.
    Fetch {
        /// What is on disk from an earlier run. It is to be compared with the sender's before it is kept;
        /// [`super::StagedFile::discard`] takes out what differs.
        partial: Vec<Range<u64>>,
    },
    /// The user is to be asked; [`Staging::answer`](super::Staging::answer) goes on.
    Ask {
        /// What is there.
        existing: Existing,
    },
}

/// Why an entry is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Skip {
    /// Something has its name, and the policy or the answer is to leave that.
    Exists,
    /// Something else has its name, and the policy says nothing better: the transfer is not complete.
    Differs,
    /// It is a directory, and something that is none has its name.
    FileThere,
    /// It is no directory, and a directory has its name, which is never replaced.
    FolderThere,
    /// It is a directory that this file system takes for another one of the transfer.
    Alias,
    /// The directory it is in was left out.
    Parent,
    /// It begins with a dot right in a home directory.
    HiddenInHome,
    /// It is a symbolic link that leads out of what is received.
    OutsideLink,
    /// The directory is there and is another file system, into which nothing can be renamed.
    OtherFileSystem,
}

impl Skip {
    /// For a message after the path.
    pub fn reason(self) -> &'static str {
        match self {
            Skip::Exists => "something of that name is there",
            Skip::Differs => {
                "something else of that name is there; --conflict rename keeps both, --conflict overwrite replaces it"
            }
            Skip::FileThere => {
                "a folder cannot go where a file or a link of that name is; move that away, or receive into another folder"
            }
            Skip::FolderThere => {
                "a folder of that name is there, and folders are never replaced; --conflict rename keeps both"
            }
            Skip::Alias => "this file system takes it for another folder of the same transfer; receive it elsewhere",
            Skip::Parent => "the folder it is in was left out",
            Skip::HiddenInHome => "it would be a hidden name in a home directory, which programs obey",
            Skip::OutsideLink => "it is a symbolic link that leads out of what is received",
            Skip::OtherFileSystem => "it is another file system than the destination; receive into that folder itself",
        }
    }
}

/// For a message after the path.
impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// What has the name of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Existing {
    /// What it is, as in "a file".
    pub what: &'static str,
    /// Bytes.
    pub size: u64,
    /// When its content last changed.
    pub mtime: Time,
}

/// What the user says to [`Admission::Ask`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Leave what is there.
    Skip,
    /// Replace it.
    Overwrite,
    /// Keep both.
    Rename,
}

/// Where a file went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Placed {
    /// It has its name.
    Named,
    /// Its name was taken, so it has this one in the same directory.
    Renamed(RelPath),
    /// Its name was taken meanwhile, and it was dropped.
    Skipped(Skip),
}
