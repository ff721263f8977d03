//! The thread's side without its thread.

#![allow(clippy::unwrap_used)]

use std::net::TcpStream;

use super::*;

fn carrier(link: &str) -> Carrier {
    let (door, link) = (Door::open(None).unwrap(), link.parse().unwrap());
    let to = door.address().unwrap();
    Carrier::new(door, to, link, Arc::default())
}

impl Carrier {
    /// Turns the link on or off, as its owner would.
    fn turn(&mut self, engaged: bool) {
        self.shared.engaged.store(engaged, Ordering::Relaxed);
        self.switch().unwrap();
    }

    /// Takes a new connection: what it may send before its first loss, each way.
    fn before_a_loss(&mut self) -> [usize; 2] {
        let _near = TcpStream::connect(self.door.address().unwrap()).unwrap();
        while self.places.iter().all(|(_, pair)| pair.is_none()) {
            self.accept().unwrap();
        }
        let place = self.places.iter().position(|(_, pair)| pair.is_some()).unwrap();
        let pair = self.places[place].1.take().unwrap();
        self.free.push(place as u32);
        [UP, DOWN].map(|direction| pair.flows[direction].room(true))
    }
}

#[test]
fn connections_count_from_the_first_each_time_the_link_is_engaged() {
    let mut carrier = carrier("rtt=2ms,loss=20%");
    carrier.shared.seed.store(3, Ordering::Relaxed);
    // What came before the link was engaged does not count.
    carrier.before_a_loss();
    carrier.turn(true);
    let first: Vec<_> = (0..4).map(|_| carrier.before_a_loss()).collect();
    assert!(
        first.iter().any(|room| *room != first[0]),
        "each has its own: {first:?}"
    );
    carrier.turn(false);
    carrier.turn(true);
    let again: Vec<_> = (0..4).map(|_| carrier.before_a_loss()).collect();
    assert_eq!(first, again);
}

#[test]
fn lateness_counts_from_when_the_link_was_engaged() {
    let relay = Relay::open(SocketAddr::from(([127, 0, 0, 1], 9)), "rtt=2ms".parse().unwrap()).unwrap();
    let of = |deadlines, late| {
        relay.shared.deadlines.store(deadlines, Ordering::Relaxed);
        relay.shared.late.store(late, Ordering::Relaxed);
        relay.is_late()
    };
    assert!(!of(0, 0) && !of(10, 1) && of(10, 2));
    relay.engage(1);
    assert!(!relay.is_late(), "another window was late");
}
