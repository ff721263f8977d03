//! `sealway bip324 bench`: the lab's workload, under the name that someone looks for who has nodes in mind.

use sealway_lab::bip324::{self, MOST_OVER_LINK};
use sealway_lab::pin::{PinError, Places};

use crate::args::{BenchWord, Bip324Bench, Measured};
use crate::commands::lab;
use crate::exit::Exit;
use crate::problem::{Problem, note};

pub(super) fn run(bench: &Bip324Bench) -> Result<Exit, Problem> {
    let connections = match bench.what {
        Some(BenchWord::Sockets) => &bench.connections[..],
        None => &[],
    };
    if bench.link.is_some() && connections.iter().any(|count| *count > MOST_OVER_LINK) {
        let what = format!("--connections: over a link there can be {MOST_OVER_LINK} at most");
        return Err(Problem::usage(what).hint("sealway bip324 bench sockets --connections 1000 --link rtt=40ms"));
    }
    let pin = bench.pin.as_ref().map(Places::find).transpose();
    let pin = pin.map_err(|error| match error {
        PinError::Unknown(_) => Problem::new(Exit::Internal, error),
        _ => Problem::usage(format!("--pin: {error}")),
    })?;
    if let Some(places) = &pin {
        note(places);
    }
    let special = lab::Special {
        pin,
        gpu: bench.gpu.then_some(&[]),
        sockets: connections.iter().copied().map(usize::from).collect(),
        link: bench.link,
        ..lab::Special::default()
    };
    lab::measure(Measured::One(&bip324::WORKLOAD), &bench.options, special)
}
