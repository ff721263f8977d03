//! The transport: connections, and the two directions of all of them.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use crate::fschacha::{PacketNumber, RecvChain, SendChain};
use crate::{Awaiting, Error, Kind, LENGTH_LEN};

use super::crypt::Crypt;
use super::recv::RecvSide;
use super::send::SendSide;
use super::{
    Backend, BatchCounters, BatchOptions, ConnectionId, Due, Executor, ExecutorFailure, FlushPolicy, Incoming,
    Outgoing, Routing,
};

/// Connections that there is room for at first.
const FIRST_CONNECTIONS: usize = 16;

/// Seals and opens the packets of many established connections together. See [`crate::batch`].
///
/// Keys are wiped when a connection goes, and all of them when the transport is dropped.
pub struct BatchTransport {
    send: SendSide,
    pub(super) recv: RecvSide,
    pub(super) crypt: Crypt,
    /// Places without a connection.
    free: Vec<u32>,
    live: usize,
    /// Generation of the first connection in a place, and how much is added for each after it.
    generations: (u32, u32),
    connections_limit: usize,
    closed: VecDeque<(ConnectionId, Error)>,
    flush: FlushPolicy,
    seal_by: Option<Duration>,
    open_by: Option<Duration>,
}

impl BatchTransport {
    /// A transport with the best backend of this machine.
    ///
    /// # Errors
    /// [`Error::Buffer`] for an arena that is too small, [`Error::ContentsTooLong`] for one that is too large or a limit
    /// beyond 2^24 - 1.
    pub fn new(options: BatchOptions) -> Result<Self, Error> {
        Self::with_backend(options, Backend::best())
    }

    /// A transport with a given backend.
    ///
    /// # Errors
    /// As [`BatchTransport::new`].
    pub fn with_backend(options: BatchOptions, backend: Backend) -> Result<Self, Error> {
        options.check()?;
        Ok(BatchTransport {
            send: SendSide::new(options.send_arena),
            recv: RecvSide::new(options.receive_arena, options.contents_limit),
            crypt: Crypt::new(backend),
            free: Vec::new(),
            live: 0,
            generations: (0, 1),
            connections_limit: options.connections_limit.min(u32::MAX as usize / 8),
            closed: VecDeque::new(),
            flush: options.flush,
            seal_by: None,
            open_by: None,
        })
    }

    /// Has its ids differ from those of the other transports of `of`: it is the one with this number. No connection was added yet.
    pub(super) fn share_ids(&mut self, number: u32, of: u32) {
        self.generations = (number, of);
    }

    /// The backend that works on the processor.
    pub const fn backend(&self) -> Backend {
        self.crypt.backend()
    }

    /// Has another executor do jobs beside the processor, as many as the routing says. What waits is done first; another
    /// executor that was set before is dropped.
    ///
    /// More packets wait before they are worked on, as many as the executor would like to have: a [`FlushPolicy`] and arenas
    /// that let so many wait make it worth its while.
    pub fn set_executor(&mut self, executor: Box<dyn Executor>, routing: Routing) {
        self.change_executor(Some((executor, routing)));
    }

    /// Has the processor alone do the jobs again. What waits is done first.
    pub fn remove_executor(&mut self) {
        self.change_executor(None);
    }

    fn change_executor(&mut self, executor: Option<(Box<dyn Executor>, Routing)>) {
        self.work();
        self.crypt.set_executor(executor);
        // Keys are loaded as they are needed, and then into both tables.
        self.send.unload();
        self.recv.unload();
    }

    /// Why the executor that was set failed and was dropped; `None` if it did not. The processor has done its work since.
    pub const fn executor_failure(&self) -> Option<&ExecutorFailure> {
        self.crypt.failure()
    }

    /// Adds an established connection: its two chains, and what came of a packet that is not whole, as
    /// [`crate::Parts`] has them. What the parts hold of output is to be written before anything from here.
    ///
    /// # Errors
    /// [`Error::TooManyConnections`] at the limit of [`BatchOptions`].
    pub fn add(&mut self, send: SendChain, recv: RecvChain, unread: &[u8]) -> Result<ConnectionId, Error> {
        if self.live >= self.connections_limit {
            let limit = self.connections_limit;
            return Err(Error::TooManyConnections { limit });
        }
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.new_place(),
        };
        let generation = match self.recv.generation(index as usize) {
            Some(before) => before.wrapping_add(self.generations.1),
            None => self.generations.0,
        };
        let id = ConnectionId { index, generation };
        self.send.insert(id, send);
        self.recv.insert(id, recv, unread);
        self.live += 1;
        // If the arena is full, it is looked at when more comes.
        if !unread.is_empty() && self.recv.room(id, 0, &mut self.crypt).is_ok() {
            self.receive_commit(0)?;
        }
        Ok(id)
    }

    /// A place that no connection has had.
    fn new_place(&mut self) -> u32 {
        let places = self.recv.places();
        if places == self.crypt.connections() {
            // Keys do not move: the table is made anew, and filled again as they are needed.
            self.work();
            self.crypt.resize((2 * places).max(FIRST_CONNECTIONS));
            self.send.unload();
            self.recv.unload();
        }
        places as u32
    }

    /// Removes a connection and wipes its keys; false if there is no such connection.
    ///
    /// What came before stays to be delivered; what was submitted and is not yet shown by [`BatchTransport::seal`] is not
    /// sent any more.
    pub fn remove(&mut self, id: ConnectionId) -> bool {
        let there = self.send.holds(id);
        if there {
            self.end(id);
            self.settle();
        }
        there
    }

    /// True if there is such a connection, and nothing has been found wrong with it.
    pub fn contains(&self, id: ConnectionId) -> bool {
        self.recv.is_live(id)
    }

    /// How many connections there are.
    pub const fn connections(&self) -> usize {
        self.live
    }

    /// The next connection that ended by itself, and why: a packet that is not authentic or is too long, or a machine that
    /// failed. It is gone already, with its keys; the caller closes the socket without a word.
    pub fn poll_closed(&mut self) -> Option<(ConnectionId, Error)> {
        self.closed.pop_front()
    }

    /// Plans a packet with `len` bytes of contents, and gives the place where the caller writes them at once: all of them,
    /// since what stood there before would be sent. Its number is used up.
    ///
    /// # Errors
    /// [`Error::Closed`] without such a connection, [`Error::ContentsTooLong`] for more than a length or the arena holds,
    /// [`Error::ArenaFull`] until [`BatchTransport::seal`] is called, [`Error::Exhausted`] after the last number of all. No
    /// number is used up then.
    #[inline]
    pub fn reserve(&mut self, id: ConnectionId, kind: Kind, len: usize) -> Result<&mut [u8], Error> {
        self.send.reserve(id, kind, len, &mut self.crypt)
    }

    /// Plans a packet and copies its contents.
    ///
    /// # Errors
    /// As [`BatchTransport::reserve`].
    #[inline]
    pub fn submit(&mut self, id: ConnectionId, kind: Kind, contents: &[u8]) -> Result<(), Error> {
        self.reserve(id, kind, contents.len())?.copy_from_slice(contents);
        Ok(())
    }

    /// Seals what was submitted since the last time and shows it. It stays until something is submitted again.
    ///
    /// A connection of which a packet could not be sealed, because memory ran out, is told by
    /// [`BatchTransport::poll_closed`].
    pub fn seal(&mut self) -> Outgoing<'_> {
        self.send.crypt(&mut self.crypt, true);
        self.settle();
        self.send.show(&mut self.crypt);
        self.seal_by = None;
        Outgoing {
            side: &self.send,
            crypt: &self.crypt,
        }
    }

    /// Has an executor begin to seal what was submitted, if it has slabs and that pays, and does not wait for it: time for something
    /// else, [`BatchTransport::open`] for instance, before [`BatchTransport::seal`] shows all of it. More may be submitted.
    /// Keys are sent to a device through one buffer: if some changed since the last slab, those before them are waited for.
    pub fn begin_seal(&mut self) {
        self.send.begin(&mut self.crypt);
    }

    /// The same for what came, before [`BatchTransport::open`]. Room that was given and not used is gone.
    pub fn begin_open(&mut self) {
        self.recv.begin(&mut self.crypt);
    }

    /// Takes bytes that came, in any pieces. Whole packets are planned; of one that is not whole, what came is kept.
    ///
    /// # Errors
    /// [`Error::Closed`] without such a connection or after something was wrong with it; [`Error::ArenaFull`] until
    /// [`BatchTransport::open`] is called, or for more at a time than the arena ever holds. Nothing was taken then.
    pub fn receive(&mut self, id: ConnectionId, bytes: &[u8]) -> Result<(), Error> {
        self.receive_room(id, bytes.len())?.copy_from_slice(bytes);
        self.receive_commit(bytes.len())
    }

    /// Room into which a socket can be read without a copy. What was read is taken by
    /// [`BatchTransport::receive_commit`], before anything else is received or anything is opened. What is in it before is
    /// left over from other packets and is not wiped; nor are contents, until others take their place.
    ///
    /// # Errors
    /// As [`BatchTransport::receive`].
    #[inline]
    pub fn receive_room(&mut self, id: ConnectionId, len: usize) -> Result<&mut [u8], Error> {
        self.recv.room(id, len, &mut self.crypt)
    }

    /// Takes the first `got` bytes of the room that was given last.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] without room, or after [`BatchTransport::open`] or [`BatchTransport::begin_open`], [`Error::Buffer`] if that had fewer bytes, [`Error::Closed`] if the connection has
    /// ended since.
    #[inline]
    pub fn receive_commit(&mut self, got: usize) -> Result<(), Error> {
        self.recv.commit(got, &mut self.crypt)
    }

    /// Opens what came since the last time and shows it. It stays until something is received again.
    ///
    /// Connections that ended are told by [`BatchTransport::poll_closed`]; what came on them before is among the messages.
    pub fn open(&mut self) -> Incoming<'_> {
        self.recv.crypt(&mut self.crypt, true);
        if !self.recv.doomed.is_empty() {
            self.recv.failed.append(&mut self.recv.doomed);
        }
        self.settle();
        self.recv.show(&mut self.crypt);
        self.open_by = None;
        Incoming {
            side: &self.recv,
            crypt: &self.crypt,
        }
    }

    /// What was sealed last, until something is submitted; nothing while something waits.
    pub const fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            side: &self.send,
            crypt: &self.crypt,
        }
    }

    /// What was opened last, until something is received.
    pub const fn incoming(&self) -> Incoming<'_> {
        Incoming {
            side: &self.recv,
            crypt: &self.crypt,
        }
    }

    /// Says what has waited long enough by the [`FlushPolicy`]. `now` is the time since whatever the caller counts from; the
    /// delay of a batch starts at the first call that finds something waiting. Connections that have to end do not wait.
    pub fn poll_flush(&mut self, now: Duration) -> Due {
        let flush = self.flush;
        let due = |(packets, bytes): (usize, usize), by: &mut Option<Duration>| {
            if packets == 0 {
                *by = None;
                return false;
            }
            let by = *by.get_or_insert(now.saturating_add(flush.delay));
            packets >= flush.packets || bytes >= flush.bytes || now >= by
        };
        Due {
            seal: due(self.send.waiting(), &mut self.seal_by),
            open: due(self.recv.waiting(), &mut self.open_by) || self.recv.has_ended_some(),
        }
    }

    /// When [`BatchTransport::poll_flush`] is to be called at the latest; `None` if it has found nothing that waits.
    pub fn deadline(&self) -> Option<Duration> {
        if self.recv.has_ended_some() {
            return Some(Duration::ZERO);
        }
        self.seal_by.into_iter().chain(self.open_by).min()
    }

    /// What has been done so far.
    pub const fn counters(&self) -> BatchCounters {
        self.crypt.counters
    }

    /// The number of the next packet that is sent; `None` without such a connection, or when all are used up.
    pub fn next_sent(&self, id: ConnectionId) -> Option<PacketNumber> {
        self.send.next_number(self.contains(id).then_some(id.index())?)
    }

    /// What a peer is in the middle of; see [`crate::Progress::is_due`]. `None` without such a connection.
    pub fn awaiting(&self, id: ConnectionId) -> Option<Awaiting> {
        let (have, missing) = self.recv.awaited(self.contains(id).then_some(id.index())?)?;
        Some(match missing {
            Some(missing) => Awaiting::Packet { missing },
            None => Awaiting::Length {
                missing: LENGTH_LEN.saturating_sub(have),
            },
        })
    }

    /// Does everything that waits.
    fn work(&mut self) {
        self.send.crypt(&mut self.crypt, false);
        self.recv.crypt(&mut self.crypt, false);
        self.settle();
    }

    /// Ends the connections that cannot go on.
    #[inline]
    fn settle(&mut self) {
        if !self.recv.failed.is_empty() || !self.send.failed.is_empty() {
            self.end_failed();
        }
    }

    #[cold]
    fn end_failed(&mut self) {
        while let Some((id, error)) = self.recv.failed.pop().or_else(|| self.send.failed.pop()) {
            if self.recv.generation(id.index()) == Some(id.generation) && self.send.holds(id) {
                self.end(id);
                self.crypt.counters.connections_failed += 1;
                self.closed.push_back((id, error));
            }
        }
    }

    /// Wipes a connection and frees its place.
    fn end(&mut self, id: ConnectionId) {
        // Jobs that wait may name its keys. What fails among them is noted.
        self.send.crypt(&mut self.crypt, false);
        self.recv.crypt(&mut self.crypt, false);
        self.send.remove(id.index(), &mut self.crypt);
        self.recv.remove(id.index(), &mut self.crypt);
        self.live -= 1;
        if id.generation.checked_add(self.generations.1).is_some() {
            self.free.push(id.index);
        }
    }
}

impl fmt::Debug for BatchTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchTransport")
            .field("connections", &self.live)
            .field("crypt", &self.crypt)
            .finish_non_exhaustive()
    }
}
