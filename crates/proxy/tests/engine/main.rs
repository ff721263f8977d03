//! Engines with sockets around them: protocols, transports and routes, and whoever is a stranger to them. Tests that count what
//! belongs to a whole process, its memory or its descriptors, are programs of their own.
#![allow(clippy::unwrap_used)]

mod balancers;
mod behaviour;
mod chains;
#[path = "../common/mod.rs"]
mod common;
mod config;
mod floods;
mod http_header;
mod http_inbound;
#[path = "../common/inner.rs"]
mod inner;
mod keys;
mod limits;
mod matrix;
mod mux;
mod outbounds;
mod private_targets;
mod sniffing;
mod strangers;
mod trojan;
mod udp;
mod vision;
