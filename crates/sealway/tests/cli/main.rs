//! The words of the program: what it is asked and told, prints and ends with.
#![allow(clippy::unwrap_used)]

#[cfg(target_os = "linux")]
mod bip324;
mod command_line;
#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod gateway;
mod help;
mod pages;
mod route;
mod words;
