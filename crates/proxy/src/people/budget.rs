//! What one person may take of the server, over all his connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sealway_net::sock::network;
use tokio::time::Instant;

use super::Refused;
use crate::bucket::Bucket;
use crate::settings::Limits;
use crate::tally::Tally;

/// How long an address is somebody's after his last connection from it.
const STAYS: Duration = Duration::from_secs(60);

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// From the user.
    Up,
    /// To the user.
    Down,
}

/// The networks that somebody is connected from.
#[derive(Debug, Default)]
struct Places(HashMap<IpAddr, (u32, Instant)>);

impl Places {
    /// A connection comes from a network. False: there are as many as may be.
    fn enter(&mut self, from: IpAddr, most: usize, now: Instant) -> bool {
        self.0
            .retain(|_, (count, left)| *count > 0 || now.saturating_duration_since(*left) < STAYS);
        if self.0.len() >= most && !self.0.contains_key(&from) {
            return false;
        }
        self.0.entry(from).or_insert((0, now)).0 += 1;
        true
    }

    fn leave(&mut self, from: IpAddr, now: Instant) {
        if let Some((count, left)) = self.0.get_mut(&from) {
            *count = count.saturating_sub(1);
            *left = now;
        }
    }
}

/// Limits of a person and what he has taken. He who never had a limit, on a server that keeps nothing, has none.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Most connections and addresses. 0: any number.
    connections: AtomicU32,
    addresses: AtomicU32,
    up: Bucket,
    down: Bucket,
    /// Bytes a month. 0: any number.
    quota: AtomicU64,
    reset_day: AtomicU8,
    /// Bytes of this process.
    counted: [Tally; 2],
    /// Those of them that the store was given, and the period that what comes is for. 0: none yet.
    handed: [AtomicU64; 2],
    since: AtomicI64,
    /// What is to be added to them for the sum of the period over all nodes, as far as that is known.
    besides: AtomicI64,
    known: AtomicBool,
    places: Mutex<Places>,
    refusals: [AtomicU32; 3],
}

impl Budget {
    pub(super) fn new(now: Instant) -> Budget {
        Budget {
            connections: AtomicU32::new(0),
            addresses: AtomicU32::new(0),
            up: Bucket::new(now),
            down: Bucket::new(now),
            quota: AtomicU64::new(0),
            reset_day: AtomicU8::new(1),
            counted: Default::default(),
            handed: Default::default(),
            since: AtomicI64::new(0),
            besides: AtomicI64::new(0),
            known: AtomicBool::new(false),
            places: Mutex::default(),
            refusals: Default::default(),
        }
    }

    /// Sets the limits, for connections that are carried as well.
    pub(super) fn set(&self, limits: &Limits, now: Instant) {
        self.connections
            .store(limits.connections.unwrap_or(0), Ordering::Relaxed);
        self.addresses.store(limits.addresses.unwrap_or(0), Ordering::Relaxed);
        let burst = limits.burst.unwrap_or(0);
        self.up.set(limits.uplink.unwrap_or(0), burst, now);
        self.down.set(limits.downlink.unwrap_or(0), burst, now);
        let quota = limits.quota.unwrap_or(0);
        if self.quota.swap(quota, Ordering::Relaxed) == 0 && quota > 0 {
            // What was counted before belongs to any month: the store knows to which.
            self.set_sum(0, self.counted());
            self.known.store(false, Ordering::Relaxed);
        }
        self.reset_day.store(limits.reset_day.unwrap_or(1), Ordering::Relaxed);
    }

    /// A connection begins, with so many that are there already. The network that it is counted under, if it is.
    pub(super) fn enter(&self, others: u32, from: Option<IpAddr>, now: Instant) -> Result<Option<IpAddr>, Refused> {
        let most = self.connections.load(Ordering::Relaxed);
        if self.is_used_up() {
            return Err(self.refuse(Refused::Quota));
        }
        if most > 0 && others >= most {
            return Err(self.refuse(Refused::Connections));
        }
        let most = self.addresses.load(Ordering::Relaxed);
        let Some(from) = from.map(network).filter(|_| most > 0) else {
            return Ok(None);
        };
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        match places.enter(from, most as usize, now) {
            true => Ok(Some(from)),
            false => Err(self.refuse(Refused::Addresses)),
        }
    }

    pub(super) fn leave(&self, from: IpAddr, now: Instant) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.leave(from, now);
    }

    /// Counts a refusal.
    fn refuse(&self, why: Refused) -> Refused {
        let at = match why {
            Refused::Connections => 0,
            Refused::Addresses => 1,
            _ => 2,
        };
        self.refusals[at].fetch_add(1, Ordering::Relaxed);
        why
    }

    /// Connections that were refused for there being too many, for their address, and for the quota.
    pub(crate) fn refusals(&self) -> [u32; 3] {
        [0, 1, 2].map(|at| self.refusals[at].load(Ordering::Relaxed))
    }

    pub(super) fn bucket(&self, way: Way) -> &Bucket {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// Accounts for payload.
    #[inline]
    pub(crate) fn count(&self, way: Way, bytes: usize) {
        self.counted[way as usize].add(bytes);
    }

    /// Bytes of this process so far, up and down.
    pub(crate) fn counted(&self) -> [u64; 2] {
        [self.counted[0].get(), self.counted[1].get()]
    }

    /// Gives what came since the last time, up and down, to `add`, with the beginning of the period that it belongs to: what comes
    /// before the end of a period is that one's. If `add` fails, it comes again. `since` is the beginning of the period now; true
    /// says that it is another than before.
    ///
    /// One at a time may ask.
    pub(crate) fn hand_over<E>(&self, since: i64, add: impl FnOnce(i64, [u64; 2]) -> Result<(), E>) -> Result<bool, E> {
        let last = match self.since.load(Ordering::Relaxed) {
            0 => since,
            last => last,
        };
        let counted = self.counted();
        let fresh = [0, 1].map(|way| counted[way].saturating_sub(self.handed[way].load(Ordering::Relaxed)));
        if fresh != [0; 2] {
            add(last, fresh)?;
        }
        for (handed, counted) in self.handed.iter().zip(counted) {
            handed.store(counted, Ordering::Relaxed);
        }
        self.since.store(since, Ordering::Relaxed);
        Ok(last != since)
    }

    /// Bytes that the store was given, up and down.
    pub(crate) fn handed(&self) -> [u64; 2] {
        [0, 1].map(|way| self.handed[way].load(Ordering::Relaxed))
    }

    /// The sum of a period over all nodes, when this process had counted so much.
    pub(crate) fn set_sum(&self, sum: u64, counted: [u64; 2]) {
        let besides = i128::from(sum) - i128::from(counted[0]) - i128::from(counted[1]);
        let besides = i64::try_from(besides).unwrap_or(i64::MAX);
        self.besides.store(besides, Ordering::Relaxed);
        self.known.store(true, Ordering::Relaxed);
    }

    /// Whether [`Budget::set_sum`] has told of what was used before.
    pub(crate) fn is_known(&self) -> bool {
        self.known.load(Ordering::Relaxed)
    }

    /// Whether there is a quota.
    pub(crate) fn has_quota(&self) -> bool {
        self.quota.load(Ordering::Relaxed) > 0
    }

    /// The day of the month on which the quota begins anew.
    pub(crate) fn reset_day(&self) -> u8 {
        self.reset_day.load(Ordering::Relaxed)
    }

    /// What is left of the quota, by what is known. None: there is no quota.
    pub(crate) fn left(&self) -> Option<u64> {
        let quota = self.quota.load(Ordering::Relaxed);
        if quota == 0 {
            return None;
        }
        let [up, down] = self.counted();
        let used = i128::from(up) + i128::from(down) + i128::from(self.besides.load(Ordering::Relaxed));
        Some((i128::from(quota) - used).clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// Whether there is a quota and nothing is left of it, by what is known.
    pub(crate) fn is_used_up(&self) -> bool {
        self.left() == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limits: Limits) -> Budget {
        let budget = Budget::new(Instant::now());
        budget.set(&limits, Instant::now());
        budget
    }

    #[test]
    fn addresses_stay_a_minute_and_an_ipv6_network_is_one() {
        let budget = budget(Limits {
            addresses: Some(2),
            ..Limits::default()
        });
        let now = Instant::now();
        let enter = |text: &str, now| budget.enter(0, Some(text.parse().unwrap()), now);
        let first = enter("2001:db8::1", now).unwrap().unwrap();
        assert_eq!(enter("2001:db8::ffff:1", now), Ok(Some(first)));
        enter("192.0.2.1", now).unwrap();
        assert_eq!(enter("192.0.2.2", now), Err(Refused::Addresses));
        assert_eq!(enter("2001:db8:0:1::1", now), Err(Refused::Addresses));
        assert!(enter("::ffff:192.0.2.1", now).is_ok(), "it is that of before");
        // From nowhere: a unix socket.
        assert_eq!(budget.enter(0, None, now), Ok(None));
        budget.leave(first, now);
        let later = now + STAYS * 2;
        assert_eq!(
            enter("192.0.2.2", later),
            Err(Refused::Addresses),
            "one connection is left"
        );
        budget.leave(first, later);
        let just_before = later + STAYS - Duration::from_millis(1);
        assert_eq!(enter("192.0.2.2", just_before), Err(Refused::Addresses));
        assert!(enter("192.0.2.2", later + STAYS).is_ok());
        assert_eq!(budget.refusals(), [0, 4, 0]);
    }

    #[test]
    fn loopback_counts_as_any_address() {
        let budget = budget(Limits {
            addresses: Some(1),
            ..Limits::default()
        });
        let enter = |text: &str| budget.enter(0, Some(text.parse().unwrap()), Instant::now());
        assert!(enter("127.0.0.1").is_ok());
        assert_eq!(enter("127.0.0.2"), Err(Refused::Addresses));
    }

    #[test]
    fn a_quota_is_the_sum_of_all_nodes_and_of_what_was_counted_since() {
        let budget = budget(Limits {
            quota: Some(1000),
            ..Limits::default()
        });
        budget.count(Way::Up, 300);
        budget.count(Way::Down, 300);
        assert!(!budget.is_used_up() && !budget.is_known());
        // Others have used 200, and of ours 500 were written.
        budget.set_sum(700, [300, 200]);
        assert!(budget.is_known() && !budget.is_used_up());
        budget.count(Way::Down, 199);
        assert!(!budget.is_used_up());
        budget.count(Way::Up, 1);
        assert!(budget.is_used_up());
        assert_eq!(budget.enter(0, None, Instant::now()), Err(Refused::Quota));
        // A month begins.
        budget.set_sum(0, budget.counted());
        assert!(budget.enter(0, None, Instant::now()).is_ok());
        budget.count(Way::Up, 1000);
        assert!(budget.is_used_up());
        // It is raised.
        let more = Limits {
            quota: Some(1001),
            ..Limits::default()
        };
        budget.set(&more, Instant::now());
        assert!(!budget.is_used_up());
        budget.set(&Limits::default(), Instant::now());
        budget.count(Way::Up, 1 << 40);
        assert!(!budget.is_used_up());
        // A quota that is new is not used up by what was counted without it, which may be of another month.
        budget.set(&more, Instant::now());
        assert!(!budget.is_used_up() && !budget.is_known());
        budget.count(Way::Up, 1001);
        assert!(budget.is_used_up());
    }
}
