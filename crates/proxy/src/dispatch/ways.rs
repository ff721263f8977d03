//! Ways of our own: an outbound or the rules, for whoever stands below them.

use std::sync::Arc;

use sealway_v2ray::Destination;

use super::sniff::Aim;
use super::{Dispatcher, Origin, User};
use crate::error::{Error, Pending};
use crate::outbound::{Caller, Far, Outbound};
use crate::roads::{Way, Ways};
use crate::stream::Stream;
use crate::udp::PacketEnd;

impl Dispatcher {
    /// The outbound of a way of our own, and who asks for it.
    async fn lead(&self, way: &Way, to: &Destination, caller: &Caller) -> Result<(Arc<Outbound>, Caller), Error> {
        let inbound = match way {
            Way::Through(tag) => {
                let outbound = self.table().find(tag).map(Arc::clone);
                let gone = Error::Unsupported("a way through an outbound that was removed");
                return Ok((outbound.ok_or(gone)?, caller.clone()));
            }
            Way::Routed(inbound) => Arc::clone(inbound),
        };
        let origin = Origin {
            inbound,
            source: caller.source,
            local: caller.local,
            remote: caller.remote,
            captured: caller.captured,
            forwarded: caller.captured && !caller.neighbour,
            is_program: caller.is_program,
            sniffer: None,
            meter: None,
        };
        let aim = Aim::from(to.clone());
        let (route, _) = self.choose(&origin, &aim, &User::default(), false).await;
        tracing::debug!("[{}] {to} by outbound {:?}", origin.inbound, route.outbound.tag);
        let caller = Caller {
            asks_names: true,
            ..route.caller(&origin)
        };
        Ok((route.outbound, caller))
    }
}

impl Ways for Dispatcher {
    fn connect<'a>(&'a self, way: &'a Way, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Stream> {
        Box::pin(async move {
            let (outbound, caller) = self.lead(way, to, caller).await?;
            match outbound.connect(to, &caller).await? {
                Far::Stream(stream) => Ok(*stream),
                Far::Nowhere(_) => Err(Error::forbidden(&to, "a blackhole outbound")),
            }
        })
    }

    fn associate<'a>(
        &'a self,
        way: &'a Way,
        to: &'a Destination,
        caller: &'a Caller,
    ) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move {
            let (outbound, caller) = self.lead(way, to, caller).await?;
            outbound.associate(to, &caller).await
        })
    }
}
