//! Datagrams to one target: where they are meant to go, and their way there.

use std::sync::Arc;

use sealway_v2ray::Destination;

use super::access::Client;
use super::sniff::{Aim, Peeked, Renamed, Sniffing};
use super::{Carry, Dispatcher, Origin, Route, User};
use crate::error::Error;
use crate::udp::PacketEnd;

impl Dispatcher {
    /// What the first datagram to a target says. `None`: its flow has to be held, or goes elsewhere than the client says, so it
    /// begins as one of its own.
    pub(crate) fn glance(&self, origin: &Origin, to: &Destination, first: &[u8]) -> Option<Aim> {
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked) else {
            return Some(Aim::from(to.clone()));
        };
        if sniffing.needs_own_flow(first) {
            return None;
        }
        let sniffed = sniffing.glance(first);
        sniffing.aim(sniffed).ok()
    }

    /// The same where there is no place for a flow of its own: the rules hear what this datagram says, and it goes where the
    /// client says. `None`: it cannot go there.
    pub(crate) fn glance_in_passing(&self, origin: &Origin, to: &Destination, first: &[u8]) -> Option<Aim> {
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked) else {
            return Some(Aim::from(to.clone()));
        };
        let sniffed = sniffing.glance(first);
        sniffing.aim_in_place(sniffed)
    }

    /// Where the flow of a client to a target is meant to go, as its first datagrams say. They are left with the client.
    ///
    /// # Errors
    /// Those of receiving, and [`Error::Forgotten`].
    pub(crate) async fn watch(
        &self,
        origin: &Origin,
        near: &mut impl Peeked,
        to: &Destination,
        user: &User,
    ) -> Result<Aim, Error> {
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked) else {
            return Ok(Aim::from(to.clone()));
        };
        let found = match sniffing.watch(&self.held.room(origin, user)) {
            Some(watch) => watch.peek(near).await,
            None => None,
        };
        sniffing.aim(found.into())
    }

    /// Carries datagrams by a route that has been chosen.
    pub(crate) async fn carry_datagrams(
        self: &Arc<Self>,
        origin: &Origin,
        route: &Route,
        near: Box<dyn PacketEnd>,
        to: &Destination,
        user: Arc<User>,
    ) {
        let carry = associate(origin, route, near, to, user).await;
        self.carry(origin, carry).await;
    }

    /// From datagrams to one target to an association that only has to be carried.
    pub(super) async fn begin_datagrams(
        self: &Arc<Self>,
        origin: &Origin,
        mut near: Box<dyn PacketEnd>,
        to: Destination,
        user: Arc<User>,
    ) -> Carry {
        let aim = match Sniffing::new(origin, &to, &self.resolver, self.asked) {
            None => Ok(Aim::from(to)),
            Some(sniffing) => {
                let found;
                (found, near) = match sniffing.hold(&self.held.room(origin, &user), near).await {
                    Ok(held) => held,
                    Err(error) => {
                        tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
                        return Carry::Nothing;
                    }
                };
                sniffing.aim(found.into())
            }
        };
        match aim {
            Ok(aim) => self.begin_aimed(origin, near, &aim, user).await,
            Err(error) => Carry::Unheard(near, user, error),
        }
    }

    /// The same where it is known where they are meant to go.
    async fn begin_aimed(&self, origin: &Origin, near: Box<dyn PacketEnd>, aim: &Aim, user: Arc<User>) -> Carry {
        let route = self.route(origin, aim, &user).await;
        match associate(origin, &route, near, &aim.dial, user).await {
            Carry::Datagrams(near, far, user) => {
                Carry::Datagrams(near, Renamed::around(far, &aim.asked, &aim.dial), user)
            }
            other => other,
        }
    }

    /// Carries datagrams to one target, of which it is known where they are meant to go.
    pub(crate) async fn carry_aimed(
        self: &Arc<Self>,
        origin: &Origin,
        near: Box<dyn PacketEnd>,
        aim: Result<Aim, Error>,
        user: Arc<User>,
    ) {
        let carry = match aim {
            Ok(aim) => self.begin_aimed(origin, near, &aim, user).await,
            Err(error) => Carry::Unheard(near, user, error),
        };
        self.carry(origin, carry).await;
    }
}

/// By this outbound.
pub(super) async fn associate(
    origin: &Origin,
    route: &Route,
    near: Box<dyn PacketEnd>,
    to: &Destination,
    user: Arc<User>,
) -> Carry {
    match route.outbound.associate(to, &route.caller(origin)).await {
        Ok(far) => Carry::Datagrams(near, far, user),
        Err(error) => Carry::Unheard(near, user, error),
    }
}
