//! Nowhere, with or without an answer.

use sealway_v2ray::Destination;

use super::{Caller, Far, Protocol};
use crate::error::{Error, Pending};
use crate::udp::PacketEnd;

/// Answer of a black hole that speaks HTTP.
const FORBIDDEN: &[u8] =
    b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nCache-Control: max-age=3600, public\r\nContent-Length: 0\r\n\r\n";

/// Leads nowhere.
pub(super) struct Blackhole {
    /// Says so in HTTP.
    pub(super) http: bool,
}

impl Protocol for Blackhole {
    fn connect<'a>(&'a self, _: &'a Destination, _: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Nowhere(self.http.then_some(FORBIDDEN))) })
    }

    fn associate<'a>(&'a self, to: &'a Destination, _: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move { Err(Error::forbidden(to, "a blackhole outbound")) })
    }
}
