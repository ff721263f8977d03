//! `sealway lab compare`.

use std::path::Path;

use sealway_lab::compare;
use sealway_lab::report::json::{self, ReadError};
use sealway_lab::result::RunResult;

use crate::args::Compare;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run(options: &Compare) -> Result<Exit, Problem> {
    let before = read(&options.before)?;
    let after = read(&options.after)?;
    let how = compare::Options {
        control: options.control.clone(),
        ..compare::Options::default()
    };
    let with =
        |after: &RunResult| compare::compare(&before, after, &how).map_err(|e| Problem::new(e.ending().into(), &e));
    let mut comparison = with(&after)?;
    let mut repeats = Vec::with_capacity(options.again.len());
    for path in &options.again {
        repeats.push(with(&read(path)?)?);
    }
    comparison.confirm(&repeats);
    if options.json {
        let value = serde_json::to_value(&comparison).map_err(|e| Problem::new(Exit::Internal, e))?;
        output::print_json(&value)?;
    } else {
        output::print(&comparison.render())?;
    }
    Ok(comparison.ending(options.strict).into())
}

fn read(path: &Path) -> Result<RunResult, Problem> {
    json::read(path).map_err(|error| {
        let exit = match error {
            ReadError::NewerSchema { .. } => Exit::Store,
            _ => Exit::Usage,
        };
        Problem::new(exit, error)
    })
}
