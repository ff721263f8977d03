//! What can go wrong, by whose fault it is, and what to do about it.

use std::fmt;
use std::path::PathBuf;

/// Why a store cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text names no store. The second text says what to write.
    Store(String, &'static str),
    /// The name of a node is empty, too long, or has characters that do not show.
    Node,
    /// The file cannot be opened or written.
    File(PathBuf, String),
    /// The file is damaged.
    Damaged(PathBuf, String),
    /// The file, or the schema in the database, is not ours.
    Foreign(String),
    /// The tables are of a later version.
    Newer {
        /// The file or server.
        store: String,
        /// Version of its tables.
        version: i32,
    },
    /// The database server cannot be reached, or does not answer.
    Away(String),
    /// The database server refuses us or what we ask for.
    Refused(String),
    /// Too many users wait to be written.
    Full,
    /// The ledger has been closed.
    Closed,
}

impl Error {
    /// Whether the same may go well later without anybody doing something here.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Away(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store(text, hint) => write!(f, "{text}: {hint}"),
            Error::Node => f.write_str("the name of a node has 1 to 64 characters, all of which show"),
            Error::File(path, why) => write!(
                f,
                "{}: {why}; its folder must exist and be writable for this user, with room on the disk",
                path.display()
            ),
            Error::Damaged(path, why) => write!(
                f,
                "{} is damaged ({why}): put a copy in its place, or move it away with its -wal and -shm to begin with nothing used",
                path.display()
            ),
            Error::Foreign(store) => write!(
                f,
                "{store} holds something else than what users have used: name another file or database"
            ),
            Error::Newer { store, version } => write!(
                f,
                "{store} has tables of version {version}, which a later Sealway has made; this one knows {}: run that version",
                crate::SCHEMA
            ),
            Error::Away(why) => write!(f, "the database is away: {why}"),
            Error::Refused(why) => write!(f, "the database refuses: {why}"),
            Error::Full => write!(
                f,
                "the sums of {} users wait to be written, and no more are held",
                crate::MOST_WAITING
            ),
            Error::Closed => f.write_str("the ledger has been closed"),
        }
    }
}

impl std::error::Error for Error {}
