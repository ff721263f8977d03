//! Why a store cannot be used, and what to do about it.

use std::fmt;
use std::path::PathBuf;

use crate::report::json::ReadError;

/// Why a store cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// The text names no store. Shows nothing of a URL, for it may hold a password.
    NoStore(String),
    /// Nothing has been kept there yet.
    Missing(String),
    /// The file or its folder cannot be opened, made or written.
    File(PathBuf, String),
    /// There is something else than a file: a folder, a pipe, a device.
    NoFile(PathBuf),
    /// The file is damaged.
    Damaged(PathBuf, String),
    /// The file or database holds something else.
    Foreign(String),
    /// The tables are of a later version.
    Newer {
        /// The file or server.
        store: String,
        /// Version of its tables.
        version: i32,
    },
    /// The database cannot be reached, or refuses.
    Database(sealway_ledger::Error),
    /// The run is no longer there.
    Gone(i64),
    /// What is kept of a run is no result that this version reads.
    Document(ReadError),
    /// The result cannot be kept.
    Unfit(String),
}

impl StoreError {
    /// Whether the command line is at fault.
    pub const fn is_usage(&self) -> bool {
        matches!(
            self,
            StoreError::NoStore(_) | StoreError::Database(sealway_ledger::Error::Store(..))
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NoStore(what) => write!(f, "{what}: name a file or a postgres:// URL"),
            StoreError::Missing(store) => write!(f, "{store}: no run has been kept there yet"),
            StoreError::File(path, why) => write!(
                f,
                "{}: {why}; its folder must be writable for this user, with room on the disk",
                path.display()
            ),
            StoreError::NoFile(path) => write!(f, "{} is no regular file: name another store", path.display()),
            StoreError::Damaged(path, why) => write!(
                f,
                "{} is damaged ({why}): put a copy in its place, or move it away to begin anew",
                path.display()
            ),
            StoreError::Foreign(store) => {
                write!(
                    f,
                    "{store} holds something else than runs of the lab: name another store"
                )
            }
            StoreError::Newer { store, version } => write!(
                f,
                "{store} has tables of version {version}, this one knows {}: use the newer sealway that made them",
                super::SCHEMA
            ),
            StoreError::Database(error) => error.fmt(f),
            StoreError::Gone(id) => write!(f, "run {id} is no longer there"),
            StoreError::Document(error) => error.fmt(f),
            StoreError::Unfit(why) => write!(f, "the result cannot be kept: {why}"),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Document(error) => Some(error),
            StoreError::Database(error) => Some(error),
            _ => None,
        }
    }
}
