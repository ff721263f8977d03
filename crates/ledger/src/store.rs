//! Where the sums are: a path, or the URL of a database.

use std::fmt;
use std::path::PathBuf;

use crate::Error;
use crate::postgres::Server;

/// Where sums are kept. Shows no password.
#[derive(Clone, PartialEq)]
pub struct Store(pub(crate) Place);

#[derive(Clone, PartialEq)]
pub(crate) enum Place {
    /// A SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Postgres(Box<Server>),
}

impl Store {
    /// Reads a path, or a URL that begins with `postgres://` or `postgresql://`. Opens nothing but the file of authorities that
    /// `sslrootcert` names.
    ///
    /// Of a URL the parameters of libpq count, with its meanings: `sslmode` is `disable`, `prefer` (the default), `require`,
    /// `verify-ca` or `verify-full`. The last two trust the authorities of the system unless `sslrootcert` names a file. `require`
    /// with a file is `verify-ca`, and `sslrootcert=system` is `verify-full`. `connect_timeout` is 2 seconds, for each address.
    ///
    /// # Errors
    /// [`Error::Store`], which shows nothing of a URL, for it may hold a password.
    pub fn parse(text: &str) -> Result<Store, Error> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Server::parse(text).map(|server| Store(Place::Postgres(Box::new(server))));
        }
        if text.is_empty() {
            return Err(Error::Store(
                "the store is empty".to_owned(),
                "write the path of a file or a postgres:// URL",
            ));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            let known = scheme.chars().all(|c| c.is_ascii_alphanumeric());
            let scheme = if known { scheme } else { "this" };
            let text = format!("{scheme}:// is no store");
            return Err(Error::Store(text, "write the path of a file or a postgres:// URL"));
        }
        Ok(Store(Place::File(PathBuf::from(text))))
    }
}

impl Store {
    /// The path, where it is a file.
    pub fn file_mut(&mut self) -> Option<&mut PathBuf> {
        match &mut self.0 {
            Place::File(path) => Some(path),
            Place::Postgres(_) => None,
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::File(path) => path.display().fmt(f),
            Place::Postgres(server) => server.fmt(f),
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_path_or_a_database() {
        assert!(
            matches!(Store::parse("/var/lib/sealway/usage.db"), Ok(Store(Place::File(path))) if path.ends_with("usage.db"))
        );
        for url in [
            "postgres://u:secret@db.example.org/usage",
            "postgresql://u:secret@db.example.org:5433,other/usage?sslmode=verify-full",
            "postgres:///usage?host=/run/postgresql&user=u",
            "postgres://u@[::1]/usage?sslmode=disable",
            "postgres://u@/usage?hostaddr=192.0.2.1",
            "postgres://u@host/usage?sslrootcert=system",
            "postgres://u@host/usage?sslmode=verify-full&sslrootcert=system",
        ] {
            assert!(matches!(Store::parse(url), Ok(Store(Place::Postgres(_)))), "{url}");
        }
    }

    #[test]
    fn what_is_wrong_about_it_is_said_without_its_password() {
        for wrong in [
            "",
            "mysql://u:secret@host/db",
            "postgres://u:secret@host/db?sslmode=allow",
            "postgres://u:secret@host/db?sslmode=verify-full&sslrootcert=/does/not/exist",
            "postgres://u:secret@host/db?sslmode=require&sslrootcert=system",
            "postgres://u:secret@host/db?sslrootcert=system&sslmode=prefer",
            "postgres://u:secret@:5432/db?hostaddr=192.0.2.1",
            "postgres://u:secret@/db?host=/run/postgresql&hostaddr=192.0.2.1",
            "postgres://u:secret@host/db?sslcert=/a",
            "postgres://u:secret@host/db?sslmode=disable&sslrootcert=/a",
            "postgres://u:secret@host/db?secret=secret",
            "postgres://u:secret@host:port/db",
            "postgres://u:se/secret@host/db?connect_timeout=x",
            "postgres://",
        ] {
            let error = Store::parse(wrong).unwrap_err();
            assert!(matches!(error, Error::Store(..)), "{wrong}: {error}");
            assert!(!error.to_string().contains("secret"), "{wrong}: {error}");
        }
        let right = Store::parse("postgres://u:secret@host/db?password=secret2").unwrap();
        for shown in [format!("{right:?}"), right.to_string()] {
            assert!(!shown.contains("secret"), "{shown}");
            assert!(shown.contains("host"), "{shown}");
        }
    }
}
