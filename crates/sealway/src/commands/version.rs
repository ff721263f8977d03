//! `sealway version`.

use crate::args;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run() -> Result<Exit, Problem> {
    output::answer(&format!("sealway {}\n", args::version()))
}
