//! Runs that are kept: `sealway lab runs`, `show`, `export`, `import` and `prune`.

use std::path::{Path, PathBuf};

use sealway_lab::report::json::ReadError;
use sealway_lab::store::{self, FindError, ImportError, StoreError};
use sealway_net::replace;

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
        let value = serde_json::to_value(&kept).map_err(|error| Problem::new(Exit::Internal, error))?;
        output::print_json(&value)?;
    } else if kept.is_empty() {
        note("no run is kept here");
    } else {
        output::print(&store::render(&kept, &output::style(&std::io::stdout(), false)))?;
    }
    if kept.len() < all {
        note(format!("{} of {all}; --limit shows more", kept.len()));
    }
    Ok(Exit::Done)
}

/// `sealway lab show`.
pub(crate) fn show(options: &Show) -> Result<Exit, Problem> {
    let target =
        |name, path: &Option<PathBuf>| path.as_deref().map(|path: &Path| Target::check(name, path)).transpose();
    let (json, html) = (target("--json", &options.json)?, target("--html", &options.html)?);
    output::apart(json.as_ref(), html.as_ref())?;
    let mut library = Library::open(&options.stored)?;
    let found = library.find(&options.run, None).map_err(|error| unknown(&error))?;
    let result = library.result(&found)?;
    lab::write(&result, json.as_ref(), html.as_ref())?;
    lab::show(&result, false, &[&json, &html])?;
    Ok(Exit::Done)
}

/// `sealway lab export`.
pub(crate) fn export(options: &Export) -> Result<Exit, Problem> {
    let target = Target::check("--output", &options.output)?;
    let mut library = Library::open(&options.stored)?;
    let kept = options.runs.iter().map(|word| library.find(word, None));
    let kept = kept.collect::<Result<Vec<_>, _>>().map_err(|error| unknown(&error))?;
    let Some(store) = &mut library.store else {
        return Ok(Exit::Done);
    };
    match &target {
        Target::File(path) => {
            let written = replace::replace_with(path, |out| store::export(store, &kept, out));
            written.map_err(|error| Problem::new(Exit::Internal, error))?;
        }
        Target::Stdout => {
            let mut out = std::io::stdout().lock();
            store::export(store, &kept, &mut out).map_err(|error| Problem::new(Exit::Internal, error))?;
        }
    }
    Ok(Exit::Done)
}

/// `sealway lab import`.
pub(crate) fn import(options: &Import) -> Result<Exit, Problem> {
    let mut store = writable(&options.stored)?;
    let imported = store::import(&mut store, &options.file).map_err(|error| {
        let exit = match error {
            ImportError::Newer(..) | ImportError::Result(ReadError::NewerSchema { .. }) => Exit::Store,
            ImportError::Store(StoreError::Unfit(_)) => Exit::Usage,
            ImportError::Store(_) => Exit::Store,
            _ => Exit::Usage,
        };
        Problem::new(exit, error)
    })?;
    note(format!("{} new, {} kept already", imported.new, imported.already));
    Ok(Exit::Done)
}

/// `sealway lab prune`.
pub(crate) fn prune(options: &Prune) -> Result<Exit, Problem> {
    let mut store = writable(&options.stored)?;
    let gone = store.prune(options.keep).map_err(|error| problem(&error))?;
    note(format!("{gone} deleted"));
    Ok(Exit::Done)
}

fn unknown(error: &FindError) -> Problem {
    Problem::new(Exit::Usage, error).hint(LIST_THEM)
}
