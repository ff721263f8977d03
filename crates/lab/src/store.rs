//! Runs that are kept: each whole result with what tells it from others, in a SQLite file or in a database.
//!
//! A result is kept as the text of its file, without needless blanks. Beside it stand the few facts by which runs are listed and
//! found: [`Kept`]. What comes from outside (a file that is imported, a database that others write to) is read by
//! [`crate::report::json`] like any other result file, and its texts are made harmless before they are shown.

mod checkout;
mod error;
mod find;
mod kept;
mod list;
mod parcel;
mod place;
mod postgres;
mod sqlite;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use crate::report::json;
use crate::result::RunResult;

pub use checkout::checkout;
pub use error::StoreError;
pub use find::{FindError, find, is_exact};
pub use kept::{Kept, Label, check_name};
pub(crate) use list::minute;
pub use list::render;
pub use parcel::{ImportError, Imported, Parcel, export, import};
pub use place::{Place, VARIABLE, place};

/// Most runs that are listed, and among which one is looked for by anything but its number: the newest.
pub const MOST_LISTED: u32 = 10_000;

/// Version of the tables. A store with a later one is refused.
const SCHEMA: i32 = 1;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// To read: nothing is made and nothing is changed.
    Read,
    /// To write: a store that is not there is made.
    Write,
}

/// By which number a run is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Added {
    /// By this one, from now on.
    New(i64),
    /// By this one, since earlier: the same run is kept once.
    Already(i64),
}

/// What a store does, whatever it is made of.
trait Backend {
    /// Keeps a run, unless one with the same identifier is there.
    fn add(&mut self, kept: &Kept, text: &[u8]) -> Result<Added, StoreError>;

    /// The newest runs, newest first, at most [`MOST_LISTED`].
    fn list(&mut self) -> Result<Vec<Kept>, StoreError>;

    /// The run of a number; `None` if there is none.
    fn kept(&mut self, id: i64) -> Result<Option<Kept>, StoreError>;

    /// The result of a run; `None` if it is gone.
    fn text(&mut self, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Deletes a run; whether it was there.
    fn delete(&mut self, id: i64) -> Result<bool, StoreError>;

    /// Deletes all but the newest `keep` runs without a name; how many that were.
    fn prune(&mut self, keep: u32) -> Result<u64, StoreError>;
}

/// An open store.
pub struct Store {
    backend: Box<dyn Backend>,
    name: String,
}

impl Store {
    /// Opens a store, and makes it if it is to be written and is not there.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if it is to be read and is not there; else why it cannot be used.
    pub fn open(place: &Place, access: Access) -> Result<Store, StoreError> {
        let backend: Box<dyn Backend> = match place {
            Place::File(path) => Box::new(sqlite::Sqlite::open(path, access)?),
            Place::Postgres(server) => Box::new(postgres::Postgres::open(server, access)?),
        };
        Ok(Store {
            backend,
            name: place.to_string(),
        })
    }

    /// A store that is gone with its owner, for the fuzz target.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn in_memory() -> Result<Store, StoreError> {
        Ok(Store {
            backend: Box::new(sqlite::Sqlite::in_memory()?),
            name: "memory".to_owned(),
        })
    }

    /// Keeps a run of this program.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] for a result that no reader would take; else why the store does not take it.
    pub fn keep(&mut self, run: &RunResult, label: &Label) -> Result<Added, StoreError> {
        let text = serde_json::to_vec(run).map_err(|error| StoreError::Unfit(error.to_string()))?;
        json::parse(Path::new("the result"), &text).map_err(|error| StoreError::Unfit(error.to_string()))?;
        self.keep_text(run, &text, label)
    }

    /// Keeps a run as the text that it was read from.
    fn keep_text(&mut self, run: &RunResult, text: &[u8], label: &Label) -> Result<Added, StoreError> {
        let kept = Kept::of(run, label).map_err(StoreError::Unfit)?;
        self.backend.add(&kept, text)
    }

    /// The newest runs, newest first, at most [`MOST_LISTED`].
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn list(&mut self) -> Result<Vec<Kept>, StoreError> {
        self.backend.list()
    }

    /// The result of a run.
    ///
    /// # Errors
    /// [`StoreError::Gone`] if it has been deleted since, [`StoreError::Document`] if it cannot be read as a result.
    pub fn result(&mut self, id: i64) -> Result<RunResult, StoreError> {
        let text = self.text(id)?;
        let place = format!("run {id} of {}", self.name);
        json::parse(Path::new(&place), &text).map_err(StoreError::Document)
    }

    fn text(&mut self, id: i64) -> Result<Vec<u8>, StoreError> {
        self.backend.text(id)?.ok_or(StoreError::Gone(id))
    }

    /// The run of a number, also if it is not among those that [`Store::list`] gives.
    ///
    /// # Errors
    /// Why the store cannot be read.
    pub fn kept(&mut self, id: i64) -> Result<Option<Kept>, StoreError> {
        self.backend.kept(id)
    }

    /// Deletes a run, also one with a name; whether it was there.
    ///
    /// # Errors
    /// Why the store does not do it.
    pub fn delete(&mut self, id: i64) -> Result<bool, StoreError> {
        self.backend.delete(id)
    }

    /// Deletes all but the newest `keep` runs; those with a name stay and do not count. How many are gone.
    ///
    /// # Errors
    /// Why the store does not do it.
    pub fn prune(&mut self, keep: u32) -> Result<u64, StoreError> {
        self.backend.prune(keep)
    }
}
