//! A SQLite file.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};

use super::kept::{COLUMNS, kept_from};
use super::{Access, Added, Backend, Kept, MOST_LISTED, SCHEMA, StoreError};

/// What says in the head of a file that it is ours: "SLab".
const APPLICATION: i32 = 0x534c_6162;

/// How long other processes that have the file may take: a run that has taken minutes is worth the wait.
const BUSY: Duration = Duration::from_secs(30);

const TABLES: &str = "
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL UNIQUE,
        started TEXT NOT NULL,
        workloads TEXT NOT NULL,
        profile TEXT NOT NULL,
        complete INTEGER NOT NULL,
        sealway TEXT NOT NULL,
        cpu TEXT NOT NULL,
        machine TEXT NOT NULL,
        name TEXT,
        branch TEXT,
        revision TEXT,
        result BLOB NOT NULL
    ) STRICT;
    CREATE INDEX run_started ON run (started, id);
";

const ADD: &str = "
    INSERT INTO run (run, started, workloads, profile, complete, sealway, cpu, machine, name, branch, revision, result)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const PRUNE: &str = "
    DELETE FROM run WHERE name IS NULL AND id NOT IN (
        SELECT id FROM run WHERE name IS NULL ORDER BY started DESC, id DESC LIMIT ?1)";

/// The open file. It has a rollback journal: writers are rare, and readers need no right to write beside it.
pub(super) struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

/// Whose file it is.
enum State {
    Empty,
    Ours,
    Newer(i32),
    Foreign,
}

impl Sqlite {
    pub(super) fn open(path: &Path, access: Access) -> Result<Sqlite, StoreError> {
        let store = || path.display().to_string();
        let flags = match access {
            Access::Write => {
                make(path)?;
                OpenFlags::SQLITE_OPEN_READ_WRITE
            }
            Access::Read if is_there(path)? => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Read => return Err(StoreError::Missing(store())),
        };
        let mut sqlite = Sqlite {
            path: path.to_owned(),
            connection: connect(path, flags)?,
        };
        let mut found = look(&sqlite.connection);
        if let Err(error) = &found
            && error.sqlite_error_code() == Some(ErrorCode::ReadOnly)
        {
            // A writer died in the middle: what it left is taken back before anybody can read.
            sqlite.connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            found = look(&sqlite.connection);
        }
        match found.map_err(|error| sqlite.fault(error))? {
            State::Ours => {}
            State::Newer(version) => {
                return Err(StoreError::Newer {
                    store: store(),
                    version,
                });
            }
            State::Foreign => return Err(StoreError::Foreign(store())),
            State::Empty if access == Access::Read => return Err(StoreError::Missing(store())),
            State::Empty => sqlite.tables().map_err(|error| sqlite.fault(error))?,
        }
        Ok(sqlite)
    }

    /// A store that is gone with its owner, for the fuzz target.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn in_memory() -> Result<Sqlite, StoreError> {
        let path = Path::new(":memory:");
        let mut sqlite = Sqlite {
            path: path.to_owned(),
            connection: Connection::open_in_memory().map_err(|error| fault(path, error))?,
        };
        sqlite.tables().map_err(|error| sqlite.fault(error))?;
        Ok(sqlite)
    }

    /// Makes the tables, unless another process was faster.
    fn tables(&mut self) -> rusqlite::Result<()> {
        // What is deleted gives its room back to the disk; this has to be said before there is a table.
        self.connection.pragma_update(None, "auto_vacuum", "full")?;
        let whole = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        if matches!(state(&whole)?, State::Empty) {
            whole.execute_batch(TABLES)?;
            whole.pragma_update(None, "application_id", APPLICATION)?;
            whole.pragma_update(None, "user_version", SCHEMA)?;
        }
        whole.commit()
    }

    fn fault(&self, error: rusqlite::Error) -> StoreError {
        fault(&self.path, error)
    }

    fn insert(&mut self, kept: &Kept, text: &[u8]) -> rusqlite::Result<Added> {
        let whole = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let there = whole
            .query_row("SELECT id FROM run WHERE run = ?1", [&kept.run], |row| row.get(0))
            .optional()?;
        if let Some(id) = there {
            return Ok(Added::Already(id));
        }
        let label = &kept.label;
        whole.execute(
            ADD,
            params![
                kept.run,
                kept.started,
                kept.workloads,
                kept.profile,
                kept.complete,
                kept.sealway,
                kept.cpu,
                kept.machine,
                label.name,
                label.branch,
                label.commit,
                text
            ],
        )?;
        let id = whole.last_insert_rowid();
        whole.commit()?;
        Ok(Added::New(id))
    }

    fn newest(&self) -> rusqlite::Result<Vec<Kept>> {
        let list = format!("SELECT {COLUMNS} FROM run ORDER BY started DESC, id DESC LIMIT ?1");
        let mut list = self.connection.prepare(&list)?;
        list.query_map([MOST_LISTED], kept)?.collect()
    }
}

impl Backend for Sqlite {
    fn add(&mut self, kept: &Kept, text: &[u8]) -> Result<Added, StoreError> {
        self.insert(kept, text).map_err(|error| self.fault(error))
    }

    fn list(&mut self) -> Result<Vec<Kept>, StoreError> {
        self.newest().map_err(|error| self.fault(error))
    }

    fn kept(&mut self, id: i64) -> Result<Option<Kept>, StoreError> {
        let one = format!("SELECT {COLUMNS} FROM run WHERE id = ?1");
        let found = self.connection.query_row(&one, [id], kept).optional();
        found.map_err(|error| self.fault(error))
    }

    fn text(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.connection
            .query_row("SELECT result FROM run WHERE id = ?1", [id], |row| row.get(0))
            .optional()
            .map_err(|error| self.fault(error))
    }

    fn delete(&mut self, id: i64) -> Result<bool, StoreError> {
        let gone = self.connection.execute("DELETE FROM run WHERE id = ?1", [id]);
        gone.map(|rows| rows > 0).map_err(|error| self.fault(error))
    }

    fn prune(&mut self, keep: u32) -> Result<u64, StoreError> {
        let gone = self.connection.execute(PRUNE, [keep]);
        gone.map(|rows| rows as u64).map_err(|error| self.fault(error))
    }
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    Ok(kept_from!(row.get))
}

/// All that is looked at is of one moment: another process may be making the tables.
fn look(connection: &Connection) -> rusqlite::Result<State> {
    let moment = connection.unchecked_transaction()?;
    state(&moment)
}

fn state(connection: &Connection) -> rusqlite::Result<State> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version) {
        (0, 0) if tables == 0 => State::Empty,
        (APPLICATION, SCHEMA) => State::Ours,
        (APPLICATION, version) if version > SCHEMA => State::Newer(version),
        _ => State::Foreign,
    })
}

/// Whether there is a file. Anything else is refused before it is opened: a pipe would wait for its other end.
fn is_there(path: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(StoreError::NoFile(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::File(path.to_owned(), error.to_string())),
    }
}

/// Makes the file and its folder, for this user alone. SQLite gives its other files the same mode.
fn make(path: &Path) -> Result<(), StoreError> {
    if is_there(path)? {
        return Ok(());
    }
    let failed = |error: std::io::Error| StoreError::File(path.to_owned(), error.to_string());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
    }
    let mut file = OpenOptions::new();
    file.write(true).create(true).truncate(false).mode(0o600);
    file.open(path).map(|_| ()).map_err(failed)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
    let fault = |error| fault(path, error);
    let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    connection.busy_timeout(BUSY).map_err(fault)?;
    Ok(connection)
}

/// What an error of SQLite means for whoever keeps runs.
fn fault(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged(path, error.to_string()),
        Some(ErrorCode::NotADatabase) => StoreError::Foreign(path.display().to_string()),
        _ => StoreError::File(path, error.to_string()),
    }
}
