//! Counters of bytes, by user, inbound and outbound.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::meters::Meters;
use crate::people::{People, Person, Way};
use crate::tally::Tally;

/// A counter, and whom it belongs to.
#[derive(Clone, Debug)]
pub struct Counter(Whose);

#[derive(Clone, Debug)]
enum Whose {
    /// An inbound's or an outbound's.
    Tag(Arc<Tally>),
    /// A user's: uplink or downlink.
    Person(Arc<Person>, Way),
}

impl Counter {
    fn tally(&self) -> &Tally {
        match &self.0 {
            Whose::Tag(tally) => tally,
            Whose::Person(person, way) => {
                person.was_read();
                person.tally(*way)
            }
        }
    }

    /// Bytes so far.
    pub fn get(&self) -> u64 {
        self.tally().get()
    }

    /// Bytes so far, and starts again at 0; no byte is lost or counted twice in between.
    pub fn take(&self) -> u64 {
        self.tally().take()
    }
}

/// Where the bytes of one end of a connection are counted, if anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    received: Option<Arc<Tally>>,
    sent: Option<Arc<Tally>>,
}

impl Traffic {
    /// Counts received and sent bytes in these.
    pub(crate) fn new(received: Option<Arc<Tally>>, sent: Option<Arc<Tally>>) -> Self {
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
///
/// Those of inbounds and outbounds are there from the start, those of a user from the first connection of his that is counted.
#[derive(Debug, Default)]
pub struct Stats {
    tags: Mutex<BTreeMap<String, Arc<Tally>>>,
    people: Arc<People>,
    health: Mutex<BTreeMap<String, Health>>,
    meters: Meters,
}

/// The two ways of a user's counters, as they stand in names.
const WAYS: [(Way, &str); 2] = [(Way::Up, "uplink"), (Way::Down, "downlink")];

/// Appends the name of a counter.
fn push_name(name: &mut String, [kind, whose, way]: [&str; 3]) {
    for part in [kind, ">>>", whose, ">>>traffic>>>", way] {
        name.push_str(part);
    }
}

impl Stats {
    /// What is counted besides bytes.
    pub(crate) fn meters(&self) -> &Meters {
        &self.meters
    }

    fn tags(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Tally>>> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the bytes of an inbound or an outbound are counted, as far as that is wanted.
    pub(crate) fn traffic(&self, kind: &str, tag: &str, uplink: bool, downlink: bool) -> Traffic {
        let mut tags = self.tags();
        let mut one = |way| {
            let mut name = String::new();
            push_name(&mut name, [kind, tag, way]);
            Arc::clone(tags.entry(name).or_default())
        };
        Traffic::new(uplink.then(|| one("uplink")), downlink.then(|| one("downlink")))
    }

    /// Everybody who has an e-mail address and an account.
    pub(crate) fn people(&self) -> &Arc<People> {
        &self.people
    }

    /// The counter of that name, if there is one.
    pub fn get(&self, name: &str) -> Option<Counter> {
        if let Some(rest) = name.strip_prefix("user>>>") {
            let (email, way) = rest.rsplit_once(">>>traffic>>>")?;
            let (way, _) = WAYS.into_iter().find(|(_, word)| *word == way)?;
            let person = self.people.find(email).filter(|person| person.email() == email)?;
            person.counters()[way as usize]?;
            return Some(Counter(Whose::Person(person, way)));
        }
        self.tags()
            .get(name)
            .map(|tally| Counter(Whose::Tag(Arc::clone(tally))))
    }

    /// Shows the names and values of all counters whose names are `wanted`, those of inbounds and outbounds first. With `reset`
    /// these start again at 0, and no byte is lost or counted twice in between.
    ///
    /// One pass, which holds up no connections, and who adds users for less than a millisecond: neither `wanted` nor `show` may wait.
    pub fn each(&self, reset: bool, mut wanted: impl FnMut(&str) -> bool, mut show: impl FnMut(&str, u64)) {
        let value = |tally: &Tally| match reset {
            true => tally.take(),
            false => tally.get(),
        };
        let tags: Vec<(String, Arc<Tally>)> = {
            let tags = self.tags();
            tags.iter()
                .map(|(name, tally)| (name.clone(), Arc::clone(tally)))
                .collect()
        };
        for (name, tally) in tags {
            if wanted(&name) {
                show(&name, value(&tally));
            }
        }
        let mut name = "user>>>".to_owned();
        let before_email = name.len();
        self.people.each(|person| {
            let counters = person.counters();
            if counters.iter().all(Option::is_none) {
                return;
            }
            name.truncate(before_email);
            name.push_str(person.email());
            name.push_str(">>>traffic>>>");
            let before_way = name.len();
            for ((_, way), tally) in WAYS.iter().zip(counters) {
                let Some(tally) = tally else { continue };
                name.truncate(before_way);
                name.push_str(way);
                if wanted(&name) {
                    show(&name, value(tally));
                    person.was_read();
                }
            }
        });
    }

    /// All counters, in the order of their names.
    pub fn all(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        self.each(false, |_| true, |name, value| all.push((name.to_owned(), value)));
        all.sort_unstable();
        all
    }

    /// How many addresses a user is connected from. `None`: nobody has this e-mail, or he never was. Addresses are listed where the
    /// user's level asks for it, at most 1,024 of one user; those of this machine are not.
    pub fn online(&self, email: &str) -> Option<u32> {
        let person = self.people.find(email)?;
        person.was_listed().then(|| person.addresses())
    }

    /// The addresses that a user is connected from, each with the time when the last connection from it began, Unix time in
    /// seconds.
    pub fn online_addresses(&self, email: &str) -> Vec<(IpAddr, i64)> {
        self.people.find(email).map(|person| person.seen()).unwrap_or_default()
    }

    /// The e-mails of all users that are connected, as far as their addresses are listed, in no order.
    pub fn online_users(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.people.each(|person| {
            if person.addresses() > 0 {
                all.push(person.email().to_owned());
            }
        });
        all
    }

    /// How many connections were refused because a user had too many of them, came from too many addresses, or had used up his quota:
    /// of all users together.
    pub fn refusals(&self) -> [u64; 3] {
        let mut all = [0; 3];
        self.people.each(|person| {
            let Some(budget) = person.budget() else { return };
            for (sum, one) in all.iter_mut().zip(budget.refusals()) {
                *sum += u64::from(one);
            }
        });
        all
    }

    /// Changes what is known of an outbound.
    pub(crate) fn set_health(&self, tag: &str, change: impl FnOnce(&mut Health)) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        match health.get_mut(tag) {
            Some(known) => change(known),
            None => change(health.entry(tag.to_owned()).or_default()),
        }
    }

    /// Forgets what is known of other outbounds than these.
    pub(crate) fn keep_health(&self, kept: impl Fn(&str) -> bool) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.retain(|tag, _| kept(tag));
    }

    /// How the outbounds are that are measured, by tag. Those that have not been measured yet are left out.
    pub fn health(&self) -> BTreeMap<String, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests;
