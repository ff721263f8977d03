//! Carrying datagrams: between a client's packets, however they are framed, and the target.

mod addressed;
mod framed;
mod questions;
mod wire;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::sock::unmapped;
use sealway_v2ray::Destination;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::closing::{Paced, Pacer};
use crate::people::{Pass, Presence, Refused, Way};
use crate::pool::{Buf, Class};

pub(crate) use addressed::Addressed;
pub(crate) use framed::Framed;
pub(crate) use questions::{Questions, Waiting, size, sizes};
pub(crate) use wire::{Answers, Wire};

/// Longest datagram, bytes.
const MAX: usize = 65_535;

/// One end of an association.
pub(crate) trait PacketEnd: Send {
    /// Receives one datagram into `slot`. False: the end.
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>>;

    /// Sends one datagram. `peer` is where it goes or, towards a client, where it came from.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>>;

    /// Writes what waits, where something can.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    /// Whether `peer` is the address that was found for this name. `None`: whoever finds it does not say.
    fn is_address_of(&self, _peer: &Destination, _name: &Destination) -> Option<bool> {
        None
    }

    /// Says that nothing follows, as far as that can be written at once.
    fn finish(&mut self, _: &mut Context<'_>) {}

    /// Throws away what comes for a target that was `refused` or cannot be reached, where datagrams come on their own.
    fn discard(self: Box<Self>, _idle: Duration, _refused: bool) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// Receives one datagram of a socket into `slot`, not before there is one. `None`: the system told of something else, such as
/// a port that is closed, which belongs to one datagram and not to the association.
pub(crate) fn poll_socket(
    cx: &mut Context<'_>,
    socket: &UdpSocket,
    slot: &mut Slot,
) -> Poll<Result<Option<(usize, SocketAddr)>, Error>> {
    ready!(socket.poll_recv_ready(cx))?;
    let mut into = ReadBuf::new(slot.take());
    match socket.poll_recv_from(cx, &mut into) {
        Poll::Ready(Ok(from)) => {
            let len = into.filled().len();
            Poll::Ready(Ok(Some((len, unmapped(from)))))
        }
        Poll::Ready(Err(error)) => {
            tracing::debug!("receiving: {error}");
            slot.clear();
            Poll::Ready(Ok(None))
        }
        Poll::Pending => {
            slot.clear();
            Poll::Pending
        }
    }
}

/// A datagram between its two ends. Holds a buffer only while there is one.
#[derive(Default)]
pub(crate) struct Slot {
    buf: Option<Buf>,
    len: usize,
    peer: Option<Destination>,
}

impl Slot {
    /// Room for a datagram, of which [`Slot::fill`] then says how much it took.
    pub(crate) fn take(&mut self) -> &mut [u8] {
        let class = Class::holding(MAX).unwrap_or(Class::LARGEST);
        self.buf.get_or_insert_with(|| Buf::take(class))
    }

    /// Takes a copy of a datagram.
    pub(crate) fn copy(&mut self, bytes: &[u8], peer: Destination) {
        let len = bytes.len().min(MAX);
        self.take()[..len].copy_from_slice(&bytes[..len]);
        self.fill(len, peer);
    }

    pub(crate) fn fill(&mut self, len: usize, peer: Destination) {
        self.len = len;
        self.peer = Some(peer);
    }

    /// Bytes of the datagram.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The datagram and its other end, if there is one.
    pub(crate) fn datagram(&self) -> Option<(Destination, &[u8])> {
        let (buf, peer) = (self.buf.as_ref()?, self.peer.as_ref()?);
        Some((peer.clone(), &buf[..self.len]))
    }

    /// The other end of the datagram, if there is one.
    pub(crate) fn peer_mut(&mut self) -> Option<&mut Destination> {
        self.peer.as_mut()
    }

    pub(crate) fn clear(&mut self) {
        *self = Slot::default();
    }
}

/// What one way of an association may move.
///
/// A datagram that may not go yet waits, one each way, and those behind it wait where they lie: in the stream that carries them,
/// whose sender is held back by it, or in the socket's buffer, of which the kernel drops what does not fit. That is what a narrow
/// link does, and what senders such as those of QUIC find their rate by. Dropping all that comes too early would cost them whole
/// windows, and they would stay far below the rate.
struct Leave<'a> {
    user: &'a Presence,
    pass: &'a mut Pass,
}

impl Leave<'_> {
    /// Ready when the datagram that waits may go.
    fn poll(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<Result<(), Error>> {
        if let Some(budget) = self.user.budget() {
            ready!(self.pass.poll_for(cx, budget, len))?;
        }
        Poll::Ready(Ok(()))
    }

    /// It has gone.
    fn done(&mut self, len: usize) {
        if let Some(budget) = self.user.budget() {
            self.pass.spend(budget, len);
            budget.count(self.pass.way(), len);
        }
    }
}

/// Moves datagrams one way. Ready at the end of `from`.
fn poll_way(
    cx: &mut Context<'_>,
    from: &mut dyn PacketEnd,
    to: &mut dyn PacketEnd,
    (slot, leave): (&mut Slot, &mut Leave<'_>),
    moved: &mut usize,
) -> Poll<Result<(), Error>> {
    loop {
        if let (Some(buf), Some(peer)) = (&slot.buf, &slot.peer) {
            if leave.poll(cx, slot.len)?.is_pending() {
                return poll_rest(cx, to);
            }
            ready!(to.poll_send(cx, &buf[..slot.len], peer))?;
            *moved += slot.len;
            leave.done(slot.len);
            slot.clear();
        }
        match from.poll_recv(cx, slot) {
            Poll::Ready(Ok(true)) => {}
            Poll::Ready(other) => return Poll::Ready(other.map(|_| ())),
            Poll::Pending => return poll_rest(cx, to),
        }
    }
}

/// Nothing more goes now: those that came together leave together, where that is possible.
fn poll_rest(cx: &mut Context<'_>, to: &mut dyn PacketEnd) -> Poll<Result<(), Error>> {
    match to.poll_flush(cx) {
        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        _ => Poll::Pending,
    }
}

/// Carries datagrams until an end closes, nothing has moved for `idle`, or the user is gone.
pub(crate) async fn carry(
    mut near: Box<dyn PacketEnd>,
    mut far: Box<dyn PacketEnd>,
    idle: Duration,
    mut user: Presence,
) -> Result<(), Error> {
    let (mut up, mut down) = (Slot::default(), Slot::default());
    let mut passes = [Way::Up, Way::Down].map(Pass::new);
    let mut last = Instant::now();
    let mut timer = Box::pin(sleep_until(last + idle));
    let ended = poll_fn(|cx| {
        if user.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Refused::Removed.into()));
        }
        let (mut sent, mut received) = (0, 0);
        let [up_pass, down_pass] = &mut passes;
        let leave = &mut Leave {
            user: &user,
            pass: up_pass,
        };
        let up_end = poll_way(cx, &mut *near, &mut *far, (&mut up, leave), &mut sent);
        let leave = &mut Leave {
            user: &user,
            pass: down_pass,
        };
        let down_end = poll_way(cx, &mut *far, &mut *near, (&mut down, leave), &mut received);
        user.received(sent);
        user.sent(received);
        if sent + received > 0 {
            last = Instant::now();
        }
        for end in [up_end, down_end] {
            if end.is_ready() {
                return end;
            }
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= last + idle {
                return Poll::Ready(Ok(()));
            }
            timer.as_mut().reset(last + idle);
        }
    })
    .await;
    if let Some(budget) = user.budget() {
        passes.iter_mut().for_each(|pass| pass.finish(budget));
    }
    if !matches!(ended, Err(Error::Refused(_))) {
        Paced::default().wait(Pacer::shared(), last).await;
    }
    poll_fn(|cx| {
        near.finish(cx);
        far.finish(cx);
        Poll::Ready(())
    })
    .await;
    ended
}

#[cfg(test)]
mod limited;
