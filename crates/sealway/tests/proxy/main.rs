//! The proxy as a program: configurations, reloads, logs, its management, and what panels and fleets expect of it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod api;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod compat;
mod fleet;
mod geo;
mod logs;
mod reload;
mod run;
