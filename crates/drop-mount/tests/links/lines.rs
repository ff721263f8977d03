//! Connections, paths and calls of the tests beside.

use std::time::Duration;

use sealway_drop::link::{Connection, Place, connect};
use sealway_drop::testing::{listen, setup};
use sealway_drop_mount::tree::{Call, TreePath};

/// Both ends of the data connection of that number.
pub(crate) fn pair(number: u32) -> (Connection, Connection) {
    let (listener, address) = listen();
    let open = move |place, own| {
        let cancel = sealway_drop::cancel::Cancel::new();
        let connected = connect(place, &setup(own), 1, &cancel).unwrap();
        connected.data.open_only(&[number], &cancel).next().unwrap().unwrap()
    };
    let there = std::thread::spawn(move || open(Place::Listen(listener), 1));
    let here = open(
        Place::Dial {
            addresses: vec![address],
            patience: Duration::from_secs(10),
        },
        2,
    );
    (here, there.join().unwrap())
}

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).unwrap()
}

pub(crate) fn call() -> Call {
    Call::within(Duration::from_secs(60))
}
