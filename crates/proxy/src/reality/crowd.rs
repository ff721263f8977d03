//! How many connections there are of people who have not shown the key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

/// Connections of which it is not known yet who speaks.
pub(super) static ARRIVING: Crowd = Crowd::new(MAX_ARRIVING, MAX_ARRIVING_OF_ONE);
/// Strangers at their targets.
pub(super) static STRANGERS: Crowd = Crowd::new(MAX_STRANGERS, MAX_STRANGERS_OF_ONE);

/// Connections of the process of which it is not known yet who speaks, and those of one address.
const MAX_ARRIVING: usize = 8192;
const MAX_ARRIVING_OF_ONE: usize = 1024;
/// Strangers of the process, and those of one address.
const MAX_STRANGERS: usize = 8192;
const MAX_STRANGERS_OF_ONE: usize = 1024;

/// Whom a place is counted for: an address, or a /64 of IPv6. `None`: whoever comes by a unix socket.
type Who = Option<IpAddr>;

/// Places that are taken.
#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Option<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by: HashMap<Who, usize>,
}

impl Crowd {
    pub(super) const fn new(most: usize, most_of_one: usize) -> Self {
        Crowd {
            most,
            most_of_one,
            taken: Mutex::new(None),
        }
    }

    /// A place, if there is one.
    pub(super) fn enter(&'static self, address: Option<IpAddr>) -> Option<Place> {
        let who = address.map(network);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get_or_insert_default();
        let own = taken.by.get(&who).copied().unwrap_or(0);
        if taken.all >= self.most || own >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.by.insert(who, own + 1);
        Some(Place { crowd: self, who })
    }

    fn leave(&self, who: Who) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(taken) = taken.as_mut() else { return };
        taken.all = taken.all.saturating_sub(1);
        if let Entry::Occupied(mut own) = taken.by.entry(who) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
    }
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    crowd: &'static Crowd,
    who: Who,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.leave(self.who);
    }
}

/// The addresses that one host may have as it likes.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn one_address_and_all_of_them_have_so_many_places() {
        static CROWD: Crowd = Crowd::new(5, 2);
        let one = [address("2001:db8::1"), address("2001:db8::ffff:1:2:3")];
        let first = one.map(|one| CROWD.enter(one).unwrap());
        assert!(CROWD.enter(address("2001:db8::7")).is_none(), "a third of one network");
        let other = [address("2001:db8:0:1::1"), address("192.0.2.1"), None].map(|one| CROWD.enter(one).unwrap());
        assert!(CROWD.enter(address("192.0.2.2")).is_none(), "a sixth of all");
        drop(first);
        let again = [address("::ffff:192.0.2.1"), None].map(|one| CROWD.enter(one).unwrap());
        assert!(CROWD.enter(address("192.0.2.1")).is_none(), "the same address, mapped");
        drop((other, again));
        let taken = CROWD.taken.lock().unwrap();
        let taken = taken.as_ref().unwrap();
        assert!(taken.all == 0 && taken.by.is_empty(), "{taken:?}");
    }
}
