//! Reports of runs that never happened: the table, the page, the result file.
#![allow(clippy::unwrap_used)]

mod browser;
mod canary;
mod common;
mod dummy;
mod gpu;
mod json;
mod limits;
mod live;
mod load;
mod narrow;
mod new_workload;
mod published;
mod ranked;
mod terminal;
mod transports;

use sealway_lab::catalogue;
use sealway_lab::report::{html, terminal as text};
use sealway_lab::result::RunResult;
use text::Style;

/// The page of a run, with all workloads that there are.
fn page_of(run: &RunResult) -> String {
    html::render(run, &catalogue::ALL)
}

/// The tables of a run in 80 columns, with all workloads that there are.
fn text_of(run: &RunResult) -> String {
    text::render(run, &catalogue::ALL, &Style::default(), &[])
}
