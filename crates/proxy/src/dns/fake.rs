//! Addresses that stand for names.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use super::message::Family;
use crate::settings::FakePool;

/// What an address is to the fake answers of this server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fake {
    /// It lies in none of the pools: a real address.
    No,
    /// It stands for this name.
    Name(Arc<str>),
    /// It lies in a pool, and stands for no name that is remembered.
    Unknown,
}

#[derive(Default)]
pub(crate) struct FakePools {
    pools: Vec<(FakePool, Mutex<Pool>)>,
}

impl FakePools {
    pub(crate) fn new(pools: &[FakePool]) -> FakePools {
        let usual = FakePool::usual();
        let pools = if pools.is_empty() { &usual } else { pools };
        FakePools {
            pools: pools.iter().map(|pool| (*pool, Mutex::default())).collect(),
        }
    }

    /// The address that stands for a name, if there is a pool for the family. `millis`: the time of day.
    pub(crate) fn address(&self, name: &str, family: Family, millis: u64) -> Option<IpAddr> {
        let (settings, pool) = self
            .pools
            .iter()
            .find(|(pool, _)| Family::of(pool.net.addr()) == family)?;
        let bits = u32::from(settings.net.max_prefix_len() - settings.net.prefix_len());
        let room = 1u128.checked_shl(bits).unwrap_or(u128::MAX);
        let size = usize::try_from(settings.size).unwrap_or(usize::MAX);
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = pool.offset(name, millis, size, room);
        Some(add(settings.net.network(), offset))
    }

    /// What an address stands for.
    pub(crate) fn name(&self, ip: IpAddr) -> Fake {
        let ip = ip.to_canonical();
        let Some((settings, pool)) = self.pools.iter().find(|(pool, _)| pool.net.contains(&ip)) else {
            return Fake::No;
        };
        let offset = number(ip).wrapping_sub(number(settings.net.network()));
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        match pool.by_offset.get(&offset).copied() {
            Some(at) => {
                pool.touch(at);
                Fake::Name(Arc::clone(&pool.slots[at].name))
            }
            None => Fake::Unknown,
        }
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

fn add(base: IpAddr, offset: u128) -> IpAddr {
    match base {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip).wrapping_add(offset as u32)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip).wrapping_add(offset)).into(),
    }
}

/// A name and its address, in a ring of all of them by when they were used.
struct Slot {
    name: Arc<str>,
    offset: u128,
    newer: usize,
    older: usize,
}

/// Names and addresses. `slots[newest]` was used last; its `newer` is the one that goes first.
#[derive(Default)]
struct Pool {
    slots: Vec<Slot>,
    newest: usize,
    by_name: HashMap<Arc<str>, usize>,
    by_offset: HashMap<u128, usize>,
    /// The first address that was given.
    begin: Option<u128>,
    /// Addresses that were given for the first time, one after another.
    given: u128,
    /// Addresses whose names have made room, as many as there are names at most. Given again, the first of them goes first: a client
    /// may still know it by the old name.
    freed: VecDeque<u128>,
}

impl Pool {
    fn offset(&mut self, name: &str, millis: u64, size: usize, room: u128) -> u128 {
        if let Some(at) = self.by_name.get(name).copied() {
            self.touch(at);
            return self.slots[at].offset;
        }
        let name: Arc<str> = name.into();
        let at = if self.slots.len() < size {
            self.push()
        } else {
            // The oldest one makes room: it becomes the newest where it stands in the ring.
            let oldest = self.slots[self.newest].newer;
            let gone = &self.slots[oldest];
            self.by_name.remove(&gone.name);
            self.by_offset.remove(&gone.offset);
            self.freed.push_back(gone.offset);
            if self.freed.len() > size {
                self.freed.pop_front();
            }
            self.newest = oldest;
            oldest
        };
        let begin = *self.begin.get_or_insert(u128::from(millis) % (size as u128));
        // There are more addresses than names: once all have been given, a name has just made room.
        let offset = match self.given < room {
            true => (begin + self.given) % room,
            false => self.freed.pop_front().unwrap_or(begin),
        };
        self.given = (self.given + 1).min(room);
        self.slots[at].name = Arc::clone(&name);
        self.slots[at].offset = offset;
        self.by_name.insert(name, at);
        self.by_offset.insert(offset, at);
        offset
    }

    /// A new slot, as the newest.
    fn push(&mut self) -> usize {
        let at = self.slots.len();
        let (newer, older) = match self.slots.get(self.newest) {
            Some(newest) => (newest.newer, self.newest),
            None => (at, at),
        };
        self.slots.push(Slot {
            name: Arc::from(""),
            offset: 0,
            newer,
            older,
        });
        self.slots[older].newer = at;
        self.slots[newer].older = at;
        self.newest = at;
        at
    }

    /// It is used now.
    fn touch(&mut self, at: usize) {
        if at == self.newest {
            return;
        }
        let (newer, older) = (self.slots[at].newer, self.slots[at].older);
        self.slots[newer].older = older;
        self.slots[older].newer = newer;
        let oldest = self.slots[self.newest].newer;
        self.slots[at].newer = oldest;
        self.slots[at].older = self.newest;
        self.slots[oldest].older = at;
        let newest = self.newest;
        self.slots[newest].newer = at;
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(size: u32) -> FakePools {
        let net = |text: &str| FakePool {
            net: text.parse().unwrap(),
            size,
        };
        FakePools::new(&[net("198.18.0.0/29"), net("fc00::/125")])
    }

    #[test]
    fn a_name_keeps_its_address_and_the_address_its_name() {
        let pools = pools(7);
        let a = pools.address("a", Family::V4, 5).unwrap();
        assert_eq!(a, IpAddr::from([198, 18, 0, 5]));
        assert_eq!(pools.address("a", Family::V4, 99), Some(a));
        assert_eq!(pools.address("b", Family::V4, 5), Some(IpAddr::from([198, 18, 0, 6])));
        let six = pools.address("a", Family::V6, 1).unwrap();
        assert_eq!(six, "fc00::1".parse::<IpAddr>().unwrap());
        assert_eq!(pools.name(a), Fake::Name("a".into()));
        assert_eq!(pools.name("::ffff:198.18.0.6".parse().unwrap()), Fake::Name("b".into()));
        assert_eq!(pools.name(six), Fake::Name("a".into()));
        assert_eq!(pools.name(IpAddr::from([198, 18, 0, 4])), Fake::Unknown);
        assert_eq!(pools.name(IpAddr::from([198, 18, 0, 8])), Fake::No);
        let usual = FakePools::new(&[]);
        assert_eq!(usual.name(IpAddr::from([198, 19, 255, 255])), Fake::Unknown);
    }

    #[test]
    fn an_address_is_given_again_as_late_as_it_can() {
        for (net, size, apart) in [
            ("198.18.0.0/24", 255, 1),
            ("198.18.0.0/24", 200, 56),
            ("198.18.0.0/22", 256, 256),
        ] {
            let pools = FakePools::new(&[FakePool {
                net: net.parse().unwrap(),
                size,
            }]);
            // The name that an address stood for, and how many have lost theirs since.
            let mut last: HashMap<IpAddr, u32> = HashMap::new();
            for n in 0..20 * size {
                // A few names are asked for all the time, and keep their addresses.
                for liked in 0..8 {
                    pools
                        .address(&format!("liked{liked}"), Family::V4, u64::from(n))
                        .unwrap();
                }
                let address = pools.address(&format!("n{n}"), Family::V4, u64::from(n)).unwrap();
                if let Some(before) = last.insert(address, n) {
                    // It stood for its name while all others but those that are liked came and went.
                    assert!(n - before >= size - 8 + apart - 1, "{} in {net} of {size}", n - before);
                }
                assert_eq!(pools.name(address), Fake::Name(format!("n{n}").as_str().into()));
                let pool = pools.pools[0].1.lock().unwrap();
                assert!(pool.freed.len() <= size as usize && pool.by_offset.len() <= size as usize);
            }
        }
    }

    /// Against a list that is searched from end to end.
    #[test]
    fn the_one_that_was_used_longest_ago_goes_first() {
        for size in 1..8usize {
            let pools = pools(size as u32);
            let mut model: Vec<(String, IpAddr)> = Vec::new();
            let mut state = size as u64;
            for _ in 0..2000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let pick = state >> 33;
                let name = format!("n{}", pick % 10);
                if pick & 0x100 == 0 {
                    let address = pools.address(&name, Family::V4, pick >> 9).unwrap();
                    match model.iter().position(|(one, _)| *one == name) {
                        Some(at) => assert_eq!(model.remove(at).1, address),
                        None if model.len() == size => drop(model.remove(0)),
                        None => {}
                    }
                    assert!(model.iter().all(|(_, other)| *other != address), "given twice");
                    model.push((name, address));
                } else if let Some(at) = model.iter().position(|(one, _)| *one == name) {
                    let one = model.remove(at);
                    assert_eq!(pools.name(one.1), Fake::Name(one.0.as_str().into()));
                    model.push(one);
                }
                let known = model.iter().all(|(name, address)| {
                    let pool = pools.pools[0].1.lock().unwrap();
                    pool.by_name
                        .get(name.as_str())
                        .is_some_and(|at| add(IpAddr::from([198, 18, 0, 0]), pool.slots[*at].offset) == *address)
                });
                assert!(known && pools.pools[0].1.lock().unwrap().by_name.len() == model.len());
            }
        }
    }
}
