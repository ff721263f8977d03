//! A mount whose ends met at a relay.

#[path = "../../../drop-mount/tests/mount/ends.rs"]
#[allow(dead_code)]
mod ends;
#[path = "../../../drop-relay/tests/relay/support.rs"]
#[allow(dead_code)]
mod relay;
#[path = "../../../drop-mount/tests/mount/support.rs"]
mod support;

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use ends::{End, Folders, LIMIT, Told, Wire, mounts, shares};
use relay::Relay;
use sealway_drop::link::Place;
use sealway_drop::relay::Meeting;
use sealway_drop::testing::code;
use sealway_drop_relay::Limits;
use support::can_mount;

#[test]
fn ends_that_met_at_a_relay_meet_there_again() {
    if !can_mount() {
        return;
    }
    let folders = Folders::new();
    let relay = Relay::start(Limits::default());
    let (wire, between) = Wire::start(relay.address.parse().unwrap());
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let opening = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Open(Arc::new(move |number| tell.lock().unwrap().send(number).unwrap())),
    };
    let share = End::start(shares(folders.source.path()), opening, code("one-two-three"));
    let claiming = Place::Relay {
        address: between.to_string(),
        meeting: Meeting::Claim(told.recv_timeout(LIMIT).unwrap()),
    };
    let mount = End::start(mounts(folders.at.path()), claiming, code("one-two-three"));
    mount.until(&Told::Ready);
    let mut open = folders.open();
    folders.go_on(&mut open);
    wire.cut();
    folders.go_on(&mut open);
    mount.until(&Told::Again);
    share.until(&Told::Again);
    folders.go_on(&mut open);
}
