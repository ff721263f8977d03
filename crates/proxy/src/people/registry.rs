//! All people of a server.

use std::borrow::Borrow;
use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

use super::{Member, Person};
use crate::settings::{Level, Limits};

/// Parts of the table, so that whoever changes one, or goes through all, holds up few others.
const SHARDS: usize = 64;

/// How many people are asked of the memory at once.
const AHEAD: usize = 32;

/// How long the counters of somebody who was removed are kept at least.
pub(super) const KEPT: Duration = Duration::from_secs(600);

/// People who were removed and whose counters nobody reads. Beyond that, those who went first are forgotten.
pub(super) const MAX_DEPARTED: usize = 65_536;

/// A person by his e-mail, in lower case.
#[derive(Debug)]
struct Known(Arc<Person>);

impl Borrow<str> for Known {
    fn borrow(&self) -> &str {
        self.0.lower()
    }
}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.lower().hash(state);
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.0.lower() == other.0.lower()
    }
}

impl Eq for Known {}

/// Everybody who has an e-mail address and an account, by that address. Connections never look here.
#[derive(Debug)]
pub(crate) struct People {
    shards: [RwLock<HashSet<Known>>; SHARDS],
    /// What everybody uses is kept.
    keeps: AtomicBool,
    /// Those who are members of nothing any more, in the order in which they went, and when. Some may be back.
    departed: Mutex<VecDeque<(Instant, Arc<Person>)>>,
}

impl Default for People {
    fn default() -> Self {
        People {
            shards: std::array::from_fn(|_| RwLock::default()),
            keeps: AtomicBool::new(false),
            departed: Mutex::default(),
        }
    }
}

impl People {
    fn shard(&self, lower: &str) -> &RwLock<HashSet<Known>> {
        // FNV-1a, which is even enough: the sets have hashes of their own.
        let hash = lower.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Somebody becomes a member of an inbound. With an empty e-mail he is a person of his own.
    /// `number` is the level's.
    pub(crate) fn join(&self, email: &str, number: u32, level: Arc<Level>) -> Arc<Member> {
        self.join_again(email, number, level, None)
    }

    /// The same for somebody who was a member of the inbound that stood here before, and may be still. He is the same member if nothing of
    /// him is another; if something is, what ends the one ends the other.
    pub(crate) fn join_again(
        &self,
        email: &str,
        number: u32,
        level: Arc<Level>,
        before: Option<&Arc<Member>>,
    ) -> Arc<Member> {
        let as_before =
            |before: &&Arc<Member>| before.email() == email && before.level_number == number && before.level == level;
        if let Some(same) = before.filter(as_before) {
            // Who was a member of nothing may have been forgotten.
            let more = |count: u32| (count > 0 || email.is_empty()).then_some(count + 1);
            let memberships = &same.person.memberships;
            if memberships
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
                .is_ok()
            {
                return Arc::clone(same);
            }
        }
        let person = match email {
            "" => Arc::new(Person::new("")),
            email => self.person(email),
        };
        Member::new(person, email, number, level, before)
    }

    /// What everybody uses is kept from now on.
    pub(crate) fn keep(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Sets the limits of the person that a member is, for what is carried already as well.
    pub(crate) fn limit(&self, member: &Member, limits: &Limits) {
        let keeps = !member.person.email.is_empty() && self.keeps.load(Ordering::Relaxed);
        member.person.limit(limits, keeps);
    }

    /// Somebody is a member of an inbound no more. Where he has been counted or has limits, he is kept for [`KEPT`], and until his
    /// counters were read.
    pub(crate) fn leave(&self, member: &Member) {
        let person = &member.person;
        if person.lower().is_empty() || person.memberships.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        departed.push_back((Instant::now(), Arc::clone(person)));
        while departed.len() > MAX_DEPARTED
            && let Some((_, person)) = departed.pop_front()
        {
            self.forget(&person);
        }
        drop(departed);
        self.sweep();
    }

    /// Forgets those who went long enough ago.
    fn sweep(&self) {
        let now = Instant::now();
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        // Those whose counters nobody reads go to the end; each is looked at once.
        for _ in 0..departed.len() {
            match departed.front() {
                Some((since, _)) if now.duration_since(*since) >= KEPT => {}
                Some((_, person)) if person.is_unused() && person.budget().is_none() && person.connections() == 0 => {}
                _ => break,
            }
            let Some((_, person)) = departed.pop_front() else { break };
            if !person.is_member() {
                if person.is_settled() {
                    self.forget(&person);
                } else {
                    departed.push_back((now, person));
                }
            }
        }
    }

    /// Forgets somebody, unless he is a member of something again.
    fn forget(&self, person: &Person) {
        let mut all = self
            .shard(person.lower())
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Another may have come under the same e-mail.
        let is_known = all
            .get(person.lower())
            .is_some_and(|known| std::ptr::eq(&*known.0, person));
        if is_known && !person.is_member() {
            all.remove(person.lower());
        }
    }

    fn person(&self, email: &str) -> Arc<Person> {
        let fresh = Person::new(email);
        let shard = self.shard(fresh.lower());
        let mut all = shard.write().unwrap_or_else(PoisonError::into_inner);
        let person = match all.get(fresh.lower()) {
            Some(known) => Arc::clone(&known.0),
            None => {
                let person = Arc::new(fresh);
                all.insert(Known(Arc::clone(&person)));
                person
            }
        };
        person.memberships.fetch_add(1, Ordering::Relaxed);
        person
    }

    /// The person with this e-mail, in any case.
    pub(crate) fn find(&self, email: &str) -> Option<Arc<Person>> {
        let lower = email.to_lowercase();
        let all = self.shard(&lower).read().unwrap_or_else(PoisonError::into_inner);
        all.get(lower.as_str()).map(|known| Arc::clone(&known.0))
    }

    /// Shows everybody, in no order. Meanwhile nobody of the same part, a 64th, comes or goes: `show` may not wait, or ask for people.
    pub(crate) fn each(&self, mut show: impl FnMut(&Arc<Person>)) {
        self.sweep();
        for shard in &self.shards {
            let all = shard.read().unwrap_or_else(PoisonError::into_inner);
            let mut all = all.iter().map(|known| &known.0);
            let mut some = [None; AHEAD];
            loop {
                let count = some
                    .iter_mut()
                    .zip(&mut all)
                    .map(|(place, person)| *place = Some(person))
                    .count();
                // People and their names lie anywhere. Asked for together they come together; one by one, each would be waited for.
                let seen = some[..count].iter().flatten().map(|person| person.glance());
                black_box(seen.fold(0, u64::wrapping_add));
                some[..count].iter().flatten().for_each(|person| show(person));
                if count < AHEAD {
                    break;
                }
            }
        }
    }
}
