//! What is known of a server at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::process::Process;
use super::series::Series;
use crate::balance::Balancer;
use crate::dispatch::Queues;
use crate::engine::Engine;
use crate::meters::{InMeter, OutMeter, Reloads};
use crate::stats::{Health, Stats};

/// Users whose bytes are told.
const MAX_USERS: usize = 10_000;

/// What is known of a server at one moment.
pub(super) struct View {
    /// New connections are welcome.
    pub(super) ready: bool,
    /// Counters of bytes with their names, those of users only where they are told.
    bytes: Vec<(String, u64)>,
    pub(super) inbounds: Vec<(String, Arc<InMeter>)>,
    pub(super) outbounds: Vec<(String, Arc<OutMeter>)>,
    pub(super) health: BTreeMap<String, Health>,
    balancers: Arc<[Balancer]>,
    pub(super) queues: Queues,
    pub(super) process: Process,
    pub(super) reloads: Reloads,
    /// When the server started, Unix time in seconds.
    pub(super) began: i64,
}

impl View {
    /// Looks at everything.
    pub(super) fn of(stats: &Stats, engine: &Engine, ready: bool, (began, users): (i64, bool)) -> Self {
        let meters = stats.meters();
        View {
            ready,
            bytes: bytes(stats, users),
            inbounds: meters.inbounds(),
            outbounds: meters.outbounds(),
            health: stats.health(),
            balancers: Arc::clone(engine.dispatcher().table().balancers()),
            queues: engine.dispatcher().queues(),
            process: Process::read(),
            reloads: meters.reloads(),
            began,
        }
    }

    /// The bytes of every subject of a kind.
    pub(super) fn bytes(&self, kind: &str, out: &mut Series<'_>) {
        for (name, bytes) in &self.bytes {
            if let Some((of, tag, direction)) = parts(name)
                && of == kind
            {
                out.sample(&[tag, direction], bytes);
            }
        }
    }

    /// What balancers chose.
    pub(super) fn choices(&self, out: &mut Series<'_>) {
        for balancer in self.balancers.iter() {
            for (candidate, count) in balancer.chosen() {
                out.sample(&[balancer.tag(), candidate], count);
            }
        }
    }
}

/// All counters of bytes in one pass, of so many users as are told.
fn bytes(stats: &Stats, users: bool) -> Vec<(String, u64)> {
    let most = if users { MAX_USERS } else { 0 };
    let (mut told, mut last) = (0, String::new());
    let mut found = Vec::new();
    let wanted = |name: &str| match parts(name) {
        Some(("user", email, _)) => {
            // Both directions of one follow each other.
            if told <= most && (told == 0 || last != email) {
                told += 1;
                email.clone_into(&mut last);
            }
            told <= most
        }
        _ => true,
    };
    stats.each(false, wanted, |name, bytes| found.push((name.to_owned(), bytes)));
    found
}

/// Kind, name and direction of a counter. A name may hold anything.
pub(super) fn parts(counter: &str) -> Option<(&str, &str, &str)> {
    let (kind, rest) = counter.split_once(">>>")?;
    let (rest, direction) = rest.rsplit_once(">>>")?;
    Some((kind, rest.strip_suffix(">>>traffic")?, direction))
}
