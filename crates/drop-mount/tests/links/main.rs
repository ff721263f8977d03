//! What two ends of a shared folder do on their connections: calls, content, changes, and how they end.
#![allow(clippy::unwrap_used)]

mod beside;
mod bulk;
mod changes;
#[path = "../support/forwarder.rs"]
mod forwarder;
mod grpc;
mod lines;
mod sharing;
#[path = "../support/slow.rs"]
mod slow;
#[path = "../mount/support.rs"]
mod support;
