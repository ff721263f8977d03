//! Every workload. A new one is a module that holds a [`Workload`](crate::workload::Workload), and a line here.

use crate::workload::Catalogue;
use crate::{bip324, calibrate, files, flows, packets, primitives, requests, transports};

/// Every workload, in the order in which a run of all takes them.
pub const ALL: Catalogue = Catalogue(&[
    &primitives::WORKLOAD,
    &packets::WORKLOAD,
    &bip324::WORKLOAD,
    &transports::WORKLOAD,
    &requests::WORKLOAD,
    &flows::WORKLOAD,
    &files::WORKLOAD,
    &calibrate::WORKLOAD,
]);

/// Those that can run over an emulated link ([`crate::link`]): their bytes go through sockets between two ends. `calibrate` is none of
/// them, though its bytes do: generators that are compared over a link would all show what its relay can do.
pub const OVER_LINKS: Catalogue = Catalogue(&[
    &bip324::WORKLOAD,
    &transports::WORKLOAD,
    &requests::WORKLOAD,
    &flows::WORKLOAD,
    &files::WORKLOAD,
]);
