//! `sealway completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn run(shell: Shell) -> Result<Exit, Problem> {
    // Into memory first: the generator panics when its writer fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sealway", &mut script);
    output::answer(&String::from_utf8_lossy(&script))
}
