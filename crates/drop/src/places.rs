//! How many may be here at once, in all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use sealway_net::sock::network;

use crate::lock;

/// Places, each of which one client has at a time.
#[derive(Clone)]
pub struct Places(Arc<Mutex<Taken>>, Limits);

/// How many places there are.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// In all.
    pub all: usize,
    /// Of one address; of IPv6, one /64.
    pub each: usize,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// A place that is held until this is dropped.
pub struct Place {
    places: Places,
    address: IpAddr,
}

impl Places {
    /// With nobody there.
    pub fn new(limits: Limits) -> Places {
        Places(Arc::default(), limits)
    }

    /// A place for a client, if there is one.
    pub fn take(&self, client: IpAddr) -> Option<Place> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_does_not_take_all_places() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
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
}
