//! The first datagrams of a flow, held until they say where it is meant to go.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::sock::network;
use sealway_v2ray::Destination;
use sealway_v2ray::sniff::{self, Found, Look, Quic};
use tokio::time::{Instant, Sleep, sleep_until};

use super::PATIENCE;
use crate::Error;
use crate::dispatch::{Origin, User};
use crate::udp::{PacketEnd, Slot, Waiting, size};

/// Bytes of one flow beyond which no more datagrams are held.
const MAX_BYTES: usize = 8 << 10;
/// Flows of a server that are held at once. Of others the first datagram says what it says by itself.
pub(super) const MAX_FLOWS: usize = 1024;

/// Those of them that are one user's, or, where nobody says who he is, one address's.
pub(super) const MAX_FLOWS_OF_ONE: usize = 256;

/// Whose flows count together.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Whose {
    User(String),
    /// An address, and the network of one of IPv6.
    Client(Option<IpAddr>),
}

impl Whose {
    fn of(origin: &Origin, user: &User) -> Whose {
        if !user.email().is_empty() {
            return Whose::User(user.email().to_owned());
        }
        Whose::Client(origin.source.map(|source| network(source.ip())))
    }
}

/// Room for flows that are held.
#[derive(Clone, Debug, Default)]
pub(in crate::dispatch) struct Held(Arc<Mutex<HashMap<Whose, usize>>>);

impl Held {
    /// The room of one client.
    pub(in crate::dispatch) fn room(&self, origin: &Origin, user: &User) -> Room {
        Room {
            held: self.clone(),
            whose: Whose::of(origin, user),
        }
    }

    /// How many flows are held now.
    pub(in crate::dispatch) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Whose, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one client may have of the room.
#[derive(Clone, Debug)]
pub(in crate::dispatch) struct Room {
    held: Held,
    whose: Whose,
}

impl Room {
    /// A place. `None`: all are taken, or as many as one may have.
    pub(super) fn take(&self) -> Option<Place> {
        let mut taken = self.held.lock();
        if taken.values().sum::<usize>() >= MAX_FLOWS {
            return None;
        }
        let own = taken.entry(self.whose.clone()).or_default();
        if *own >= MAX_FLOWS_OF_ONE {
            return None;
        }
        *own += 1;
        Some(Place(self.clone()))
    }
}

/// A place of one flow.
pub(super) struct Place(Room);

impl Drop for Place {
    fn drop(&mut self) {
        let Room { held, whose } = &self.0;
        let mut taken = held.lock();
        if let Some(own) = taken.get_mut(whose) {
            *own -= 1;
            if *own == 0 {
                taken.remove(whose);
            }
        }
    }
}

/// A client whose datagrams can be looked at before they are received.
pub(crate) trait Peeked {
    /// The `nth` of those that have not been received, counted from 0; all before it have been looked at. `None`: the client
    /// sends no more.
    fn poll_peek(&mut self, cx: &mut Context<'_>, nth: usize) -> Poll<Option<&[u8]>>;
}

/// Looks at the first datagrams of one flow.
pub(in crate::dispatch) struct Watch {
    room: Room,
    timer: Pin<Box<Sleep>>,
    /// Datagrams that it has seen.
    looked: usize,
    /// What they take.
    bytes: usize,
    /// From the first Initial packet on.
    flow: Option<(Box<Quic>, Place)>,
}

impl Watch {
    pub(in crate::dispatch) fn new(room: &Room) -> Self {
        Watch {
            room: room.clone(),
            timer: Box::pin(sleep_until(Instant::now() + PATIENCE)),
            looked: 0,
            bytes: 0,
            flow: None,
        }
    }

    /// Looks at those of `waiting` that it has not seen, until it knows, or its time is over.
    pub(in crate::dispatch) fn poll(&mut self, cx: &mut Context<'_>, waiting: &Waiting) -> Poll<Option<Found>> {
        while let Some((bytes, _)) = waiting.get(self.looked) {
            if let Poll::Ready(found) = self.look(bytes) {
                return Poll::Ready(found);
            }
        }
        self.poll_time(cx)
    }

    /// Looks at the next datagram.
    fn look(&mut self, bytes: &[u8]) -> Poll<Option<Found>> {
        self.looked += 1;
        self.bytes += size(bytes);
        let (flow, _) = match &mut self.flow {
            Some(flow) => flow,
            none => {
                let room = match sniff::is_quic(bytes) {
                    true => self.room.take(),
                    false => None,
                };
                match room {
                    Some(place) => none.insert((Box::default(), place)),
                    None => return Poll::Ready(by_itself(bytes)),
                }
            }
        };
        match flow.look(bytes) {
            Look::Found(found) => Poll::Ready(Some(found)),
            Look::Nothing => Poll::Ready(None),
            Look::More(_) if self.bytes > MAX_BYTES => Poll::Ready(self.give_up()),
            Look::More(_) => Poll::Pending,
        }
    }

    /// Ready when its time is over.
    fn poll_time(&mut self, cx: &mut Context<'_>) -> Poll<Option<Found>> {
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(self.give_up())
    }

    /// Looks at what comes from a client, who keeps it.
    pub(in crate::dispatch) async fn peek(mut self, near: &mut impl Peeked) -> Option<Found> {
        poll_fn(|cx| {
            loop {
                match near.poll_peek(cx, self.looked) {
                    Poll::Ready(Some(bytes)) => {
                        if let Poll::Ready(found) = self.look(bytes) {
                            return Poll::Ready(found);
                        }
                    }
                    Poll::Ready(None) => return Poll::Ready(self.give_up()),
                    Poll::Pending => return self.poll_time(cx),
                }
            }
        })
        .await
    }

    /// What is known if nothing follows.
    fn give_up(&self) -> Option<Found> {
        match self.flow.as_ref()?.0.give_up() {
            Look::Found(found) => Some(found),
            _ => None,
        }
    }
}

/// What a first datagram says if nothing is waited for.
pub(super) fn by_itself(bytes: &[u8]) -> Option<Found> {
    if !sniff::is_quic(bytes) {
        return sniff::datagram(bytes);
    }
    let mut flow = Quic::default();
    match flow.look(bytes) {
        Look::Found(found) => Some(found),
        Look::Nothing => None,
        Look::More(_) => match flow.give_up() {
            Look::Found(found) => Some(found),
            _ => None,
        },
    }
}

/// Holds the first datagrams of a client for one target. Returns what they say, and the client with them in front.
///
/// # Errors
/// Those of receiving.
pub(in crate::dispatch) async fn hold(
    room: &Room,
    mut near: Box<dyn PacketEnd>,
) -> Result<(Option<Found>, Box<dyn PacketEnd>), Error> {
    let (mut watch, mut slot, mut waiting) = (Watch::new(room), Slot::default(), Waiting::new());
    let found = poll_fn(|cx| {
        loop {
            if let Poll::Ready(found) = watch.poll(cx, &waiting) {
                return Poll::Ready(Ok(found));
            }
            match near.poll_recv(cx, &mut slot) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(watch.give_up())),
                Poll::Ready(Ok(true)) => {
                    if let Some((to, bytes)) = slot.datagram() {
                        waiting.push_back((bytes.to_vec(), to));
                    }
                    slot.clear();
                }
            }
        }
    })
    .await?;
    Ok((found, Box::new(Replayed { waiting, near })))
}

/// A client whose first datagrams have been received already.
struct Replayed {
    waiting: Waiting,
    near: Box<dyn PacketEnd>,
}

impl PacketEnd for Replayed {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        match self.waiting.pop_front() {
            Some((bytes, to)) => {
                slot.copy(&bytes, to);
                Poll::Ready(Ok(true))
            }
            None => self.near.poll_recv(cx, slot),
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        self.near.poll_send(cx, bytes, peer)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.near.poll_flush(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.near.finish(cx);
    }

    fn discard(self: Box<Self>, idle: Duration, refused: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.near.discard(idle, refused)
    }
}

/// An association with another target than the client knows of.
pub(in crate::dispatch) struct Renamed {
    far: Box<dyn PacketEnd>,
    /// What the client asked for.
    asked: Destination,
    dialled: Destination,
}

impl Renamed {
    /// As it is where both are the same.
    pub(in crate::dispatch) fn around(
        far: Box<dyn PacketEnd>,
        asked: &Destination,
        dialled: &Destination,
    ) -> Box<dyn PacketEnd> {
        if asked.address == dialled.address {
            return far;
        }
        Box::new(Renamed {
            far,
            asked: asked.clone(),
            dialled: dialled.clone(),
        })
    }

    /// Whether an answer comes from what was dialled: by that name, or by the address that was found for it. Where another
    /// server finds that, it is any address with the port: nothing else has been sent to in this association.
    fn is_dialled(&self, peer: &Destination) -> bool {
        peer.port == self.dialled.port
            && (peer.address == self.dialled.address
                || self
                    .far
                    .is_address_of(peer, &self.dialled)
                    .unwrap_or_else(|| peer.address.ip().is_some()))
    }
}

impl PacketEnd for Renamed {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        let more = ready!(self.far.poll_recv(cx, slot))?;
        if let Some(peer) = slot.peer_mut()
            && self.is_dialled(peer)
        {
            // The client waits for answers from where it sent to.
            *peer = self.asked.clone();
        }
        Poll::Ready(Ok(more))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        let to = match peer.address == self.asked.address && peer.port == self.asked.port {
            true => &self.dialled,
            false => peer,
        };
        self.far.poll_send(cx, bytes, to)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.far.poll_flush(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.far.finish(cx);
    }
}
