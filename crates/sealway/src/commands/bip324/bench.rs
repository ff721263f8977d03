//! `sealway bip324 bench`: the lab's workload, under the name that someone looks for who has nodes in mind.

use sealway_lab::bip324;

use crate::args::{BenchWord, Bip324Bench, Measured};
use crate::commands::lab;
use crate::exit::Exit;
use crate::problem::Problem;

pub(super) fn run(bench: &Bip324Bench) -> Result<Exit, Problem> {
    let sockets = match bench.what {
        Some(BenchWord::Sockets) => bench.connections.iter().copied().map(usize::from).collect(),
        None => Vec::new(),
    };
    let special = lab::Special {
        gpu: bench.gpu.then_some(&[]),
        sockets,
        ..lab::Special::default()
    };
    lab::measure(Measured::One(&bip324::WORKLOAD), &bench.options, special)
}
