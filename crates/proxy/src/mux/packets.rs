//! Datagrams in a carrier that has other sessions too.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use sealway_v2ray::mux::{self, GlobalId, MAX_DATAGRAM};
use sealway_v2ray::{Destination, Network};

use super::{Batch, Link, PacketInbox, Turn};
use crate::Error;
use crate::udp::{PacketEnd, Slot};

/// An association that began here: datagrams to and from any address.
pub(crate) struct Packets {
    link: Arc<Link>,
    inbox: Arc<PacketInbox>,
    batch: Batch,
    id: u16,
    turn: Turn,
    global: Option<GlobalId>,
    begun: bool,
}

impl Packets {
    /// An association by this number, whose first datagram tells the peer of it.
    pub(crate) fn new(link: Arc<Link>, inbox: Arc<PacketInbox>, id: u16, global: Option<GlobalId>) -> Box<Self> {
        Box::new(Packets {
            link,
            inbox,
            batch: Batch::default(),
            id,
            turn: Turn::default(),
            global,
            begun: false,
        })
    }
}

/// Whether a datagram can be sent. A longer one would end the carrier at some peers; it is lost, as on any network.
pub(super) fn fits(bytes: &[u8]) -> bool {
    if bytes.len() > MAX_DATAGRAM {
        tracing::debug!("datagram of {} bytes dropped: {MAX_DATAGRAM} fit", bytes.len());
    }
    (1..=MAX_DATAGRAM).contains(&bytes.len())
}

/// Sends a datagram with where it comes from, in a session that the peer has begun.
///
/// # Errors
/// If the carrier is lost.
pub(crate) fn push_datagram(
    link: &Link,
    cx: &mut Context<'_>,
    turn: &mut Turn,
    id: u16,
    from: &Destination,
    bytes: &[u8],
) -> Poll<Result<(), Error>> {
    if !fits(bytes) {
        return Poll::Ready(Ok(()));
    }
    let pushed = link.poll_push(cx, turn, |out, _, _| {
        (mux::push_packet(out, id, from, bytes), bytes.len())
    });
    ready!(pushed)??;
    Poll::Ready(Ok(()))
}

impl PacketEnd for Packets {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        loop {
            if let Some((from, bytes)) = self.batch.next() {
                slot.copy(bytes, from);
                return Poll::Ready(Ok(true));
            }
            if !ready!(self.inbox.poll_take(cx, &mut self.batch)) {
                return Poll::Ready(Ok(false));
            }
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        if !fits(bytes) {
            return Poll::Ready(Ok(()));
        }
        let (id, global, begun) = (self.id, self.global, &mut self.begun);
        let pushed = self.link.poll_push(cx, &mut self.turn, |out, _, _| {
            let pushed = match std::mem::replace(begun, true) {
                true => mux::push_packet(out, id, peer, bytes),
                false => {
                    let to = Destination {
                        network: Network::Udp,
                        ..peer.clone()
                    };
                    mux::push_new(out, id, &to, global, Some(bytes))
                }
            };
            (pushed, bytes.len())
        });
        ready!(pushed)??;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        self.link.leave(self.id, 0, true);
        self.inbox.end();
        if self.begun {
            self.link.push_end(self.id, false);
        }
    }
}
