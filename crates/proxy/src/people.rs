//! Who uses the server, and what is known of him over all inbounds.
//!
//! A [`Person`] is one e-mail address, in whatever case it is written: his counters, and where he is connected from. A
//! [`Member`] is a person as one inbound knows him: what belongs to his account there, and the end of it. Whoever carries
//! something of his holds a [`Presence`].

mod budget;
mod gone;
mod online;
mod pass;
mod presence;
mod registry;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use once_cell::race::OnceBox;
use tokio::time::Instant;

use crate::clock::unix_time;
use crate::settings::{Level, Limits};
use crate::tally::Tally;

pub(crate) use budget::{Budget, Way};
use gone::Gone;
use online::{Online, listed};
pub(crate) use pass::Pass;
pub(crate) use presence::{Presence, Watch};
pub(crate) use registry::People;

/// Why somebody may not have another connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// He has just been removed.
    Removed,
    /// He has as many connections as he may have.
    Connections,
    /// He is connected from as many addresses as he may be.
    Addresses,
    /// He has used what he may use in a month.
    Quota,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Removed => "the user was removed",
            Refused::Connections => "too many connections",
            Refused::Addresses => "too many addresses",
            Refused::Quota => "the quota is used up",
        })
    }
}

/// Counters that have come into being, as bits of [`Person::used`].
const UP: u8 = 1;
const DOWN: u8 = 2;
/// Both were read after their last change.
const READ: u8 = 4;
/// He has come while his addresses were listed.
const LISTED: u8 = 8;

/// Somebody with an e-mail address, or, without one, whoever has one account.
///
/// There may be 100,000 of them: what few have lies elsewhere.
#[derive(Debug)]
pub(crate) struct Person {
    email: Box<str>,
    /// The e-mail in lower case, where that is another. Few write theirs so: they pay for a second box.
    lower: Option<Box<Box<str>>>,
    up: Tally,
    down: Tally,
    connections: AtomicU32,
    /// Inbounds that he is a member of.
    memberships: AtomicU32,
    /// Addresses that he is connected from, to be asked without a lock.
    addresses: AtomicU32,
    used: AtomicU8,
    online: Mutex<Option<Box<Online>>>,
    budget: OnceBox<Budget>,
}

impl Person {
    fn new(email: &str) -> Person {
        let lower = email.to_lowercase();
        Person {
            lower: (lower != email).then(|| Box::new(lower.into())),
            email: email.into(),
            up: Tally::default(),
            down: Tally::default(),
            connections: AtomicU32::new(0),
            memberships: AtomicU32::new(0),
            addresses: AtomicU32::new(0),
            used: AtomicU8::new(0),
            online: Mutex::default(),
            budget: OnceBox::new(),
        }
    }

    /// The name in counters: as it was first given.
    pub(crate) fn email(&self) -> &str {
        &self.email
    }

    /// Something of each line of memory that counters and their names are in, which has them come.
    fn glance(&self) -> u64 {
        let name = self.email.as_bytes().first().copied().unwrap_or_default();
        u64::from(name) ^ u64::from(self.used.load(Ordering::Relaxed)) ^ self.up.get() ^ self.down.get()
    }

    /// What he is found by.
    pub(crate) fn lower(&self) -> &str {
        self.lower.as_ref().map_or(&self.email, |lower| lower)
    }

    fn online(&self) -> MutexGuard<'_, Option<Box<Online>>> {
        self.online.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What he may take, if that was ever limited or is kept.
    #[inline]
    pub(crate) fn budget(&self) -> Option<&Budget> {
        self.budget.get()
    }

    /// Sets his limits. Without any, and where nothing is kept, there is nothing to remember.
    fn limit(&self, limits: &Limits, keeps: bool) {
        let now = Instant::now();
        if let Some(budget) = self.budget() {
            budget.set(limits, now);
        } else if keeps || limits.is_limit() {
            self.budget.get_or_init(|| Box::new(Budget::new(now))).set(limits, now);
        }
    }

    /// A connection begins. The address that it is listed under, if it is.
    fn arrive(&self, member: &Member, from: Option<IpAddr>) -> Option<IpAddr> {
        let level = &member.level;
        let used = (u8::from(level.count_uplink) * UP)
            | (u8::from(level.count_downlink) * DOWN)
            | (u8::from(level.count_online) * LISTED);
        // Mostly they are there and unread, and the line of memory is not taken from others.
        if self.used.load(Ordering::Relaxed) & (used | READ) != used {
            self.used.fetch_or(used, Ordering::Relaxed);
            self.used.fetch_and(!READ, Ordering::Relaxed);
        }
        let address = listed(from).filter(|_| level.count_online)?;
        let mut online = self.online();
        let all = online.get_or_insert_default();
        let listed = all.add(address, unix_time());
        self.addresses.store(all.len() as u32, Ordering::Relaxed);
        listed.then_some(address)
    }

    /// A connection has ended.
    fn depart(&self, listed: Option<IpAddr>) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = listed else { return };
        let mut online = self.online();
        if let Some(all) = online.as_mut() {
            all.remove(address);
            let left = all.len();
            self.addresses.store(left as u32, Ordering::Relaxed);
            if left == 0 {
                *online = None;
            }
        }
    }

    /// How many connections of his are carried.
    pub(crate) fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    /// How many addresses he is connected from, as far as they are listed.
    pub(crate) fn addresses(&self) -> u32 {
        self.addresses.load(Ordering::Relaxed)
    }

    /// Whether he was ever connected while his addresses were listed.
    pub(crate) fn was_listed(&self) -> bool {
        self.used.load(Ordering::Relaxed) & LISTED != 0
    }

    /// The addresses that he is connected from, each with the time when the last connection from it began, Unix time in
    /// seconds.
    pub(crate) fn seen(&self) -> Vec<(IpAddr, i64)> {
        self.online().as_ref().map(|all| all.list()).unwrap_or_default()
    }

    /// His counter of what he sends, or of what he receives.
    pub(crate) fn tally(&self, way: Way) -> &Tally {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// His counters were read. While something is carried, more may come.
    pub(crate) fn was_read(&self) {
        // Whoever was read before is not written to again: the line of memory stays where it is.
        if self.used.load(Ordering::Relaxed) & READ == 0 && self.connections() == 0 {
            self.used.fetch_or(READ, Ordering::Relaxed);
        }
    }

    fn is_member(&self) -> bool {
        self.memberships.load(Ordering::Acquire) > 0
    }

    /// Whether he has never been counted.
    fn is_unused(&self) -> bool {
        self.used.load(Ordering::Relaxed) & (UP | DOWN) == 0
    }

    /// Whether nothing is lost with him: nothing of his is carried, and all that was counted was read.
    fn is_settled(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        self.connections() == 0 && (self.is_unused() || used & READ != 0)
    }

    /// His counters, uplink and downlink. `None`: it has never been used.
    pub(crate) fn counters(&self) -> [Option<&Tally>; 2] {
        let used = self.used.load(Ordering::Relaxed);
        [
            (used & UP != 0).then_some(&self.up),
            (used & DOWN != 0).then_some(&self.down),
        ]
    }
}

/// A person as one inbound knows him.
#[derive(Debug)]
pub(crate) struct Member {
    person: Arc<Person>,
    pub(crate) level: Arc<Level>,
    /// The number that the level was asked for by.
    pub(crate) level_number: u32,
    gone: Gone,
    /// What few have.
    besides: Option<Box<Besides>>,
}

#[derive(Debug)]
struct Besides {
    /// The e-mail as this inbound has it, where its case is not the person's.
    email: Option<Box<str>>,
    /// Who he was in the inbound that stood here before, where something of him was another. Their end is one: that of this one,
    /// who has nobody before him.
    first: Option<Arc<Member>>,
}

impl Member {
    /// A member who is registered nowhere, and who ends with the one that he was before.
    fn new(
        person: Arc<Person>,
        email: &str,
        level_number: u32,
        level: Arc<Level>,
        before: Option<&Arc<Member>>,
    ) -> Arc<Member> {
        let besides = Besides {
            email: (*person.email != *email).then(|| email.into()),
            first: before.map(|before| Arc::clone(before.first().unwrap_or(before))),
        };
        Arc::new(Member {
            besides: (besides.email.is_some() || besides.first.is_some()).then(|| Box::new(besides)),
            person,
            level,
            level_number,
            gone: Gone::default(),
        })
    }

    fn first(&self) -> Option<&Arc<Member>> {
        self.besides.as_ref()?.first.as_ref()
    }

    /// The end of him here, for who he will be where another inbound takes the place of this one as well.
    #[inline]
    fn gone(&self) -> &Gone {
        self.first().map_or(&self.gone, |first| &first.gone)
    }

    /// Whether he is the same one, here and in the inbound that stood here before.
    pub(crate) fn is(&self, other: &Member) -> bool {
        std::ptr::eq(self.gone(), other.gone())
    }

    /// The name in rules and the access log. Empty: he has none.
    pub(crate) fn email(&self) -> &str {
        let own = self.besides.as_ref().and_then(|besides| besides.email.as_deref());
        own.unwrap_or(&self.person.email)
    }

    /// What he is found by. Empty: he has no e-mail.
    pub(crate) fn lower(&self) -> &str {
        self.person.lower()
    }

    /// He is removed: everything that is carried for him here ends, and nothing begins.
    pub(crate) fn end(&self) {
        self.gone().set();
    }

    /// Begins to carry something of his that came from this address.
    ///
    /// # Errors
    /// [`Refused`] says why he may not have another connection.
    pub(crate) fn enter(self: &Arc<Self>, from: Option<IpAddr>) -> Result<Presence, Refused> {
        Presence::of(self, from)
    }
}

#[cfg(test)]
mod tests;
