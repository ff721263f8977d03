//! Connections shared out over threads.

use std::num::NonZeroUsize;

use crate::Error;
use crate::fschacha::{RecvChain, SendChain};

use super::{BatchCounters, BatchOptions, BatchTransport, ConnectionId, Crew, Routing};

/// A connection of [`Shards`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ShardedId {
    /// The shard that has it.
    pub shard: usize,
    /// Its id there. The other shards refuse it with [`Error::Closed`].
    pub id: ConnectionId,
}

/// A transport for each thread: every connection belongs to one of them, for as long as it lives.
///
/// Shards have nothing in common, so a packet meets no lock and no memory that another thread writes to, and what is true
/// of a [`BatchTransport`] is true of each: results in order, connection by connection. Each may have an executor of its
/// own; several engines on one device share it. Threads are the caller's: one shard, or many, is used alike. Where some have
/// more to do than others, a [`Crew`] lets those that wait help; whether that pays, see there.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use sealway_bip324::Kind;
/// use sealway_bip324::batch::{BatchOptions, Shards};
/// use sealway_bip324::fschacha::{RecvChain, SendChain};
///
/// let mut shards = Shards::new(&BatchOptions::default(), NonZeroUsize::new(2).unwrap_or(NonZeroUsize::MIN))?;
/// let mut ids = Vec::new();
/// for peer in 0..4 {
///     let (length_key, content_key) = ([peer; 32], [!peer; 32]);
///     let send = SendChain::new(&length_key, &content_key)?;
///     ids.push(shards.add(send, RecvChain::new(&length_key, &content_key)?, &[])?);
/// }
/// // Every thread with the connections of its shard.
/// let ids = &ids;
/// let sent: usize = std::thread::scope(|scope| {
///     let threads = shards.iter_mut().enumerate().map(|(shard, transport)| {
///         scope.spawn(move || {
///             for own in ids.iter().filter(|own| own.shard == shard) {
///                 transport.submit(own.id, Kind::Genuine, b"\x12one ping")?;
///             }
///             Ok(transport.seal().iter().map(|output| output.byte_count()).sum::<usize>())
///         })
///     });
///     let threads: Vec<_> = threads.collect();
///     let sent = |thread: std::thread::ScopedJoinHandle<'_, Result<_, sealway_bip324::Error>>| thread.join().ok()?.ok();
///     threads.into_iter().filter_map(sent).sum()
/// });
/// assert_eq!(sent, 4 * 29);
/// # Ok::<(), sealway_bip324::Error>(())
/// ```
#[derive(Debug)]
pub struct Shards {
    shards: Vec<BatchTransport>,
}

impl Shards {
    /// So many transports, each with these options: arenas and limits are those of one shard.
    ///
    /// # Errors
    /// As [`BatchTransport::new`].
    pub fn new(options: &BatchOptions, count: NonZeroUsize) -> Result<Self, Error> {
        let of = u32::try_from(count.get()).unwrap_or(u32::MAX);
        let shard = |number| {
            let mut shard = BatchTransport::new(options.clone())?;
            shard.share_ids(number, of);
            Ok(shard)
        };
        let shards = (0..of).map(shard).collect::<Result<_, Error>>()?;
        Ok(Shards { shards })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shards.len()
    }

    /// Adds a connection to the shard that has the fewest; see [`BatchTransport::add`].
    ///
    /// # Errors
    /// As [`BatchTransport::add`].
    pub fn add(&mut self, send: SendChain, recv: RecvChain, unread: &[u8]) -> Result<ShardedId, Error> {
        let loads = self.shards.iter_mut().enumerate();
        match loads.min_by_key(|(_, transport)| transport.connections()) {
            Some((shard, transport)) => {
                let id = transport.add(send, recv, unread)?;
                Ok(ShardedId { shard, id })
            }
            None => Err(Error::Closed),
        }
    }

    /// The transport of a shard.
    pub fn shard(&mut self, shard: usize) -> Option<&mut BatchTransport> {
        self.shards.get_mut(shard)
    }

    /// All transports, to be handed to threads.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut BatchTransport> {
        self.shards.iter_mut()
    }

    /// Has idle threads of a crew take over work of busy shards, in place of an executor that a shard had.
    pub fn join(&mut self, crew: &Crew) {
        for transport in &mut self.shards {
            transport.set_executor(Box::new(crew.member()), Routing::Always);
        }
    }

    /// What all of them have done, added up.
    pub fn counters(&self) -> BatchCounters {
        let mut sum = BatchCounters::default();
        self.shards.iter().for_each(|transport| sum.add(&transport.counters()));
        sum
    }

    /// The transports by themselves, for threads that stay.
    pub fn into_transports(self) -> Vec<BatchTransport> {
        self.shards
    }
}
