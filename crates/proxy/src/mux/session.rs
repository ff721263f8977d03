//! A session as its carrier sees it.

use std::sync::Arc;

use sealway_v2ray::Destination;
use tokio::task::AbortHandle;

use super::{Inbox, PacketInbox};

/// Where what comes for a session goes.
pub(crate) enum Entry {
    /// A stream, and the task that would be ended with it.
    Stream(Arc<Inbox>, Option<AbortHandle>),
    /// Datagrams: where they wait, and where those go that do not say it.
    Packets(Arc<PacketInbox>, Destination, Option<Arc<dyn Owner>>),
}

/// Who outlives a session of datagrams.
pub(crate) trait Owner: Send + Sync {
    /// The session of this number is over, or its carrier is lost, whose link lies at this address.
    fn left(&self, link: usize, serial: u64);
}
