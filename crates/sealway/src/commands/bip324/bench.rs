//! `sealway bip324 bench`: the lab's workload, under the name that someone looks for who has nodes in mind.

use sealway_lab::exit::Exit;
use sealway_lab::workload::Workload;

use crate::args::{Bip324Bench, Measured};
use crate::commands::lab;
use crate::problem::Problem;

pub(super) fn run(bench: &Bip324Bench) -> Result<Exit, Problem> {
    lab::measure(Measured::One(Workload::Bip324), &bench.options, bench.gpu)
}
