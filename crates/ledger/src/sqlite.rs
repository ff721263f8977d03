//! A SQLite file, which one thread writes and reads.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::pending::Batch;
use crate::{Ask, Error, KEPT_DAYS, Node, Row, SCHEMA, Sum};

/// What says in the head of a file that it is ours: "SeaL".
const APPLICATION: i32 = 0x5365_614c;

/// How long another process that has the file may take.
const BUSY: Duration = Duration::from_secs(5);

/// How often sums of old periods are deleted.
const PRUNE_EVERY: Duration = Duration::from_secs(24 * 3600);

const TABLES: &str = "
    CREATE TABLE used (
        person TEXT NOT NULL,
        since INTEGER NOT NULL,
        node TEXT NOT NULL,
        up INTEGER NOT NULL,
        down INTEGER NOT NULL,
        PRIMARY KEY (person, since, node)
    ) STRICT, WITHOUT ROWID;
";

const ADD: &str = "
    INSERT INTO used (person, since, node, up, down) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (person, since, node) DO UPDATE SET up = up + excluded.up, down = down + excluded.down";

const READ: &str = "SELECT coalesce(sum(up), 0), coalesce(sum(down), 0) FROM used WHERE person = ?1 AND since >= ?2";

enum Command {
    Write(Arc<Batch>, oneshot::Sender<Result<(), Error>>),
    Read(Vec<Ask>, oneshot::Sender<Result<Vec<Sum>, Error>>),
    Close(oneshot::Sender<()>),
}

/// The thread that has the file open.
#[derive(Debug)]
pub(crate) struct Sqlite {
    commands: Sender<Command>,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path, node: Node) -> Result<Sqlite, Error> {
        let (commands, inbox) = channel();
        let (done, opened) = oneshot::channel();
        let owned = path.to_owned();
        let work = move || match File::open(owned, node) {
            Ok(file) => {
                let _ = done.send(Ok(()));
                file.serve(&inbox);
            }
            Err(error) => drop(done.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("sealway-ledger".to_owned());
        let failed = |error: std::io::Error| Error::File(path.to_owned(), error.to_string());
        thread.spawn(work).map_err(failed)?;
        opened.await.map_err(|_| Error::Closed)??;
        Ok(Sqlite { commands })
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Error> {
        let (done, answer) = oneshot::channel();
        self.commands.send(command(done)).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)
    }

    pub(crate) async fn write(&self, batch: Arc<Batch>) -> Result<(), Error> {
        self.ask(|done| Command::Write(batch, done)).await?
    }

    pub(crate) async fn read(&self, asked: Vec<Ask>) -> Result<Vec<Sum>, Error> {
        self.ask(|done| Command::Read(asked, done)).await?
    }

    pub(crate) async fn close(self) {
        let _ = self.ask(Command::Close).await;
    }
}

/// The open file.
struct File {
    path: PathBuf,
    node: Node,
    connection: Connection,
    pruned: SystemTime,
}

impl File {
    fn open(path: PathBuf, node: Node) -> Result<File, Error> {
        // It tells who uses how much: others have no business in it. SQLite gives its other files the same mode.
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path);
        made.map_err(|error| Error::File(path.clone(), error.to_string()))?;
        let fault = |error| fault(&path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&path, flags).map_err(fault)?;
        connection.busy_timeout(BUSY).map_err(fault)?;
        migrate(&mut connection, &path)?;
        connection
            .pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))
            .map_err(fault)?;
        // What an exchange has written is on disk when it returns.
        connection.pragma_update(None, "synchronous", "full").map_err(fault)?;
        let mut file = File {
            path,
            node,
            connection,
            pruned: UNIX_EPOCH,
        };
        // It reads the whole of the file, so that damage shows now.
        file.prune().map_err(|error| self::fault(&file.path, error))?;
        Ok(file)
    }

    fn serve(mut self, inbox: &Receiver<Command>) {
        while let Ok(command) = inbox.recv() {
            match command {
                Command::Write(batch, done) => {
                    let written = self.write(&batch.rows).map_err(|error| fault(&self.path, error));
                    let _ = done.send(written);
                }
                Command::Read(asked, done) => {
                    let sums = self.read(&asked).map_err(|error| fault(&self.path, error));
                    let _ = done.send(sums);
                }
                Command::Close(done) => {
                    drop(self);
                    let _ = done.send(());
                    return;
                }
            }
        }
    }

    fn write(&mut self, rows: &[Row]) -> rusqlite::Result<()> {
        if self.pruned.elapsed().is_ok_and(|passed| passed > PRUNE_EVERY) {
            self.prune()?;
        }
        let whole = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut add = whole.prepare(ADD)?;
            for row in rows {
                add.execute(params![row.user, row.since, self.node.as_str(), row.up, row.down])?;
            }
        }
        whole.commit()
    }

    fn read(&self, asked: &[Ask]) -> rusqlite::Result<Vec<Sum>> {
        let mut read = self.connection.prepare(READ)?;
        let one = |ask: &Ask| {
            read.query_row(params![ask.user, ask.since], |row| {
                let (up, down): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok(Sum {
                    up: up.try_into().unwrap_or(0),
                    down: down.try_into().unwrap_or(0),
                })
            })
        };
        asked.iter().map(one).collect()
    }

    /// Deletes sums of periods that are long over.
    fn prune(&mut self) -> rusqlite::Result<()> {
        self.pruned = SystemTime::now();
        let now = self.pruned.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let oldest = i64::try_from(now).unwrap_or(0) - i64::from(KEPT_DAYS) * 86_400;
        self.connection
            .execute("DELETE FROM used WHERE since < ?1", [oldest])
            .map(|_| ())
    }
}

/// Makes the tables of a new file, and refuses what is not ours.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let fault = |error| fault(path, error);
    let whole = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(fault)?;
    let number = |pragma: &str| whole.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let (application, version) = (
        number("application_id").map_err(fault)?,
        number("user_version").map_err(fault)?,
    );
    let tables: i64 = whole
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(fault)?;
    match (application, version) {
        (0, 0) if tables == 0 => {
            whole.execute_batch(TABLES).map_err(fault)?;
            whole
                .pragma_update(None, "application_id", APPLICATION)
                .map_err(fault)?;
            whole.pragma_update(None, "user_version", SCHEMA).map_err(fault)?;
            whole.commit().map_err(fault)
        }
        (APPLICATION, SCHEMA) => Ok(()),
        (APPLICATION, version) if version > SCHEMA => Err(Error::Newer {
            store: path.display().to_string(),
            version,
        }),
        _ => Err(Error::Foreign(path.display().to_string())),
    }
}

/// What an error of SQLite means for whoever runs the server.
fn fault(path: &Path, error: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => Error::Damaged(path, error.to_string()),
        Some(ErrorCode::NotADatabase) => Error::Foreign(path.display().to_string()),
        _ => Error::File(path, error.to_string()),
    }
}
