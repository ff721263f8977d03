//! `sealway lab compare`.

use std::path::Path;

use sealway_lab::report::json::{self, ReadError};
use sealway_lab::result::RunResult;
use sealway_lab::store::{self, FindError, Kept, Label};
use sealway_lab::{catalogue, compare};

use super::store::Library;
use crate::args::Compare;
use crate::exit::Exit;
use crate::output::{self, Target};
use crate::problem::Problem;

pub(crate) fn run(options: &Compare) -> Result<Exit, Problem> {
    let html = output::page_target(options.html.as_deref(), options.json)?;
    let mut sides = Sides { options, library: None };
    // What is meant by a branch depends on the other side.
    let (before, after) = if is_exact(&options.before) {
        let before = sides.read(&options.before, None)?;
        let after = sides.read(&options.after, facts(&before).as_ref())?;
        (before, after)
    } else {
        let after = sides.read(&options.after, None)?;
        (sides.read(&options.before, facts(&after).as_ref())?, after)
    };
    let how = compare::Options {
        control: options.control.clone(),
        ..compare::Options::default()
    };
    let with =
        |after: &RunResult| compare::compare(&before, after, &how).map_err(|e| Problem::new(e.ending().into(), &e));
    let mut comparison = with(&after)?;
    let mut repeats = Vec::with_capacity(options.again.len());
    for path in &options.again {
        repeats.push(with(&sides.read(path, facts(&after).as_ref())?)?);
    }
    comparison.confirm(&repeats);
    if let Some(target) = &html {
        output::write_page(target, &comparison.page(&catalogue::ALL))?;
    }
    if options.json {
        output::print_json(&serde_json::to_value(&comparison)?)?;
    } else if html != Some(Target::Stdout) {
        output::print(&comparison.render(&catalogue::ALL))?;
    }
    Ok(comparison.ending(options.strict).into())
}

/// What is compared: files, and runs from the store, which is opened when the first of them is named.
struct Sides<'a> {
    options: &'a Compare,
    library: Option<Library>,
}

impl Sides<'_> {
    fn read(&mut self, word: &Path, beside: Option<&Kept>) -> Result<RunResult, Problem> {
        if is_file(word) {
            return read(word);
        }
        let library = match &mut self.library {
            Some(library) => library,
            none => none.insert(Library::open(&self.options.stored)?),
        };
        let name = word.to_string_lossy();
        let found = library.find(&name, beside, |error| {
            let what = match error {
                FindError::Nothing(name) => {
                    format!("{name}: no such file, and no kept run has this number, name or branch")
                }
                error => error.to_string(),
            };
            Problem::usage(what).hint("name a file of `lab --json`, or a run of `sealway lab runs`")
        })?;
        library.result(&found)
    }
}

/// A folder may have the name of a branch, and is no result.
fn is_file(word: &Path) -> bool {
    word.metadata().is_ok_and(|found| !found.is_dir())
}

fn is_exact(word: &Path) -> bool {
    is_file(word) || store::is_exact(&word.to_string_lossy())
}

fn facts(run: &RunResult) -> Option<Kept> {
    Kept::of(run, &Label::default()).ok()
}

/// A result file.
pub(super) fn read(path: &Path) -> Result<RunResult, Problem> {
    json::read(path).map_err(|error| {
        let exit = match error {
            ReadError::NewerSchema { .. } => Exit::Store,
            _ => Exit::Usage,
        };
        Problem::new(exit, error)
    })
}
