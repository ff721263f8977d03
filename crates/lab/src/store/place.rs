//! Where runs are kept.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use sealway_ledger::Server;

use super::StoreError;

/// The variable of the environment that says where.
pub const VARIABLE: &str = "SEALWAY_LAB_STORE";

/// Its value when nothing is to be kept.
const NONE: &str = "none";

/// Where runs are kept. Shows no password.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Postgres(Box<Server>),
}

impl Place {
    /// Reads a path, or a URL that begins with `postgres://` or `postgresql://`, as [`sealway_ledger::Store::parse`] does.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], or [`StoreError::Database`] for a URL; neither shows anything of it.
    pub fn parse(text: &str) -> Result<Place, StoreError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let server = Server::parse(text).map_err(StoreError::Database)?;
            return Ok(Place::Postgres(Box::new(server)));
        }
        let start = text.trim_start().to_ascii_lowercase();
        if start.starts_with("postgres:") || start.starts_with("postgresql:") {
            return Err(StoreError::NoStore("this is no URL of a database".to_owned()));
        }
        if text.is_empty() {
            return Err(StoreError::NoStore("the store is empty".to_owned()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let known = scheme.chars().all(|c| c.is_ascii_alphanumeric());
            let scheme = if known { scheme } else { "this" };
            return Err(StoreError::NoStore(format!("{scheme}:// is no store")));
        }
        Ok(Place::File(PathBuf::from(text)))
    }

    /// The file of this user, by the XDG Base Directory Specification, in which relative paths do not count.
    fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<Place> {
        let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
        Some(Place::File(data.join("sealway").join("lab.sqlite")))
    }
}

/// The store that was asked for, else the one that the environment names, else the file of this user. `None`: nothing is to be
/// kept, or there is no place for it.
///
/// # Errors
/// Those of [`Place::parse`].
pub fn place(asked: Option<&str>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Place>, StoreError> {
    let named = match asked {
        Some(text) => Some(text.to_owned()),
        None => variable(VARIABLE)
            .filter(|value| !value.is_empty())
            .map(|value| {
                let wrong = |_| StoreError::NoStore(format!("{VARIABLE} is not UTF-8"));
                value.into_string().map_err(wrong)
            })
            .transpose()?,
    };
    match named.as_deref() {
        Some(NONE) => Ok(None),
        Some(text) => Place::parse(text).map(Some),
        None => Ok(Place::of_user(variable)),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(f),
            Place::Postgres(server) => server.fmt(f),
        }
    }
}
