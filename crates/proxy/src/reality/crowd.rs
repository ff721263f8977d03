//! How many connections there are of people who have not shown the key.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sealway_net::sock::network;
use tokio::time::Instant;

/// Connections of which it is not known yet who speaks: each is one to the target.
pub(super) static ARRIVING: Crowd = Crowd::new(MAX_ARRIVING, MAX_ARRIVING_OF_ONE).at([RATE, RATE_OF_ONE]);
/// Those that wait for a place among them.
pub(super) static WAITING: Crowd = Crowd::new(MAX_WAITING, MAX_WAITING_OF_ONE);
/// Clients that have shown the key, and not come to the end of their handshakes. Each is one to the target as well, for as long as that
/// waits.
pub(super) static FINISHING: Crowd = Crowd::new(MAX_FINISHING, MAX_FINISHING_OF_ONE);
/// Strangers at their targets.
pub(super) static STRANGERS: Crowd = Crowd::new(MAX_STRANGERS, MAX_STRANGERS_OF_ONE);

/// Connections to targets that are made a second for people who turn out to have no key, and those for one address, when it goes on
/// for longer than [`AHEAD`].
const RATE: u32 = 1000;
const RATE_OF_ONE: u32 = 100;
/// For how many seconds at that rate may be taken at once.
const AHEAD: u32 = 10;
/// Connections of the process that wait, and those of one address.
const MAX_WAITING: usize = 4096;
const MAX_WAITING_OF_ONE: usize = 512;
/// Addresses that are known only by how fast they came, before those are forgotten that may come again.
const MAX_KNOWN: usize = 16 << 10;

/// Connections of the process of which it is not known yet who speaks, and those of one address.
const MAX_ARRIVING: usize = 8192;
const MAX_ARRIVING_OF_ONE: usize = 1024;
/// Handshakes of the process that are to come to their end, and those of one address.
const MAX_FINISHING: usize = 8192;
const MAX_FINISHING_OF_ONE: usize = 1024;
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
    /// How many may enter a second, of all and of one.
    rates: Option<[u32; 2]>,
    taken: Mutex<Option<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: Count,
    by: HashMap<Who, Count>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    places: usize,
    /// When who has entered would have entered at the rate that is allowed.
    paid: Option<Instant>,
}

impl Count {
    /// Until when it is paid for behind one more, if that may enter now. Who may not enter pays nothing and does not wait; from a
    /// `Bucket` he would take, and wait.
    fn pay(&self, rate: u32, now: Instant) -> Option<Instant> {
        let paid = self.paid.map_or(now, |paid| paid.max(now)) + Duration::from_secs(1) / rate;
        (paid <= now + Duration::from_secs(AHEAD.into())).then_some(paid)
    }

    fn give_back(&mut self, rate: u32) {
        self.paid = self
            .paid
            .and_then(|paid| paid.checked_sub(Duration::from_secs(1) / rate));
    }

    fn is_forgotten(&self, now: Instant) -> bool {
        self.places == 0 && self.paid.is_none_or(|paid| paid <= now)
    }
}

impl Crowd {
    pub(super) const fn new(most: usize, most_of_one: usize) -> Self {
        Crowd {
            most,
            most_of_one,
            rates: None,
            taken: Mutex::new(None),
        }
    }

    const fn at(mut self, rates: [u32; 2]) -> Self {
        self.rates = Some(rates);
        self
    }

    pub(super) fn enter(&'static self, address: Option<IpAddr>) -> Option<Place> {
        let who = address.map(network);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.get_or_insert_default();
        let mut own = taken.by.get(&who).copied().unwrap_or_default();
        if taken.all.places >= self.most || own.places >= self.most_of_one {
            return None;
        }
        if let Some([of_all, of_one]) = self.rates {
            let now = Instant::now();
            let (all, one) = (taken.all.pay(of_all, now)?, own.pay(of_one, now)?);
            (taken.all.paid, own.paid) = (Some(all), Some(one));
            if taken.by.len() >= MAX_KNOWN + self.most {
                taken.by.retain(|_, count| !count.is_forgotten(now));
            }
        }
        taken.all.places += 1;
        own.places += 1;
        taken.by.insert(who, own);
        Some(Place { crowd: self, who })
    }

    fn leave(&self, who: Who) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(taken) = taken.as_mut() else { return };
        taken.all.places = taken.all.places.saturating_sub(1);
        if let Entry::Occupied(mut own) = taken.by.entry(who) {
            own.get_mut().places -= 1;
            if own.get().is_forgotten(Instant::now()) {
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

impl Place {
    /// Who entered has the key: that was no stranger's connection.
    pub(super) fn give_back(&self) {
        let Some([of_all, of_one]) = self.crowd.rates else {
            return;
        };
        let mut taken = self.crowd.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(taken) = taken.as_mut() else { return };
        taken.all.give_back(of_all);
        if let Some(own) = taken.by.get_mut(&self.who) {
            own.give_back(of_one);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.leave(self.who);
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
        assert!(taken.all.places == 0 && taken.by.is_empty(), "{taken:?}");
    }

    /// How many enter at once who do not stay, and how many of them are given back.
    fn rush(crowd: &'static Crowd, who: Option<IpAddr>, have_the_key: bool) -> usize {
        let enter = |_: &i32| {
            let place = crowd.enter(who);
            place.is_some_and(|place| {
                if have_the_key {
                    place.give_back();
                }
                true
            })
        };
        (0..500).filter(enter).count()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_enter_a_second_and_who_has_the_key_is_not_counted() {
        static CROWD: Crowd = Crowd::new(5, 2).at([20, 10]);
        let [one, two, three] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(address);
        assert_eq!(rush(&CROWD, one, true), 500);
        assert_eq!(rush(&CROWD, one, false), 100, "ten seconds at ten a second");
        assert_eq!(rush(&CROWD, two, false), 100, "all of them came twice as fast");
        assert_eq!(rush(&CROWD, three, false), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(rush(&CROWD, one, false), 10);
        assert_eq!(rush(&CROWD, three, false), 10);
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(rush(&CROWD, three, true), 500);
        let taken = CROWD.taken.lock().unwrap();
        assert_eq!(taken.as_ref().unwrap().all.places, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_may_come_again_are_forgotten() {
        static CROWD: Crowd = Crowd::new(8, 2).at([1_000_000, 1000]);
        for number in 0..4 * MAX_KNOWN as u32 {
            let place = CROWD.enter(Some(IpAddr::from(number.to_be_bytes())));
            drop(place.unwrap());
            if number % 64 == 0 {
                tokio::time::advance(Duration::from_millis(1)).await;
            }
        }
        let known = CROWD.taken.lock().unwrap().as_ref().unwrap().by.len();
        assert!(known <= MAX_KNOWN + 8, "{known}");
    }
}
