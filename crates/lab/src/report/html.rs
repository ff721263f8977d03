//! The report as one HTML file that opens from disk.
//!
//! It asks no network for anything: a content security policy forbids all loads, style and script are inline and allowed
//! by their hash alone. The charts are drawn here, as inline SVG, so that the page reads the same with scripts off; the
//! script only adds sorting, hiding of series, values on hover and by arrow keys, the choice of light or dark, and the
//! download of the embedded result.

mod bars;
mod bip324;
mod embed;
mod figure;
mod forest;
mod load;
mod packets;
mod page;
mod scale;
mod strip;
mod svg;
mod throughput;
mod transports;
mod trust;

use std::path::Path;

use sealway_net::replace::{self, WriteError};

use crate::result::RunResult;

/// The whole page. Any run can be rendered: cut short, without peers, without a single figure.
pub fn render(run: &RunResult) -> String {
    page::render(run)
}

/// Writes the page to `path`, whole or not at all (see [`replace::replace_with`]).
///
/// # Errors
/// [`WriteError`]; an older file is then as it was.
pub fn write(path: &Path, run: &RunResult) -> Result<(), WriteError> {
    replace::replace(path, render(run).as_bytes())
}
