//! A service of this program, in place of a target.

use sealway_net::sock::Sock;
use sealway_v2ray::Destination;
use tokio::net::UnixStream;

use super::{Caller, Far, Protocol};
use crate::error::{Error, Pending};
use crate::settings;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::PacketEnd;

/// Leads to a service, whatever the target.
pub(super) struct Service {
    pub(super) settings: settings::Service,
    /// Bytes of the connections.
    pub(super) traffic: Traffic,
}

impl Protocol for Service {
    fn connect<'a>(&'a self, _: &'a Destination, _: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async {
            let (ours, theirs) = UnixStream::pair()?;
            (self.settings.connect)(theirs);
            Ok(Far::Stream(Box::new(Stream::new(
                Sock::Unix(ours),
                self.traffic.clone(),
            ))))
        })
    }

    fn associate<'a>(&'a self, to: &'a Destination, _: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move { Err(Error::forbidden(to, "a service takes streams only")) })
    }
}
