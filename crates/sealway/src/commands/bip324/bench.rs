//! `sealway bip324 bench`: the lab's workload, under the name that someone looks for who has nodes in mind.

use sealway_lab::bip324;

use crate::args::{Bip324Bench, Measured};
use crate::commands::lab;
use crate::exit::Exit;
use crate::problem::Problem;

pub(super) fn run(bench: &Bip324Bench) -> Result<Exit, Problem> {
    lab::measure(
        Measured::One(&bip324::WORKLOAD),
        &bench.options,
        lab::Special {
            gpu: bench.gpu.then_some(&[]),
            ..lab::Special::default()
        },
    )
}
