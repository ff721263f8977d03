//! `sealway lab doctor`.

use sealway_lab::doctor::Verdict;
use sealway_lab::{catalogue, primitives};

use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use crate::progress::Progress;

pub(crate) fn run(as_json: bool) -> Result<Exit, Problem> {
    let mut progress = Progress::start(true, None)?;
    let programs = catalogue::ALL.programs();
    let found = primitives::doctor(&programs, &mut progress).map_err(|e| Problem::new(e.ending().into(), &e));
    progress.clear();
    let found = found?;
    if as_json {
        output::print_json(&serde_json::to_value(&found)?)?;
    } else {
        output::print(&found.render())?;
    }
    Ok(match found.verdict {
        Verdict::Yes | Verdict::WithCare => Exit::Done,
        Verdict::No => Exit::Undecidable,
    })
}
