//! Our ends against doubles of the app: as strict as 1.18, and as 1.17.

#![allow(clippy::unwrap_used)]

mod large;
mod pulling;
mod receiving;
mod sending;
mod strangers;
mod support;
