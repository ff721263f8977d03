//! What a bridge counts.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of a running bridge.
        #[derive(Debug, Default)]
        pub struct Stats {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
        #[non_exhaustive]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// What has been counted so far.
            pub fn totals(&self) -> Totals {
                Totals { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Connections accepted, those turned away included.
    accepted,
    /// Connections closed at once because there were too many, of all or of their address, or their address made too many.
    turned_away,
    /// Connections closed while they were silent, so that another could have their place.
    evicted,
    /// Connections that came as v1.
    incoming_v1,
    /// Connections that came as v2, after their handshake.
    incoming_v2,
    /// Connections of which nothing came of the beginning: a failed or slow handshake, another network.
    incoming_failed,
    /// Connections out by v2, after their handshake.
    outgoing_v2,
    /// Connections out by v1, those after a v2 attempt included.
    outgoing_v1,
    /// Connections that were tried by v2 and then by v1.
    fallbacks,
    /// Times the other side could not be reached.
    outgoing_failed,
    /// Messages carried to the side that is connected to.
    messages_out,
    /// Messages carried from there.
    messages_in,
    /// Bytes of payload carried to the side that is connected to.
    bytes_out,
    /// Bytes of payload carried from there.
    bytes_in,
    /// Messages that were dropped, as Bitcoin Core does: of v1 with a wrong checksum or type, of v2 with a type that v1 cannot
    /// say. Those of v1 are counted when the next message is carried or the connection ends.
    dropped,
    /// Decoys sent, counted when the next message is carried or the connection ends.
    decoys,
    /// Connections that ended by an error after they carried.
    broken,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} connections ({} v1, {} v2, {} turned away, {} evicted, {} failed), onward {} v1, {} v2, {} after a fallback, {} failed; \
             {} messages out, {} in, {} dropped, {} decoys",
            self.accepted,
            self.incoming_v1,
            self.incoming_v2,
            self.turned_away,
            self.evicted,
            self.incoming_failed,
            self.outgoing_v1,
            self.outgoing_v2,
            self.fallbacks,
            self.outgoing_failed,
            self.messages_out,
            self.messages_in,
            self.dropped,
            self.decoys,
        )
    }
}
