//! The store of the lab's runs: what a run leaves in it, and how other commands open it.

use std::ffi::OsString;

use sealway_lab::result::RunResult;
use sealway_lab::store::{self, Access, Added, FindError, Kept, Label, Place, Store, StoreError};

use crate::args::{Keep, Stored};
use crate::exit::Exit;
use crate::problem::Problem;

/// Where the result of a run goes.
pub(crate) struct Keeper {
    place: Place,
    label: Label,
}

impl Keeper {
    /// Finds it out before anything runs, and in which checkout that is; `None` if nothing is to be kept.
    pub(crate) fn new(keep: &Keep) -> Result<Option<Keeper>, Problem> {
        if keep.no_store {
            return Ok(None);
        }
        let folder = std::env::current_dir().unwrap_or_default();
        let label = Label {
            name: keep.name.clone(),
            ..store::checkout(&folder, variable)
        };
        Ok(place(&keep.stored)?.map(|place| Keeper { place, label }))
    }

    /// A warning if the store takes nothing, as far as that shows before there is a result.
    pub(crate) fn warning(&self) -> Option<String> {
        let error = Store::open(&self.place, Access::Write).err()?;
        Some(format!("warning: this run will not be kept: {error}"))
    }

    /// Keeps a result, and says so. A store that fails loses the run, and no more than that.
    pub(crate) fn keep(&self, result: &RunResult) -> Option<String> {
        if result.results.is_empty() {
            return None;
        }
        let kept = Store::open(&self.place, Access::Write).and_then(|mut store| store.keep(result, &self.label));
        Some(match kept {
            Ok(Added::New(id) | Added::Already(id)) => format!("kept as run {id} in {}", self.place),
            Err(error) => format!("warning: this run is not kept: {error}"),
        })
    }
}

/// The words of a command without those that say where and how its result is kept: they may hold a password, and are of no use to
/// who repeats the run.
pub(crate) fn without_store(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut left = Vec::new();
    let mut is_value = false;
    for word in words {
        let skip = is_value;
        is_value = !skip && ["--store", "--name"].contains(&word.as_str());
        let of_store =
            is_value || word == "--no-store" || ["--store=", "--name="].iter().any(|option| word.starts_with(option));
        if !skip && !of_store {
            left.push(word);
        }
    }
    left
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn place(stored: &Stored) -> Result<Option<Place>, Problem> {
    store::place(stored.store.as_deref(), variable).map_err(|error| problem(&error))
}

pub(crate) fn problem(error: &StoreError) -> Problem {
    let exit = if error.is_usage() { Exit::Usage } else { Exit::Store };
    Problem::new(exit, error)
}

/// The store, open to be read, with what is in it. One in which nothing has been kept yet is empty.
pub(crate) struct Library {
    pub(crate) store: Option<Store>,
    /// Newest first.
    pub(crate) kept: Vec<Kept>,
}

impl Library {
    pub(crate) fn open(stored: &Stored) -> Result<Library, Problem> {
        let empty = Library {
            store: None,
            kept: Vec::new(),
        };
        let Some(place) = place(stored)? else { return Ok(empty) };
        match Store::open(&place, Access::Read) {
            Err(StoreError::Missing(_)) => Ok(empty),
            Err(error) => Err(problem(&error)),
            Ok(mut store) => {
                let kept = store.list().map_err(|error| problem(&error))?;
                Ok(Library {
                    store: Some(store),
                    kept,
                })
            }
        }
    }

    /// The run that a word means, see [`store::find`]; a number also means one that is too old to be listed. `unknown` says what a
    /// word is that means none.
    pub(crate) fn find(
        &mut self,
        word: &str,
        beside: Option<&Kept>,
        unknown: impl Fn(FindError) -> Problem,
    ) -> Result<Kept, Problem> {
        let nothing = match store::find(&self.kept, word, beside) {
            Ok(found) => return Ok(found.clone()),
            Err(error) => unknown(error),
        };
        let (Some(store), Ok(id)) = (&mut self.store, word.parse::<i64>()) else {
            return Err(nothing);
        };
        let kept = store.kept(id).map_err(|error| problem(&error))?;
        // Digits with zeros before them are the beginning of an identifier.
        kept.filter(|run| run.id.to_string() == word).ok_or(nothing)
    }

    /// The result of a run that is kept here.
    pub(crate) fn result(&mut self, kept: &Kept) -> Result<RunResult, Problem> {
        let gone = || Err(StoreError::Gone(kept.id));
        let result = self.store.as_mut().map_or_else(gone, |store| store.result(kept.id));
        result.map_err(|error| problem(&error))
    }
}

/// The store, open to be written.
pub(crate) fn writable(stored: &Stored) -> Result<Store, Problem> {
    let no_place = || Problem::usage("nothing is kept here").hint("name a file with --store");
    let place = place(stored)?.ok_or_else(no_place)?;
    Store::open(&place, Access::Write).map_err(|error| problem(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_repeated_without_where_its_result_was_kept() {
        let without = |line: &str| without_store(line.split(' ').map(str::to_owned)).join(" ");
        for line in [
            "lab --store postgres://u:secret@host/db --quick",
            "lab --store=postgres://u:secret@host/db --quick",
            "lab --quick --no-store",
            "lab --name --store --quick",
            "lab --quick --name=secret --store secret",
        ] {
            assert_eq!(without(line), "lab --quick", "{line}");
        }
        assert_eq!(without("lab --quick --html store"), "lab --quick --html store");
    }
}
