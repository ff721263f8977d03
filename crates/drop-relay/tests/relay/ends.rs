//! Ends of a session that meet at a relay, and a stranger who comes first.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, connect};
use sealway_drop::relay::Meeting;
use sealway_drop::testing::code;
use sealway_drop_relay::Limits;
use sealway_session::handshake::Role;

use crate::support::{Relay, opening};

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

/// The relay lets nobody wait for long, and who is known comes again.
#[test]
fn ends_that_know_each_other_meet_however_late_one_is() {
    let relay = Relay::start(Limits {
        // Longer than an end is away between two waits: so one of the two is always there.
        token: Duration::from_secs(3),
        ..Limits::default()
    });
    let come = |role, words: &'static str| {
        let meeting = Meeting::Known {
            token: Arc::new(|| Ok([7; 32])),
            role,
        };
        let (address, cancel) = (relay.address.clone(), Cancel::new());
        let of = cancel.clone();
        let thread = std::thread::spawn(move || connect(Place::Relay { address, meeting }, &code(words), 1, &of));
        (thread, cancel)
    };
    let (first, _) = come(Role::Responder, "castle-lemon-opera");
    relay.until(|stats| stats.expired > 0);
    let (second, _) = come(Role::Initiator, "castle-lemon-opera");
    for end in [first, second] {
        let came = end.join().unwrap();
        assert!(came.is_ok(), "{:?}", came.err());
    }
    // Who waits for nobody can be stopped.
    let (alone, cancel) = come(Role::Responder, "castle-lemon-opera");
    relay.until(|stats| stats.expired > 1);
    cancel.cancel();
    assert!(matches!(alone.join().unwrap(), Err(Error::Cancelled)));
    // Where there is no relay any more, it does not try for long.
    let (address, gone) = (relay.address.clone(), relay.stop());
    assert!(gone.expired > 1);
    let meeting = Meeting::Known {
        token: Arc::new(|| Ok([7; 32])),
        role: Role::Initiator,
    };
    let nobody = connect(
        Place::Relay { address, meeting },
        &code("castle-lemon-opera"),
        1,
        &Cancel::new(),
    );
    assert!(matches!(nobody, Err(Error::Network { .. })));
}
