//! Datagrams to one target: where they are meant to go, and their way there.

use std::sync::Arc;

use sealway_v2ray::Destination;

use super::access::Client;
use super::sniff::{Aim, Peeked, Renamed, Sniffing};
use super::{Carry, Dispatcher, Origin, Route, User};
use crate::error::Error;
use crate::people::{Presence, Refused};
use crate::udp::PacketEnd;

impl Dispatcher {
    /// What the first datagram to a target says. `None`: its flow has to be held, or goes elsewhere than the client says, so it
    /// begins as one of its own.
    pub(crate) fn glance(&self, origin: &Origin, to: &Destination, first: &[u8]) -> Option<Aim> {
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked()) else {
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
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked()) else {
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
        let Some(sniffing) = Sniffing::new(origin, to, &self.resolver, self.asked()) else {
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
        let carry = match user.enter(origin) {
            Ok(mut presence) => {
                let far = presence.unless_gone(associate(origin, route, to)).await;
                associated(far, near, user, presence)
            }
            Err(error) => self.turn_away(origin, near, user, error),
        };
        self.carry(origin, carry).await;
    }

    /// A user who may not have this association. What comes of it is thrown away for a while, so that each datagram is not another
    /// refusal.
    pub(super) fn turn_away(&self, origin: &Origin, near: Box<dyn PacketEnd>, user: Arc<User>, error: Error) -> Carry {
        match error {
            Error::Refused(Refused::Removed) => Carry::Nothing,
            error => {
                self.rejected(origin, &error);
                Carry::Unheard(near, user, None, Presence::nobody())
            }
        }
    }

    /// From datagrams to one target to an association that only has to be carried.
    pub(super) async fn begin_datagrams(
        self: &Arc<Self>,
        origin: &Origin,
        near: Box<dyn PacketEnd>,
        to: Destination,
        user: Arc<User>,
    ) -> Carry {
        let presence = match user.enter(origin) {
            Ok(presence) => presence,
            Err(error) => return self.turn_away(origin, near, user, error),
        };
        let Some(sniffing) = Sniffing::new(origin, &to, &self.resolver, self.asked()) else {
            return self.begin_aimed(origin, (near, presence), &Aim::from(to), user).await;
        };
        match sniffing.hold(&self.held.room(origin, &user), near).await {
            Ok((found, near)) => match sniffing.aim(found.into()) {
                Ok(aim) => self.begin_aimed(origin, (near, presence), &aim, user).await,
                Err(error) => Carry::Unheard(near, user, Some(error), presence),
            },
            Err(error) => {
                tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
                Carry::Nothing
            }
        }
    }

    /// The same where it is known where they are meant to go.
    async fn begin_aimed(
        &self,
        origin: &Origin,
        (near, mut presence): (Box<dyn PacketEnd>, Presence),
        aim: &Aim,
        user: Arc<User>,
    ) -> Carry {
        let reaching = async {
            let route = self.route(origin, aim, &user).await;
            let far = associate(origin, &route, &aim.dial).await?;
            Ok(Renamed::around(far, &aim.asked, &aim.dial))
        };
        let far = presence.unless_gone(reaching).await;
        associated(far, near, user, presence)
    }

    /// Carries datagrams to one target, of which it is known where they are meant to go.
    pub(crate) async fn carry_aimed(
        self: &Arc<Self>,
        origin: &Origin,
        near: Box<dyn PacketEnd>,
        aim: Result<Aim, Error>,
        user: Arc<User>,
    ) {
        let carry = match (user.enter(origin), aim) {
            (Ok(presence), Ok(aim)) => self.begin_aimed(origin, (near, presence), &aim, user).await,
            (Ok(presence), Err(error)) => Carry::Unheard(near, user, Some(error), presence),
            (Err(error), _) => self.turn_away(origin, near, user, error),
        };
        self.carry(origin, carry).await;
    }
}

/// The target's end, by this outbound.
async fn associate(origin: &Origin, route: &Route, to: &Destination) -> Result<Box<dyn PacketEnd>, Error> {
    route.outbound.associate(to, &route.caller(origin)).await
}

/// What there is to carry. `None`: the user was gone before.
fn associated(
    far: Option<Result<Box<dyn PacketEnd>, Error>>,
    near: Box<dyn PacketEnd>,
    user: Arc<User>,
    presence: Presence,
) -> Carry {
    match far {
        Some(Ok(far)) => Carry::Datagrams(near, far, user, presence),
        Some(Err(error)) => Carry::Unheard(near, user, Some(error), presence),
        None => Carry::Nothing,
    }
}
