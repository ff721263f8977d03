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

/// Those that can run over an emulated link ([`crate::link`]): their bytes go through sockets between two ends.
pub const OVER_LINKS: Catalogue = Catalogue(&[
    &transports::WORKLOAD,
    &requests::WORKLOAD,
    &flows::WORKLOAD,
    &files::WORKLOAD,
]);
