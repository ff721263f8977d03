//! Ends of a session that meet at a relay, and a stranger who comes first.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod support;

use std::io::Write;
use std::time::Duration;

use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, connect};
use sealway_drop::relay::Meeting;
use sealway_drop::testing::code;
use sealway_drop_relay::Limits;
use support::{Relay, opening};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_stranger_at_a_relay_leads_to_another_number() {
    let relay = Relay::start(Limits::default());
    let (meeting, numbers) = opening();
    let (address, cancel) = (relay.address.clone(), Cancel::new());
    let of = cancel.clone();
    let sender = std::thread::spawn(move || {
        let place = Place::Relay { address, meeting };
        connect(place, &code("castle-lemon-opera"), 1, &of)
    });
    let first = numbers.recv_timeout(LIMIT).unwrap();
    let (mut stranger, _) = relay.claim(first).unwrap();
    stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let second = numbers.recv_timeout(LIMIT).unwrap();
    let place = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Claim(second),
    };
    // A number that is nobody's spends nothing. The first may be the second again: the relay draws among few.
    let gone = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Claim(987_654),
    };
    let gone = connect(gone, &code("castle-lemon-opera"), 1, &Cancel::new());
    assert!(matches!(gone, Err(error) if error.is_unknown_number()));
    let receiver = connect(place, &code("castle-lemon-opera"), 1, &Cancel::new());
    assert!(receiver.is_ok(), "{:?}", receiver.err());
    assert!(sender.join().unwrap().is_ok());
}
