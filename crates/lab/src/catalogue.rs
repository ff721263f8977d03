//! Every workload. A new one is a module that holds a [`Workload`], and a line here.

use crate::workload::Workload;
use crate::{bip324, files, flows, packets, primitives, requests, transports};

/// Every workload, in the order in which a run of all takes them.
pub static ALL: [&Workload; 7] = [
    &primitives::WORKLOAD,
    &packets::WORKLOAD,
    &bip324::WORKLOAD,
    &transports::WORKLOAD,
    &requests::WORKLOAD,
    &flows::WORKLOAD,
    &files::WORKLOAD,
];

/// The workload called `name`.
pub fn named(name: &str) -> Option<&'static Workload> {
    ALL.into_iter().find(|workload| workload.name == name)
}

/// Names of all peers that any workload knows, each once.
pub fn peers() -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in ALL.iter().flat_map(|workload| workload.peers) {
        if !names.contains(name) {
            names.push(*name);
        }
    }
    names
}
