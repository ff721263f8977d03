//! The report as one HTML file that opens from disk.
//!
//! It asks no network for anything: a content security policy forbids all loads, style and script are inline and allowed
//! by their hash alone. The charts are drawn here, as inline SVG, so that the page reads the same with scripts off; the
//! script only adds sorting, hiding of series, values on hover and by arrow keys, the choice of light or dark, and the
//! download of the embedded result.

pub(crate) mod alone;
mod bars;
pub(crate) mod chart;
mod embed;
pub(crate) mod figure;
mod lines;
mod page;
mod published;
mod ratios;
pub(crate) mod scale;
mod strip;
mod trust;

use std::path::Path;

use sealway_net::replace::{self, WriteError};

use super::model;
use crate::result::RunResult;
use crate::workload::Catalogue;

/// The whole page. Any run can be rendered: cut short, without peers, without a single figure, of workloads that the catalogue
/// does not have.
pub fn render(run: &RunResult, catalogue: &Catalogue) -> String {
    let harmless = model::harmless(run);
    page::render(&model::Report::new(&harmless, catalogue), run)
}

/// Writes the page to `path`, whole or not at all (see [`replace::replace_with`]).
///
/// # Errors
/// [`WriteError`]; an older file is then as it was.
pub fn write(path: &Path, run: &RunResult, catalogue: &Catalogue) -> Result<(), WriteError> {
    replace::replace(path, render(run, catalogue).as_bytes())
}
