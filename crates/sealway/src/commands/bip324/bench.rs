//! `sealway bip324 bench`: the lab's workload, under the name that someone looks for who has nodes in mind.

use sealway_lab::bip324;
use sealway_lab::pin::{PinError, Places};

use crate::args::{BenchWord, Bip324Bench, Measured};
use crate::commands::lab;
use crate::exit::Exit;
use crate::problem::{Problem, note};

pub(super) fn run(bench: &Bip324Bench) -> Result<Exit, Problem> {
    let sockets = match bench.what {
        Some(BenchWord::Sockets) => bench.connections.iter().copied().map(usize::from).collect(),
        None => Vec::new(),
    };
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
        sockets,
        ..lab::Special::default()
    };
    lab::measure(Measured::One(&bip324::WORKLOAD), &bench.options, special)
}
