//! The file drop: `sealway send`, `receive`, `share`, `mount`, `relay`, `identity`, `localsend`.

mod asking;
mod code;
mod consent;
mod drawing;
mod events;
mod guard;
pub(crate) mod identity;
mod lan;
pub(crate) mod localsend;
pub(crate) mod notify;
mod receive;
pub(crate) mod relay;
mod screen;
mod send;
mod session;
pub(crate) mod share;
mod web;

use sealway_drop::cancel::Cancel;
use sealway_drop::policy::Refused;
use sealway_drop::{Error, Fault};

use crate::args::{Receive, Send};
use crate::exit::Exit;
use crate::problem::{Problem, note};
use crate::stop;

/// What a command came to. Programs are told of every failure, wherever it was noticed.
pub(crate) fn told(json: bool, result: Result<Exit, Problem>) -> Result<Exit, Problem> {
    result.inspect_err(|problem| {
        events::Events {
            quiet: false,
            json,
            notify: false,
        }
        .failed(problem)
    })
}

pub(crate) fn sent(options: &Send) -> Result<Exit, Problem> {
    match &options.localsend {
        Some(device) => localsend::send(options, device),
        None => send::run(options),
    }
}

pub(crate) fn received(options: &Receive) -> Result<Exit, Problem> {
    match options.localsend {
        true => localsend::receive(options),
        false => receive::run(options),
    }
}

/// With which code a command ends.
impl From<Fault> for Exit {
    fn from(fault: Fault) -> Exit {
        match fault {
            Fault::Usage => Exit::Usage,
            Fault::Peer => Exit::Verification,
            Fault::Identity => Exit::Identity,
            Fault::Network | Fault::Declined => Exit::Remote,
            Fault::Storage => Exit::Storage,
            Fault::Cancelled => Exit::Interrupted,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::new(error.fault().into(), error)
    }
}

impl From<sealway_drop::identity::Error> for Problem {
    fn from(error: sealway_drop::identity::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Problem {
        Problem::usage(&refused).hint_if(refused.hint())
    }
}

/// Ctrl-C and SIGTERM end a transfer in good order; a second one leaves at once.
fn stop_on_signal() -> Result<Cancel, Problem> {
    stop_on_signal_saying("\nstopping")
}

/// The same with other words.
fn stop_on_signal_saying(words: &'static str) -> Result<Cancel, Problem> {
    let cancel = Cancel::new();
    let switch = cancel.clone();
    let first = move || {
        // First: what is said may have to wait for whoever reads it.
        switch.cancel();
        note(words);
    };
    stop::on_signal(first, code::restore)?;
    Ok(cancel)
}
