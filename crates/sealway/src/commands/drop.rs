//! The file drop: `sealway send`, `receive`, `relay`, `identity`.

mod events;
pub(crate) mod identity;
mod place;
pub(crate) mod receive;
pub(crate) mod relay;
pub(crate) mod send;
pub(crate) mod share;
mod via;

use std::io::{BufRead, Write};

use sealway_drop::{Error, Fault};
use sealway_lab::exit::Exit;

use crate::problem::Problem;

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

/// One line from the terminal; empty at its end.
fn ask(question: &str) -> String {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{question}");
    let _ = stderr.flush();
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    line.trim().to_owned()
}
