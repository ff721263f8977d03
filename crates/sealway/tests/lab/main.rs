//! The lab: its paths, how runs end, and what is kept of them.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod killed;
#[cfg(target_os = "linux")]
mod path;
#[cfg(target_os = "linux")]
mod remote;
mod reproduce;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod store;
