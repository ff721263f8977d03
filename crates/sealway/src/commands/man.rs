//! `sealway man`.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;
use crate::problem::Problem;

pub(crate) fn run(folder: &Path) -> Result<Exit, Problem> {
    if !folder.is_dir() {
        return Err(Problem::usage(format!("{} is no folder", folder.display()))
            .hint("make it first; the pages have fixed names and replace older ones"));
    }
    clap_mangen::generate_to(Cli::command(), folder)
        .map_err(|e| Problem::usage(format!("cannot write man pages to {}: {e}", folder.display())))?;
    Ok(Exit::Done)
}
