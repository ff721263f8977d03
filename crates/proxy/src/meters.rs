//! What is counted besides bytes, for whoever watches the server: connections, handshakes, dials, what balancers chose.
//!
//! A meter is written with relaxed additions where something begins and where it ends, and read when somebody asks. Where
//! nobody watches there is none.

mod histogram;
mod reasons;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::settings::Service;

pub(crate) use histogram::{BOUNDS, Histogram};
pub(crate) use reasons::{Reason, Unreached};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// One more.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Something that is there until it is dropped, and is counted where this leads to.
#[derive(Debug)]
pub(crate) struct Open(Arc<AtomicI64>);

impl Open {
    fn new(count: &Arc<AtomicI64>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Of one inbound.
#[derive(Debug, Default)]
pub(crate) struct InMeter {
    open: Arc<AtomicI64>,
    /// Connections that were accepted.
    pub(crate) accepted: Count,
    /// Connections that ended before it was known what they want, and those that were refused, by reason.
    refused: [Count; Reason::ALL.len()],
    /// Connections of strangers that were handed on.
    pub(crate) strangers: Count,
    /// From accepting to knowing what is asked for.
    pub(crate) handshake: Histogram,
}

impl InMeter {
    /// A connection was accepted; it is open until the value is dropped.
    pub(crate) fn enter(&self) -> Open {
        self.accepted.add();
        Open::new(&self.open)
    }

    /// A connection was refused.
    pub(crate) fn refuse(&self, error: &Error) {
        self.refused[Reason::of(error) as usize].add();
    }

    /// How many were refused for this reason.
    pub(crate) fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason as usize].get()
    }

    /// How many connections there are now.
    pub(crate) fn now_open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }
}

/// Of one outbound.
#[derive(Debug, Default)]
pub(crate) struct OutMeter {
    open: Arc<AtomicI64>,
    /// From a request to a stream that carries it.
    pub(crate) dial: Histogram,
    failed: [Count; Unreached::ALL.len()],
}

impl OutMeter {
    /// A stream was opened in this time; it is open until the value is dropped.
    pub(crate) fn reached(&self, after: Duration) -> Open {
        self.dial.add(after);
        Open::new(&self.open)
    }

    /// A target was not reached.
    pub(crate) fn missed(&self, error: &Error) {
        self.failed[Unreached::of(error) as usize].add();
    }

    /// How many were not reached for this reason.
    pub(crate) fn failed(&self, why: Unreached) -> u64 {
        self.failed[why as usize].get()
    }

    /// How many streams there are now.
    pub(crate) fn now_open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }
}

/// How loading the configuration again went.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Reloads {
    /// How often it was taken up.
    pub(crate) taken: u64,
    /// How often it was refused.
    pub(crate) refused: u64,
    /// When the last one was taken up, Unix time in seconds. 0: none was.
    pub(crate) last: i64,
}

/// Everything that is counted of a server, by tag. It outlives configurations; a tag that is gone with all that was open there is
/// forgotten when somebody looks.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    inbounds: Mutex<BTreeMap<String, Arc<InMeter>>>,
    outbounds: Mutex<BTreeMap<String, Arc<OutMeter>>>,
    reloads: Mutex<Reloads>,
    on: AtomicBool,
    watchers: OnceLock<Service>,
}

impl Meters {
    /// From now on what begins is counted, or not.
    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// Whether what begins is counted.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// The meter of the inbound with this tag, if anything is counted.
    pub(crate) fn inbound(&self, tag: &str) -> Option<Arc<InMeter>> {
        self.is_on().then(|| of(&self.inbounds, tag))
    }

    /// The meter of the outbound with this tag, if anything is counted.
    pub(crate) fn outbound(&self, tag: &str) -> Option<Arc<OutMeter>> {
        self.is_on().then(|| of(&self.outbounds, tag))
    }

    /// All inbounds, in the order of their tags.
    pub(crate) fn inbounds(&self) -> Vec<(String, Arc<InMeter>)> {
        all(&self.inbounds, |meter| meter.now_open() > 0)
    }

    /// All outbounds, in the order of their tags.
    pub(crate) fn outbounds(&self) -> Vec<(String, Arc<OutMeter>)> {
        all(&self.outbounds, |meter| meter.now_open() > 0)
    }

    /// The configuration was loaded again: whether it was taken up, and when, Unix time in seconds.
    pub(crate) fn reloaded(&self, taken: bool, now: i64) {
        let mut reloads = self.reloads.lock().unwrap_or_else(PoisonError::into_inner);
        match taken {
            true => (reloads.taken, reloads.last) = (reloads.taken + 1, now),
            false => reloads.refused += 1,
        }
    }

    /// How loading the configuration again went.
    pub(crate) fn reloads(&self) -> Reloads {
        *self.reloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who asks behind the tag of `metrics` is answered by this.
    pub(crate) fn answer(&self, service: Service) {
        // There is one, from the start.
        let _ = self.watchers.set(service);
    }

    /// What answers in the place of a service of the settings.
    pub(crate) fn stands_for<'a>(&'a self, service: &'a Service) -> &'a Service {
        let own = self.watchers.get().filter(|own| own.tag == service.tag);
        own.unwrap_or(service)
    }
}

fn of<M: Default>(all: &Mutex<BTreeMap<String, Arc<M>>>, tag: &str) -> Arc<M> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    match all.get(tag) {
        Some(meter) => Arc::clone(meter),
        None => Arc::clone(all.entry(tag.to_owned()).or_default()),
    }
}

fn all<M>(all: &Mutex<BTreeMap<String, Arc<M>>>, is_open: impl Fn(&M) -> bool) -> Vec<(String, Arc<M>)> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    // Whoever has the tag holds the meter.
    all.retain(|_, meter| Arc::strong_count(meter) > 1 || is_open(meter));
    all.iter()
        .map(|(tag, meter)| (tag.clone(), Arc::clone(meter)))
        .collect()
}

#[cfg(test)]
mod tests;
