//! Result files, tables for the terminal and the page that opens in a browser.
//!
//! Everything here takes a finished (or cut short) [`RunResult`](crate::result::RunResult) and the workloads that its rows may
//! be of, and nothing else: no clock, no environment, no measurement. A report can therefore be rebuilt from a result file at
//! any time; [`live`] does the same with a run under way. No workload is known by name: `model`, `tables` and `figures` sort rows by what their
//! [`Lens`](crate::lens::Lens) says, and two renderers draw what comes of it. All text that a peer, a file or a user supplied
//! is treated as hostile: control characters never reach a terminal, and markup never reaches a page.

pub(crate) mod drawing;
mod figures;
pub mod html;
pub mod json;
pub(crate) mod listing;
pub mod live;
mod model;
mod notes;
mod published;
pub mod schema;
mod standings;
mod tables;
pub mod terminal;
