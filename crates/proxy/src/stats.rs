//! Counters of bytes, by user, inbound and outbound.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A number of bytes that grows while they move.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `bytes`.
    #[inline]
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Bytes so far, and starts again at 0; no byte is lost or counted twice in between.
    pub fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// Where the bytes of one end of a connection are counted, if anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    received: Option<Arc<Counter>>,
    sent: Option<Arc<Counter>>,
}

impl Traffic {
    /// Counts received and sent bytes in these.
    pub(crate) fn new(received: Option<Arc<Counter>>, sent: Option<Arc<Counter>>) -> Self {
        Traffic { received, sent }
    }

    /// Accounts for bytes that arrived.
    #[inline]
    pub(crate) fn received(&self, bytes: usize) {
        if let Some(counter) = &self.received {
            counter.add(bytes);
        }
    }

    /// Accounts for bytes that left.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        if let Some(counter) = &self.sent {
            counter.add(bytes);
        }
    }

    /// True if nothing is counted.
    pub(crate) fn is_silent(&self) -> bool {
        self.received.is_none() && self.sent.is_none()
    }

    /// The same counters seen from the other end.
    pub(crate) fn reversed(self) -> Self {
        Traffic {
            received: self.sent,
            sent: self.received,
        }
    }
}

/// How an outbound is, by what measuring it has shown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Health {
    /// It answers.
    pub alive: bool,
    /// How long an answer took, of several measurements on average.
    pub delay: Duration,
    /// How far the times of several measurements are spread.
    pub deviation: Duration,
    /// Measurements that count.
    pub measured: u32,
    /// Those of them that failed.
    pub failed: u32,
    /// When it was measured last, Unix time in seconds.
    pub last_try: i64,
    /// When it answered last, Unix time in seconds. 0: never.
    pub last_seen: i64,
    /// Why it did not answer when it did not last. Empty: it always did.
    pub last_error: String,
}

/// All counters of a running server, by name: `inbound>>>TAG>>>traffic>>>uplink` and its like.
#[derive(Debug, Default)]
pub struct Stats {
    counters: Mutex<BTreeMap<String, Arc<Counter>>>,
    health: Mutex<BTreeMap<String, Health>>,
}

impl Stats {
    /// The counter of that name, made if there is none.
    pub(crate) fn counter(&self, name: String) -> Arc<Counter> {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(counters.entry(name).or_default())
    }

    /// The counters of one subject: uplink, downlink.
    pub(crate) fn pair(&self, kind: &str, name: &str) -> [Arc<Counter>; 2] {
        ["uplink", "downlink"].map(|way| self.counter(format!("{kind}>>>{name}>>>traffic>>>{way}")))
    }

    /// Where the bytes of a subject are counted, as far as that is wanted.
    pub(crate) fn traffic(&self, kind: &str, name: &str, uplink: bool, downlink: bool) -> Traffic {
        let [up, down] = self.pair(kind, name);
        Traffic::new(uplink.then_some(up), downlink.then_some(down))
    }

    /// The counter of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<Arc<Counter>> {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters.get(name).map(Arc::clone)
    }

    /// Changes what is known of an outbound.
    pub(crate) fn set_health(&self, tag: &str, change: impl FnOnce(&mut Health)) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        match health.get_mut(tag) {
            Some(known) => change(known),
            None => change(health.entry(tag.to_owned()).or_default()),
        }
    }

    /// How the outbounds are that are measured, by tag. Those that have not been measured yet are left out.
    pub fn health(&self) -> BTreeMap<String, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All counters, in the order of their names.
    pub fn all(&self) -> Vec<(String, Arc<Counter>)> {
        let counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        counters
            .iter()
            .map(|(name, counter)| (name.clone(), Arc::clone(counter)))
            .collect()
    }
}
