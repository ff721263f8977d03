//! `sealway lab doctor`.

use sealway_lab::doctor;
use sealway_lab::exit::Exit;

use crate::output;
use crate::problem::Problem;
use crate::progress::Progress;
use crate::stop::Stop;

pub(crate) fn run(as_json: bool) -> Result<Exit, Problem> {
    let mut progress = Progress::new(true, Stop::install()?, None);
    let found = doctor::examine(&mut progress).map_err(|e| Problem::new(e.exit(), &e));
    progress.clear();
    let found = found?;
    if as_json {
        let value = serde_json::to_value(&found).map_err(|e| Problem::new(Exit::Internal, e))?;
        output::print_json(&value)?;
    } else {
        output::print(&found.to_string())?;
    }
    Ok(found.exit())
}
