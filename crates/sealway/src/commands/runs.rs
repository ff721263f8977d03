//! Runs that are kept: `sealway lab runs`, `show`, `export`, `import` and `prune`.

use std::fmt::Display;
use std::io;

use sealway_lab::report::json::ReadError;
use sealway_lab::store::{self, FindError, ImportError, Kept, Parcel, StoreError};
use sealway_net::replace::{self, WriteError};

use super::lab;
use super::store::{Library, problem, writable};
use crate::args::{Export, Import, Prune, Runs, Show};
use crate::exit::Exit;
use crate::output::{self, Target};
use crate::problem::{Problem, note};

const LIST_THEM: &str = "`sealway lab runs` lists what is kept";

/// `sealway lab runs`.
pub(crate) fn runs(options: &Runs) -> Result<Exit, Problem> {
    let mut kept = Library::open(&options.stored)?.kept;
    if let Some(branch) = &options.branch {
        kept.retain(|run| run.label.branch.as_ref() == Some(branch));
    }
    let all = kept.len();
    kept.truncate(options.limit as usize);
    if options.json {
        output::print_json(&serde_json::to_value(&kept)?)?;
    } else if kept.is_empty() {
        note("no run is kept here");
    } else {
        output::print(&store::render(&kept, &output::style(&io::stdout(), false)))?;
    }
    if kept.len() < all {
        note(format!("{} of {all}; --limit shows more", kept.len()));
    }
    Ok(Exit::Done)
}

/// `sealway lab show`.
pub(crate) fn show(options: &Show) -> Result<Exit, Problem> {
    let (json, html) = output::targets(options.json.as_deref(), options.html.as_deref())?;
    let mut library = Library::open(&options.stored)?;
    let found = library.find(&options.run, None, unknown)?;
    let result = library.result(&found)?;
    lab::write(&result, json.as_ref(), html.as_ref())?;
    lab::show(&result, false, &[&json, &html])?;
    Ok(Exit::Done)
}

/// `sealway lab export`.
pub(crate) fn export(options: &Export) -> Result<Exit, Problem> {
    let target = Target::check("--output", &options.output)?;
    let mut library = Library::open(&options.stored)?;
    let kept = options.runs.iter().map(|word| library.find(word, None, unknown));
    let kept = kept.collect::<Result<Vec<_>, _>>()?;
    let Some(store) = &mut library.store else {
        return Ok(Exit::Done);
    };
    match &target {
        Target::File(path) => {
            let written = replace::replace_with(path, |out| store::export(store, &kept, out));
            written.map_err(|error| match &error {
                WriteError::Io { source, .. } => not_written(&error, source),
                _ => Problem::new(Exit::Internal, error),
            })?;
        }
        Target::Stdout => {
            let mut out = io::stdout().lock();
            store::export(store, &kept, &mut out).map_err(|error| not_written(&error, &error))?;
        }
    }
    Ok(Exit::Done)
}

/// `sealway lab import`.
pub(crate) fn import(options: &Import) -> Result<Exit, Problem> {
    // First: a file that is not there makes no store.
    let parcel = Parcel::open(&options.file).map_err(not_taken)?;
    let mut store = writable(&options.stored)?;
    let imported = store::import(&mut store, parcel).map_err(not_taken)?;
    note(format!("{} new, {} kept already", imported.new, imported.already));
    if imported.unnamed > 0 {
        note(format!(
            "{} without its name, which means other runs here",
            imported.unnamed
        ));
    }
    Ok(Exit::Done)
}

fn not_taken(error: ImportError) -> Problem {
    let exit = match error {
        ImportError::Newer(..) | ImportError::Result(ReadError::NewerSchema { .. }) => Exit::Store,
        ImportError::Store(StoreError::Unfit(_)) => Exit::Usage,
        ImportError::Store(_) => Exit::Store,
        _ => Exit::Usage,
    };
    Problem::new(exit, error)
}

/// An export ends early: the store may be at fault, and not what is written.
fn not_written(error: &dyn Display, source: &io::Error) -> Problem {
    let of_store = source.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>());
    of_store.map_or_else(|| Problem::new(Exit::Internal, error), problem)
}

/// `sealway lab prune`.
pub(crate) fn prune(options: &Prune) -> Result<Exit, Problem> {
    // To read first: where nothing is kept, nothing is made.
    let mut library = Library::open(&options.stored)?;
    let meant = options.runs.iter().map(|word| only(&mut library, word));
    let meant = meant.collect::<Result<Vec<Kept>, Problem>>()?;
    if library.store.take().is_none() {
        note("no run is kept here");
        return Ok(Exit::Done);
    }
    let mut store = writable(&options.stored)?;
    let failed = |error| problem(&error);
    let mut gone = match options.keep {
        Some(keep) => store.prune(keep).map_err(failed)?,
        None => 0,
    };
    for run in meant {
        gone += u64::from(store.delete(run.id).map_err(failed)?);
    }
    note(format!("{gone} deleted"));
    Ok(Exit::Done)
}

/// The run that a word means, if it cannot mean another tomorrow: what is deleted does not come back.
fn only(library: &mut Library, word: &str) -> Result<Kept, Problem> {
    let found = library.find(word, None, unknown)?;
    let is_number = found.id.to_string() == word;
    let is_identifier = store::is_exact(word) && found.run.starts_with(word);
    if is_number || is_identifier || found.label.name.as_deref() == Some(word) {
        return Ok(found);
    }
    let what = format!("{word}: only a number, an identifier or a name says which run is to be deleted");
    Err(Problem::usage(what).hint(format!("run {} is the one that it means now", found.id)))
}

fn unknown(error: FindError) -> Problem {
    Problem::usage(error).hint(LIST_THEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_at_fault_for_what_it_does_not_give() {
        let gone = io::Error::other(StoreError::Gone(3));
        assert_eq!(not_written(&gone, &gone).exit(), Exit::Store);
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(not_written(&full, &full).exit(), Exit::Internal);
    }
}
