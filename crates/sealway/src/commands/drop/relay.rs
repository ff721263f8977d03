//! `sealway relay`.

use indicatif::HumanBytes;
use sealway_drop::address;
use sealway_drop_relay::{Limits, Server};

use super::stop_on_signal_saying;
use crate::args::Relay;
use crate::exit::Exit;
use crate::problem::{Problem, note};
use crate::signals::take_every_descriptor;

pub(crate) fn run(options: &Relay) -> Result<Exit, Problem> {
    let wrong = |error: &dyn std::fmt::Display| {
        Problem::usage(format!("--listen {}: {error}", options.listen)).hint("give HOST:PORT, such as [::]:26600")
    };
    let found = address::resolve(&options.listen).map_err(|error| wrong(&error))?;
    let address = found.into_iter().next();
    let address = address.ok_or_else(|| wrong(&"the name has no address"))?;
    take_every_descriptor();
    let cancel = stop_on_signal_saying("stopping: pairs may go on for a little; a second signal ends them at once")?;
    let server = Server::bind(address, Limits::default())
        .map_err(|error| Problem::from(error).hint("is another program there already?"))?;
    if !options.quiet {
        note(format_args!("relay at {}", server.address()));
    }
    let stats = server.run(&cancel)?;
    if !options.quiet {
        note(format_args!(
            "{} connections, {} pairs, {} passed on; {} turned away",
            stats.accepted,
            stats.pairs,
            HumanBytes(stats.bytes),
            stats.limited + stats.junk + stats.unknown
        ));
    }
    Ok(Exit::Done)
}
