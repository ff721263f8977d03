//! How many may ask at a time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealway_net::sock::network;

/// Who may ask at a time, and how many of one address, so that nobody keeps away who asks whether the server lives.
pub(super) const MAX_ASKING: usize = 64;
const MAX_OF_ONE: usize = 16;

/// Who is asking: an address, or a /64 of IPv6. `None`: whoever has none by which to be counted.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<Vec<Option<IpAddr>>>);

impl Places {
    fn taken(&self) -> MutexGuard<'_, Vec<Option<IpAddr>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>, who: Option<IpAddr>) -> Option<Place> {
        let who = who.map(network);
        let mut taken = self.taken();
        let own = taken.iter().filter(|one| who.is_some() && **one == who).count();
        (taken.len() < MAX_ASKING && own < MAX_OF_ONE).then(|| {
            taken.push(who);
            Place(Arc::clone(self), who)
        })
    }
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>, Option<IpAddr>);

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.0.taken();
        if let Some(at) = taken.iter().position(|one| *one == self.1) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_for_others() {
        let places = Arc::new(Places::default());
        let enter = |who: &str| places.enter(Some(who.parse().unwrap()));
        let mut held: Vec<Place> = (0..20).filter_map(|last| enter(&format!("2001:db8::{last}"))).collect();
        assert_eq!(held.len(), MAX_OF_ONE);
        held.extend(enter("192.0.2.1"));
        held.extend((0..100).map_while(|_| places.enter(None)));
        assert_eq!(held.len(), MAX_ASKING);
        assert!(enter("192.0.2.2").is_none());
        held.clear();
        assert!(places.taken().is_empty());
    }
}
