//! The first words of both ends.

use std::sync::Mutex;
use std::sync::mpsc::Receiver as Heard;

use sealway_drop::ending::next;
use sealway_drop::link::Writer;
use sealway_drop::wire::control::{self, Body, Hello, Offer, Role};
use sealway_drop::wire::talk::{greeting, say};
use sealway_drop::{Error, lock};

/// What the other end offers, and its greeting. `direct`: this end looks for direct paths.
pub(super) fn meet(control: &Mutex<Writer>, heard: &Heard<Body>, direct: bool) -> Result<(Offer, Hello), Error> {
    let ours = Hello {
        version: control::VERSION,
        role: Role::Receiver as i32,
        direct,
        ..Hello::default()
    };
    say(&mut lock(control), Body::Hello(ours))?;
    let theirs = greeting(next(heard)?)?;
    if theirs.role != Role::Sender as i32 {
        return Err(Error::Usage(
            "the other end does not send: one end sends, the other receives".into(),
        ));
    }
    match next(heard)? {
        Body::Offer(offer) => Ok((offer, theirs)),
        _ => Err(Error::Protocol("no offer")),
    }
}
