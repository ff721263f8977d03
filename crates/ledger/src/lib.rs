//! What users have used, kept over restarts and shared by many nodes: SQLite or PostgreSQL.
//!
//! A [`Ledger`] holds sums of bytes by user, period and node. Whoever counts adds what has come since the last time, and
//! exchanges every few seconds: what waits is written, and the sums of all nodes come back.
//!
//! ```
//! use sealway_ledger::{Ask, Ledger, Node, Period, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), sealway_ledger::Error> {
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let file = folder.path().join("usage.db").display().to_string();
//! let ledger = Ledger::open(&Store::parse(&file)?, Node::new("paris-1")?).await?;
//! let since = Period::of(1_790_000_000, 15).since;
//! ledger.add("anna@example.org", since, 1_000, 50_000);
//! let sums = ledger.exchange(&[Ask::new("anna@example.org", since)]).await?;
//! assert_eq!((sums[0].up, sums[0].down), (1_000, 50_000));
//! ledger.close().await
//! # }
//! ```
//!
//! # What can be lost
//!
//! What was added since the last exchange, when the process is killed or the machine loses its power: each exchange is on disk
//! before it returns. While the database is away, what waits is one sum for each user and period. It is written when the
//! database is back, once.
//!
//! [`Server`] and [`Session`] are the way to the database for others who keep something there, in tables of their own.

#![forbid(unsafe_code)]

mod error;
mod node;
mod pending;
mod period;
mod postgres;
mod quiet;
mod sqlite;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use pending::Pending;
use postgres::Postgres;
use quiet::Quiet;
use sqlite::Sqlite;
use store::Place;

pub use error::Error;
pub use node::Node;
pub use period::Period;
pub use postgres::{Server, Session};
pub use store::Store;

/// Most users and periods whose sums wait. While a database is away, each takes some 150 bytes and its name.
pub const MOST_WAITING: usize = 1_000_000;

/// Bytes of a user's name that count: an index of PostgreSQL holds no longer ones.
pub const LONGEST_NAME: usize = 1024;

/// Days for which sums are kept after their period began.
pub const KEPT_DAYS: u32 = 400;

/// Most rows that are written in one transaction.
const BATCH: usize = 5_000;

/// Version of the tables. A database with a later one is refused; an earlier one is brought up to it.
const SCHEMA: i32 = 1;

/// Whose sum is asked for, and from when on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ask {
    user: String,
    since: i64,
}

impl Ask {
    /// The sum of `user` over all periods that began at `since`, Unix time in seconds, or later.
    pub fn new(user: &str, since: i64) -> Ask {
        Ask { user: key(user), since }
    }
}

/// What a user has used on all nodes, bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sum {
    /// Sent by the user.
    pub up: u64,
    /// Received by the user.
    pub down: u64,
}

/// Bytes of one user in one period, on their way to the store.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Row {
    user: String,
    since: i64,
    up: i64,
    down: i64,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Sqlite),
    Postgres(Box<Postgres>),
}

/// The store, and what the log has been told of it. One exchange has it at a time: what is being written belongs to that one.
#[derive(Debug)]
struct Open {
    backend: Backend,
    quiet: Quiet,
}

/// Sums of bytes by user, period and node, in a store.
#[derive(Debug)]
pub struct Ledger {
    open: tokio::sync::Mutex<Open>,
    pending: Mutex<Pending>,
    name: String,
}

impl Ledger {
    /// Opens the store and makes its tables if it is new.
    ///
    /// A database server that cannot be reached is no error: it is tried again with every exchange.
    ///
    /// # Errors
    /// A file that cannot be opened, is damaged or is something else; tables of a later version; a database server that
    /// refuses us.
    pub async fn open(store: &Store, node: Node) -> Result<Ledger, Error> {
        let mut quiet = Quiet::default();
        let name = store.to_string();
        let backend = match &store.0 {
            Place::File(path) => Backend::Sqlite(Sqlite::open(path, node).await?),
            Place::Postgres(server) => {
                let mut postgres = Postgres::new(Server::clone(server), node);
                match postgres.connect().await {
                    Err(error) if !error.may_pass() => return Err(error),
                    Err(error) => quiet.failed(&name, &error),
                    Ok(()) => {}
                }
                Backend::Postgres(Box::new(postgres))
            }
        };
        Ok(Ledger {
            open: tokio::sync::Mutex::new(Open { backend, quiet }),
            pending: Mutex::default(),
            name,
        })
    }

    /// Adds bytes of a user in the period that began at `since`, Unix time in seconds. They are written with the next exchange. Users
    /// whose names agree in their first [`LONGEST_NAME`] bytes are one.
    ///
    /// # Errors
    /// [`Error::Full`] if the sums of [`MOST_WAITING`] users wait already and this would be one more.
    pub fn add(&self, user: &str, since: i64, up: u64, down: u64) -> Result<(), Error> {
        self.waiting().add(key(user), since, up, down)
    }

    /// Writes what waits and reads sums, in the order in which they were asked for. All that was added before is in them.
    ///
    /// # Errors
    /// Why the store did not take it, or did not answer. What waits goes on waiting; the log has been told, once a minute at most.
    pub async fn exchange(&self, asked: &[Ask]) -> Result<Vec<Sum>, Error> {
        let mut open = self.open.lock().await;
        let done = self.write_and_read(&mut open.backend, asked).await;
        match &done {
            Ok(_) => open.quiet.went_well(&self.name),
            Err(error) => open.quiet.failed(&self.name, error),
        }
        done
    }

    async fn write_and_read(&self, backend: &mut Backend, asked: &[Ask]) -> Result<Vec<Sum>, Error> {
        loop {
            // What was on its way when the last attempt failed may have arrived: it goes again as the same batch.
            let Some(batch) = self.waiting().batch(BATCH) else {
                break;
            };
            match backend {
                Backend::Sqlite(sqlite) => sqlite.write(batch).await?,
                Backend::Postgres(postgres) => postgres.write(&batch).await?,
            }
            self.waiting().written();
        }
        match backend {
            _ if asked.is_empty() => Ok(Vec::new()),
            Backend::Sqlite(sqlite) => sqlite.read(asked.to_vec()).await,
            Backend::Postgres(postgres) => postgres.read(asked).await,
        }
    }

    /// Writes what waits and closes the store.
    ///
    /// # Errors
    /// Those of [`Ledger::exchange`]; what could not be written is lost.
    pub async fn close(self) -> Result<(), Error> {
        self.exchange(&[]).await?;
        if let Backend::Sqlite(sqlite) = self.open.into_inner().backend {
            sqlite.close().await;
        }
        Ok(())
    }

    /// Users and periods whose sums have not been written.
    pub fn waits(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A user's name as stores can keep it: PostgreSQL has no texts with a zero byte.
fn key(user: &str) -> String {
    let mut name = user.replace('\0', "\u{fffd}");
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    name
}
