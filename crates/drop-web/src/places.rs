//! How many may be here at once, in all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use sealway_drop::lock;
use sealway_net::sock::network;

/// Places, each of which one client has at a time.
#[derive(Clone)]
pub(crate) struct Places(Arc<Mutex<Taken>>, Limits);

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) all: usize,
    /// Of one address; of IPv6, one /64.
    pub(crate) each: usize,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// A place that is held until this is dropped.
pub(crate) struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    pub(crate) fn new(limits: Limits) -> Places {
        Places(Arc::default(), limits)
    }

    /// A place for a client, if there is one.
    pub(crate) fn take(&self, client: IpAddr) -> Option<Place> {
        let address = network(client);
        let mut taken = lock(&self.0);
        let of = taken.of.get(&address).copied().unwrap_or(0);
        if taken.all >= self.1.all || of >= self.1.each {
            return None;
        }
        taken.all += 1;
        taken.of.insert(address, of + 1);
        Some(Place {
            places: self.clone(),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.places.0);
        taken.all -= 1;
        if let Some(of) = taken.of.get_mut(&self.address) {
            *of -= 1;
            if *of == 0 {
                taken.of.remove(&self.address);
            }
        }
    }
}

/// Wrong PINs, counted for each address and in all; never forgotten while the server runs.
#[derive(Default)]
pub(crate) struct Guesses(Mutex<Taken>);

/// What a wrong PIN leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Guess {
    /// Another try.
    Again,
    /// None of this address.
    Enough,
    /// None of anybody; said once.
    Locked,
}

impl Guesses {
    /// Wrong PINs of one address, and of all: of a million PINs, one in ten thousand is found.
    const LIMITS: Limits = Limits { all: 100, each: 10 };

    /// Whether an address may try.
    pub(crate) fn may(&self, client: IpAddr) -> bool {
        let taken = lock(&self.0);
        let of = taken.of.get(&network(client)).copied().unwrap_or(0);
        taken.all < Self::LIMITS.all && of < Self::LIMITS.each
    }

    /// Counts a wrong one.
    pub(crate) fn wrong(&self, client: IpAddr) -> Guess {
        let mut taken = lock(&self.0);
        taken.all += 1;
        let all = taken.all;
        // Bounded: no more addresses than guesses.
        let of = taken.of.entry(network(client)).or_default();
        *of += 1;
        match (all == Self::LIMITS.all, *of >= Self::LIMITS.each) {
            (true, _) => Guess::Locked,
            (false, true) => Guess::Enough,
            (false, false) => Guess::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_network_does_not_take_all_places() {
        let places = Places::new(Limits { all: 3, each: 2 });
        let held: Vec<_> = ["2001:db8::1", "2001:db8::2"]
            .map(|text| places.take(address(text)))
            .into();
        assert!(held.iter().all(Option::is_some));
        assert!(places.take(address("2001:db8::3:0:0:0")).is_none());
        let other = places.take(address("::ffff:192.0.2.1"));
        assert!(
            other.is_some() && places.take(address("192.0.2.2")).is_none(),
            "all are taken"
        );
        drop(held);
        assert!(places.take(address("2001:db8::1")).is_some());
    }

    #[test]
    fn guesses_end_for_an_address_and_then_for_all() {
        let guesses = Guesses::default();
        let one = address("192.0.2.1");
        for _ in 1..10 {
            assert_eq!(guesses.wrong(one), Guess::Again);
        }
        assert!(guesses.may(one));
        assert_eq!(guesses.wrong(one), Guess::Enough);
        assert!(!guesses.may(one) && guesses.may(address("192.0.2.2")));
        for at in 11..100 {
            guesses.wrong(address(&format!("10.0.{at}.1")));
        }
        assert_eq!(guesses.wrong(address("10.1.0.1")), Guess::Locked);
        assert!(!guesses.may(address("192.0.2.2")));
    }
}
