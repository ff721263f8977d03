//! Datagrams through another outbound.

use std::task::{Context, Poll, ready};

use sealway_v2ray::Destination;

use crate::Error;
use crate::stats::Traffic;
use crate::udp::{Answers, PacketEnd, Slot};

/// An association of another outbound, for one target.
pub(super) struct Further {
    pub(super) end: Box<dyn PacketEnd>,
    /// The target as the client knows it.
    pub(super) meant: Destination,
    /// Where its datagrams go.
    pub(super) goes_to: Destination,
    /// What comes from there.
    pub(super) answers: Answers,
    pub(super) traffic: Traffic,
}

impl PacketEnd for Further {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        if !ready!(self.end.poll_recv(cx, slot))? {
            return Poll::Ready(Ok(false));
        }
        self.traffic.received(slot.len());
        if self.meant != self.goes_to
            && let Some(from) = slot.peer_mut()
            && self.answers.include(from)
        {
            from.clone_from(&self.meant);
        }
        Poll::Ready(Ok(true))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        let to = if *to == self.meant { &self.goes_to } else { to };
        ready!(self.end.poll_send(cx, bytes, to))?;
        self.traffic.sent(bytes.len());
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.end.poll_flush(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.end.finish(cx);
    }
}
