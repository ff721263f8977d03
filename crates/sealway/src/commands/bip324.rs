//! `sealway bip324`: one file a command.

mod bench;
mod bridge;
mod probe;

use sealway_bridge::{Error, Fault};

use crate::args::Bip324;
use crate::exit::Exit;
use crate::problem::Problem;

pub(crate) fn run(command: Bip324) -> Result<Exit, Problem> {
    match command {
        Bip324::Bench(options) => bench::run(&options),
        Bip324::Bridge(options) => bridge::run(&options),
        Bip324::Probe(options) => probe::run(&options),
    }
}

/// An error as the exit code it has.
fn problem(error: &Error) -> Problem {
    let exit = match error {
        Error::Listen { .. } | Error::Random(_) => Exit::Internal,
        Error::Resolve { .. } | Error::Connect { .. } => Exit::Remote,
        error if matches!(error.fault(), Fault::User | Fault::Caller) => Exit::Usage,
        _ => Exit::Remote,
    };
    Problem::new(exit, error)
}
