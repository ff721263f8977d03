//! Who is let in while this end waits: so many at a time, and so many of one address.
//!
//! Where there is no room, the one that has been silent for longest makes some: the other end speaks as soon as it is there.

use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use crate::lock;

/// Connections at a time.
pub(super) const ALL: usize = 64;

/// Those of one address, more than a session has connections; of IPv6, of one network of 64 bits, which is what one machine may have.
const OF_ONE: usize = 24;

/// Those that are here, in the order in which they came.
#[derive(Default)]
pub(super) struct Guests {
    here: Mutex<Here>,
}

#[derive(Default)]
struct Here {
    next: u64,
    guests: Vec<Entry>,
    /// The waiting is over.
    over: bool,
}

struct Entry {
    number: u64,
    from: Option<IpAddr>,
    stream: TcpStream,
    stage: Stage,
}

/// How far one has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// It has said nothing.
    Silent,
    /// It has said that it begins a session, and not all of what an end says first.
    Begins,
    /// It has said all of that.
    Asks,
    /// It stays when the waiting is over.
    Stays,
}

/// One of them, until it is dropped.
pub(super) struct Guest {
    guests: Arc<Guests>,
    number: u64,
}

impl Guests {
    /// Lets one in; `None` if there is no room, and none that somebody could make.
    pub(super) fn admit(self: &Arc<Self>, stream: &TcpStream) -> Option<Guest> {
        let from = stream.peer_addr().ok().map(|address| network(address.ip()));
        let stream = stream.try_clone().ok()?;
        let mut here = lock(&self.here);
        let same = |entry: &Entry| entry.from == from;
        if here.guests.iter().filter(|entry| same(entry)).count() >= OF_ONE {
            here.make_room(same)?;
        } else if here.guests.len() >= ALL {
            here.make_room(|_| true)?;
        }
        let number = here.next;
        here.next += 1;
        here.guests.push(Entry {
            number,
            from,
            stream,
            stage: Stage::Silent,
        });
        drop(here);
        let guests = self.clone();
        Some(Guest { guests, number })
    }

    /// The waiting is over: sends away who has begun and does not stay. Who has said nothing may be of the session that stands.
    pub(super) fn send_home(&self) {
        let mut here = lock(&self.here);
        here.over = true;
        for entry in &here.guests {
            if matches!(entry.stage, Stage::Begins | Stage::Asks) {
                let _ = entry.stream.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Here {
    /// Sends away the one of these that has been silent for longest.
    fn make_room(&mut self, of: impl Fn(&Entry) -> bool) -> Option<()> {
        let waits = |entry: &Entry| matches!(entry.stage, Stage::Silent | Stage::Begins);
        let oldest = self.guests.iter().position(|entry| waits(entry) && of(entry))?;
        // Its thread wakes, and ends.
        let _ = self.guests.remove(oldest).stream.shutdown(Shutdown::Both);
        Some(())
    }
}

impl Guest {
    /// It has come so far; false if the waiting is over.
    pub(super) fn is_at(&self, stage: Stage) -> bool {
        let mut here = lock(&self.guests.here);
        if let Some(entry) = here.guests.iter_mut().find(|entry| entry.number == self.number) {
            entry.stage = stage;
        }
        !here.over
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        lock(&self.guests.here)
            .guests
            .retain(|entry| entry.number != self.number);
    }
}

/// What counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener.accept().unwrap().0, there)
    }

    #[test]
    fn the_oldest_that_is_silent_makes_room() {
        let guests: Arc<Guests> = Arc::default();
        let mut here: Vec<_> = (0..OF_ONE).map(|_| pair()).collect();
        let mut admitted: Vec<_> = here.iter().map(|(here, _)| guests.admit(here).unwrap()).collect();
        assert!(admitted[0].is_at(Stage::Asks));
        let more = pair();
        admitted.push(guests.admit(&more.0).unwrap());
        assert_eq!(here[1].1.read(&mut [0]).unwrap(), 0, "sent away");
        for at in [0, 2] {
            here[at].1.set_nonblocking(true).unwrap();
            assert!(here[at].1.read(&mut [0]).is_err(), "{at} is still here");
        }
        // Where all speak, there is no room.
        assert!(admitted.iter().all(|guest| guest.is_at(Stage::Asks)));
        assert!(guests.admit(&more.0).is_none());
        admitted.clear();
        assert!(guests.admit(&more.0).is_some());
        assert!(lock(&guests.here).guests.is_empty());
    }

    #[test]
    fn who_has_begun_goes_when_the_waiting_is_over() {
        let guests: Arc<Guests> = Arc::default();
        let stages = [Stage::Silent, Stage::Begins, Stage::Asks, Stage::Stays];
        let mut here: Vec<_> = stages.iter().map(|_| pair()).collect();
        let admitted: Vec<_> = here.iter().map(|(here, _)| guests.admit(here).unwrap()).collect();
        for (guest, stage) in admitted.iter().zip(stages) {
            assert!(guest.is_at(stage));
        }
        guests.send_home();
        assert!(!admitted[0].is_at(Stage::Begins), "too late");
        for ((_, there), stage) in here.iter_mut().zip(stages) {
            there.set_nonblocking(true).unwrap();
            let gone = there.read(&mut [0]).is_ok();
            assert_eq!(gone, matches!(stage, Stage::Begins | Stage::Asks), "{stage:?}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
