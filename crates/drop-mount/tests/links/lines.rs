//! Connections, paths, calls and waiting of the tests beside.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Connection, Place, connect};
use sealway_drop::testing::{listen, setup};
use sealway_drop_mount::tree::{Call, TreePath};

/// One end's connections of a session, by their numbers.
pub(crate) type Lines = BTreeMap<u32, Connection>;

/// Both ends of connections of one session.
pub(crate) fn lines(numbers: &[u32]) -> (Lines, Lines) {
    let (listener, address) = listen();
    lines_by(numbers, listener, address)
}

/// The same by way of an address that leads to the listener.
pub(crate) fn lines_by(numbers: &[u32], listener: TcpListener, address: SocketAddr) -> (Lines, Lines) {
    let open = |place, own, numbers: &[u32]| {
        let cancel = Cancel::new();
        let Connected { peered, data } = connect(place, &setup(own), 1, &cancel).unwrap();
        let connections = data.open_only(numbers, &cancel);
        let next = || connections.next().unwrap().unwrap();
        let lines: Lines = numbers.iter().map(|_| next()).map(|line| (line.index, line)).collect();
        drop(peered);
        lines
    };
    let of = numbers.to_vec();
    let there = std::thread::spawn(move || open(Place::Listen(listener), 1, &of));
    let here = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(10),
    };
    (open(here, 2, numbers), there.join().unwrap())
}

/// Both ends of the connection of that number.
pub(crate) fn pair(number: u32) -> (Connection, Connection) {
    let (mut here, mut there) = lines(&[number]);
    (here.remove(&number).unwrap(), there.remove(&number).unwrap())
}

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).unwrap()
}

pub(crate) fn call() -> Call {
    Call::within(Duration::from_secs(60))
}

/// Waits for something that happens in another thread.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
