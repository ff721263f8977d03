//! Result files, tables for the terminal and the page that opens in a browser.
//!
//! Everything here takes a finished (or cut short) [`RunResult`](crate::result::RunResult) and nothing else: no clock,
//! no environment, no measurement. A report can therefore be rebuilt from a result file at any time. All text that a
//! peer, a file or a user supplied is treated as hostile: control characters never reach a terminal, and markup never
//! reaches a page.

pub(crate) mod bip324;
mod crossover;
mod files;
pub mod html;
pub mod json;
mod limits;
mod load;
mod packets;
pub mod terminal;
mod transports;

mod finding;
mod view;

#[cfg(test)]
mod gpu_tests;
#[cfg(test)]
mod load_tests;
