//! An outbound that rules name and that is not there.

use sealway_v2ray::Destination;

use super::{Caller, Far, Protocol};
use crate::error::{Error, Pending};
use crate::udp::PacketEnd;

/// Nothing goes out: what was meant for one outbound is not for another.
pub(super) struct Missing;

const GONE: Error = Error::Unsupported("the outbound that this is for is not there");

impl Protocol for Missing {
    fn connect<'a>(&'a self, _: &'a Destination, _: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Err(GONE) })
    }

    fn associate<'a>(&'a self, _: &'a Destination, _: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async { Err(GONE) })
    }
}
