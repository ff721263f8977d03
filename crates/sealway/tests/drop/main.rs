//! The file drop: ends that send, receive, share and mount, here, at a relay, behind NATs and on a network.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod lan;
#[cfg(target_os = "linux")]
mod localsend;
mod mount_at_relay;
mod mount_writable;
#[cfg(target_os = "linux")]
mod nat;
#[cfg(target_os = "linux")]
mod person;
#[cfg(target_os = "linux")]
mod programs;
mod via_grpc;
#[cfg(target_os = "linux")]
mod web;
