//! The server for browsers, asked by curl, by a browser and by strangers; archives, read by other programs.
#![allow(clippy::unwrap_used)]

mod archives;
mod browser;
mod common;
mod curl;
mod strangers;
