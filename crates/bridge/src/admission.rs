//! Who is let in, and who gives way when all places are taken. Time is an argument.
//!
//! Places are counted by address, so that nobody can take all of them alone. A connection that has not yet said what it
//! speaks is *silent*, and gives its place to another one if it must; who has spoken keeps it.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::origin::Origin;
use crate::rate::Buckets;

/// How long a silent connection keeps its place against somebody who has as many. An honest client speaks at once, and a
/// long way through Tor takes a second or two.
const GRACE: Duration = Duration::from_secs(5);

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The address connects too often.
    TooOften,
    /// The address has as many connections as it may have.
    AddressFull,
    /// All places are taken by others who keep them.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::TooOften => "it connects too often",
            Refusal::AddressFull => "it has as many connections as one address may have (--max-per-address)",
            Refusal::Full => "all connections are in use (--max-connections)",
        })
    }
}

/// How much is let in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: usize,
    pub(crate) per_address: usize,
    pub(crate) per_address_per_second: u32,
}

/// All places. Shared by the listener and the connections.
#[derive(Clone)]
pub(crate) struct Admission(Arc<Mutex<Places>>);

impl Admission {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        Admission(Arc::new(Mutex::new(Places::new(limits, now))))
    }

    /// Lets a connection in, perhaps in the place of another; the second is then true.
    pub(crate) fn enter(&self, from: Origin, now: Instant) -> Result<(Place, bool), Refusal> {
        let (id, leave, evicted) = self.places().enter(from, now)?;
        let place = Place {
            id,
            leave,
            admission: self.clone(),
        };
        Ok((place, evicted))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        // Nothing in it is half done when something panics, and the count must go on.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection, free again when this is dropped.
pub(crate) struct Place {
    id: u64,
    leave: Arc<Notify>,
    admission: Admission,
}

impl Place {
    /// Says that the peer is no longer silent: the place cannot be taken from it any more.
    pub(crate) fn spoke(&self) {
        self.admission.places().spoke(self.id);
    }

    /// Waits until the place has been given to somebody else.
    pub(crate) async fn taken(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.places().leave(self.id);
    }
}

/// A connection that has a place.
struct Guest {
    from: Origin,
    since: Instant,
    silent: bool,
    leave: Arc<Notify>,
}

/// What an address holds.
#[derive(Default)]
struct Held {
    open: usize,
    /// Silent connections; numbers rise with time.
    silent: BTreeSet<u64>,
}

impl Held {
    /// Its place among those who hold silent connections: most of them, then the one that has been silent for longest, last.
    fn rank(&self, from: Origin) -> Option<(usize, Reverse<u64>, Origin)> {
        let oldest = self.silent.first()?;
        Some((self.silent.len(), Reverse(*oldest), from))
    }
}

/// Memory follows the connections that are open, and the addresses of the last few seconds up to a limit.
struct Places {
    limits: Limits,
    next: u64,
    guests: HashMap<u64, Guest>,
    held: HashMap<Origin, Held>,
    /// Every address with silent connections, by [`Held::rank`].
    ranks: BTreeSet<(usize, Reverse<u64>, Origin)>,
    silent: BTreeSet<u64>,
    buckets: Buckets,
}

impl Places {
    fn new(limits: Limits, now: Instant) -> Self {
        Places {
            limits,
            next: 0,
            guests: HashMap::new(),
            held: HashMap::new(),
            ranks: BTreeSet::new(),
            silent: BTreeSet::new(),
            buckets: Buckets::new(limits.per_address_per_second, now),
        }
    }

    fn enter(&mut self, from: Origin, now: Instant) -> Result<(u64, Arc<Notify>, bool), Refusal> {
        if !self.buckets.take(from, now) {
            return Err(Refusal::TooOften);
        }
        let (open, oldest) = match self.held.get(&from) {
            Some(held) => (held.open, held.silent.first().copied()),
            None => (0, None),
        };
        let mut evicted = false;
        if open >= self.limits.per_address {
            // Others of the same address are not kept out by those of it that say nothing.
            let lingering = oldest.filter(|id| self.lingers(*id, now));
            self.evict(lingering.ok_or(Refusal::AddressFull)?);
            evicted = true;
        } else if self.guests.len() >= self.limits.connections {
            self.evict(self.who_gives_way(from, now).ok_or(Refusal::Full)?);
            evicted = true;
        }
        let id = self.next;
        self.next += 1;
        let leave = Arc::new(Notify::new());
        let guest = Guest {
            from,
            since: now,
            silent: true,
            leave: Arc::clone(&leave),
        };
        self.guests.insert(id, guest);
        self.silent.insert(id);
        self.change(from, |held| {
            held.open += 1;
            held.silent.insert(id);
        });
        Ok((id, leave, evicted))
    }

    /// The connection that gives its place to one more of this address: the youngest silent one of the address that holds
    /// most of them; if that leaves it with fewer than this one, the one that has been silent for longest, if for long.
    fn who_gives_way(&self, from: Origin, now: Instant) -> Option<u64> {
        let (most, _, whose) = self.ranks.last()?;
        let ours = self.held.get(&from).map_or(0, |held| held.silent.len());
        if *most > ours + 1 {
            return self.held.get(whose)?.silent.last().copied();
        }
        self.silent.first().copied().filter(|id| self.lingers(*id, now))
    }

    fn lingers(&self, id: u64, now: Instant) -> bool {
        let since = self.guests.get(&id).map(|guest| guest.since);
        since.is_some_and(|since| now.saturating_duration_since(since) >= GRACE)
    }

    fn evict(&mut self, id: u64) {
        if let Some(guest) = self.leave(id) {
            guest.leave.notify_one();
        }
    }

    fn spoke(&mut self, id: u64) {
        let Some(guest) = self.guests.get_mut(&id) else { return };
        guest.silent = false;
        let from = guest.from;
        self.silent.remove(&id);
        self.change(from, |held| {
            held.silent.remove(&id);
        });
    }

    /// Frees a place, unless it has been taken away already.
    fn leave(&mut self, id: u64) -> Option<Guest> {
        let guest = self.guests.remove(&id)?;
        if guest.silent {
            self.silent.remove(&id);
        }
        self.change(guest.from, |held| {
            held.open -= 1;
            held.silent.remove(&id);
        });
        Some(guest)
    }

    /// Changes what an address holds, and its rank with it.
    fn change(&mut self, from: Origin, change: impl FnOnce(&mut Held)) {
        let held = self.held.entry(from).or_default();
        if let Some(rank) = held.rank(from) {
            self.ranks.remove(&rank);
        }
        change(held);
        match held.rank(from) {
            Some(rank) => {
                self.ranks.insert(rank);
            }
            None if held.open == 0 => {
                self.held.remove(&from);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
