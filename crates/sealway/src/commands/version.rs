//! `sealway version`.

use sealway_lab::exit::Exit;

use crate::args;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run() -> Result<Exit, Problem> {
    output::print(&format!("sealway {}\n", args::version()))?;
    Ok(Exit::Done)
}
