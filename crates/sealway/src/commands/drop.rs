//! The file drop: `sealway send`, `receive`, `relay`, `identity`.

mod asking;
mod code;
mod consent;
mod events;
pub(crate) mod identity;
mod place;
pub(crate) mod receive;
pub(crate) mod relay;
mod screen;
pub(crate) mod send;
pub(crate) mod share;
mod via;

use sealway_drop::{Error, Fault};
use sealway_lab::exit::Exit;

use crate::problem::Problem;

/// What a command came to. Programs are told of every failure, wherever it was noticed.
pub(crate) fn told(json: bool, result: Result<Exit, Problem>) -> Result<Exit, Problem> {
    result.map_err(|problem| events::Events { quiet: false, json }.failed(problem))
}

/// What is said of an error, and with which code the command ends.
fn problem(error: &Error) -> Problem {
    let exit = match error.fault() {
        Fault::Usage => Exit::Usage,
        Fault::Peer => Exit::Verification,
        Fault::Identity => Exit::Identity,
        Fault::Network | Fault::Declined => Exit::Remote,
        Fault::Storage => Exit::Storage,
        Fault::Cancelled => Exit::Interrupted,
    };
    Problem::new(exit, error)
}
