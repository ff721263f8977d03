//! `sealway version`.

use crate::args;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run() -> Result<Exit, Problem> {
    output::print(&format!("sealway {}\n", args::version()))?;
    Ok(Exit::Done)
}
