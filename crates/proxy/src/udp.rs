//! Carrying datagrams: between a client's packets, however they are framed, and the target.

mod open;
mod relayed;

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::vless::packet;
use sealway_v2ray::vmess::MAX_CHUNK_PAYLOAD;
use sealway_v2ray::{Destination, Step};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until, timeout};

use crate::Error;
use crate::pool::{Buf, Class};
use crate::sock::unmapped;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::turn::{Turn, Turns};

pub(crate) use open::{Open, Redirect};
pub(crate) use relayed::Relayed;

/// Longest datagram, bytes.
const MAX: usize = 65_535;

/// A datagram on its way, and the other end of it: where it goes, or where it came from.
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: Destination,
    /// Its share of the [`Room`] it waits in.
    _room: OwnedSemaphorePermit,
}

/// Bytes that may wait in the queues of one listener or one association together, while outbounds are dialled: what is
/// counted in datagrams alone could be gigabytes.
const ROOM: usize = 16 << 20;

/// The memory that waiting datagrams share.
#[derive(Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Room {
    pub(crate) fn new() -> Self {
        Room(Arc::new(Semaphore::new(ROOM)))
    }

    /// A copy of a datagram that has just come; none while there is no room, as with a full socket.
    pub(crate) fn keep(&self, bytes: &[u8], to: Destination) -> Option<Datagram> {
        // What a datagram of no bytes takes counts too.
        let size = u32::try_from(bytes.len() + size_of::<Datagram>()).ok()?;
        let room = Arc::clone(&self.0).try_acquire_many_owned(size).ok()?;
        Some(Datagram {
            bytes: bytes.to_vec(),
            to,
            _room: room,
        })
    }
}

/// How a local client is answered.
pub(crate) enum Reply {
    /// As it is, from the socket the client sent to.
    Plain(Arc<UdpSocket>, SocketAddr),
    /// With a SOCKS header that names the source.
    Socks(Arc<UdpSocket>, SocketAddr),
}

/// One end of an association.
pub(crate) enum PacketEnd {
    /// The Internet: one unconnected socket, so that any host may answer.
    Socket(Box<Open>),
    /// A SOCKS server that relays them.
    Relayed(Box<Relayed>),
    /// A stream of datagrams with their lengths: VLESS, or VMess with a chunk each.
    Framed(Box<Framed>),
    /// A client of a local inbound.
    ///
    /// The traffic is the inbound's, which has no stream of its own to count.
    Local(mpsc::Receiver<Datagram>, Reply, Traffic, Muted),
}

/// Says that a flow throws away what comes, so that its place is free for one that does not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Muted(Arc<AtomicBool>);

impl Muted {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Datagrams in a stream.
pub(crate) struct Framed {
    stream: Stream,
    /// Where all of them go, or come from.
    target: Destination,
    /// Lengths are written by us; otherwise one piece of the body layer holds one datagram.
    lengths: bool,
    /// Nothing tells datagrams apart but the reads they come in.
    raw: bool,
}

impl PacketEnd {
    /// Datagrams of VLESS (`lengths`) or VMess in a stream.
    pub(crate) fn framed(mut stream: Stream, target: Destination, lengths: bool) -> Self {
        stream.trust();
        PacketEnd::Framed(Box::new(Framed {
            stream,
            target,
            lengths,
            raw: false,
        }))
    }

    /// Datagrams one behind the other in a stream: what Xray sends under VMess with the word `zero`. What is read at once
    /// is taken for one datagram, as Xray does it; two that arrive together become one.
    pub(crate) fn raw(mut stream: Stream, target: Destination) -> Self {
        stream.trust();
        PacketEnd::Framed(Box::new(Framed {
            stream,
            target,
            lengths: false,
            raw: true,
        }))
    }

    /// Receives one datagram into `slot`. False: the end.
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        match self {
            PacketEnd::Socket(open) => open.poll_recv(cx, slot),
            PacketEnd::Relayed(relayed) => relayed.poll_recv(cx, slot),
            PacketEnd::Framed(framed) => loop {
                if framed.raw && !framed.stream.payload().is_empty() {
                    let len = framed.stream.payload().len().min(MAX);
                    slot.take()[..len].copy_from_slice(&framed.stream.payload()[..len]);
                    framed.stream.consume(len);
                    slot.fill(len, framed.target.clone());
                    return Poll::Ready(Ok(true));
                }
                if let Step::Done { value, used } = packet::decode(framed.stream.payload()) {
                    let len = value.len();
                    slot.take()[..len].copy_from_slice(&framed.stream.payload()[value]);
                    framed.stream.consume(used);
                    slot.fill(len, framed.target.clone());
                    return Poll::Ready(Ok(true));
                }
                let had = framed.stream.payload().len();
                framed.stream.open()?;
                if framed.stream.payload().len() > had {
                    continue;
                }
                if framed.stream.has_ended() {
                    return Poll::Ready(Ok(false));
                }
                ready!(framed.stream.poll_fill(cx))?;
            },
            PacketEnd::Local(queue, _, traffic, _) => match ready!(queue.poll_recv(cx)) {
                None => Poll::Ready(Ok(false)),
                Some(datagram) => {
                    let len = datagram.bytes.len().min(MAX);
                    traffic.received(len);
                    slot.take()[..len].copy_from_slice(&datagram.bytes[..len]);
                    slot.fill(len, datagram.to);
                    Poll::Ready(Ok(true))
                }
            },
        }
    }

    /// Sends one datagram. `peer` is where it goes or, towards a client, where it came from.
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        match self {
            PacketEnd::Socket(open) => open.poll_send(cx, bytes, peer),
            PacketEnd::Relayed(relayed) => relayed.poll_send(cx, bytes, peer),
            PacketEnd::Framed(framed) => {
                // What is still being written goes first; then there is room for one more.
                ready!(framed.stream.poll_flush(cx))?;
                let most = if framed.lengths {
                    packet::MAX_WRITE
                } else {
                    MAX_CHUNK_PAYLOAD
                };
                if bytes.len() > most {
                    // One that does not fit is lost, as on any network; the association is not.
                    tracing::debug!("datagram of {} bytes dropped: {most} fit", bytes.len());
                } else if !bytes.is_empty() {
                    if framed.lengths {
                        let head = packet::head(bytes.len())?;
                        let mut whole = Vec::with_capacity(head.len() + bytes.len());
                        whole.extend_from_slice(&head);
                        whole.extend_from_slice(bytes);
                        framed.stream.seal(&whole)?;
                    } else {
                        framed.stream.seal_whole(bytes)?;
                    }
                }
                if let Poll::Ready(Err(error)) = framed.stream.poll_flush(cx) {
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(()))
            }
            PacketEnd::Local(_, reply, traffic, _) => {
                let sent = match reply {
                    Reply::Plain(socket, client) => socket.try_send_to(bytes, *client),
                    Reply::Socks(socket, client) => {
                        let mut whole = vec![0, 0, 0];
                        sealway_v2ray::address::write_type_first(&peer.address, peer.port, &mut whole);
                        whole.extend_from_slice(bytes);
                        socket.try_send_to(&whole, *client)
                    }
                };
                match sent {
                    Ok(_) => traffic.sent(bytes.len()),
                    Err(error) => tracing::debug!("datagram to the client dropped: {error}"),
                }
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Writes what waits in a stream.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self {
            PacketEnd::Framed(framed) => framed.stream.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    async fn close(&mut self) {
        if let PacketEnd::Framed(framed) = self {
            let sealed = framed.stream.seal_end().and_then(|()| framed.stream.seal_close());
            if sealed.is_ok() {
                let _ = poll_fn(|cx| Poll::Ready(framed.stream.poll_flush(cx))).await;
            }
        }
    }
}

/// Receives one datagram of a socket into `slot`, not before there is one. `None`: the system told of something else, such as
/// a port that is closed, which belongs to one datagram and not to the association.
fn poll_socket(
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
struct Slot {
    buf: Option<Buf>,
    len: usize,
    peer: Option<Destination>,
}

impl Slot {
    fn take(&mut self) -> &mut [u8] {
        let class = Class::holding(MAX).unwrap_or(Class::LARGEST);
        self.buf.get_or_insert_with(|| Buf::take(class))
    }

    fn fill(&mut self, len: usize, peer: Destination) {
        self.len = len;
        self.peer = Some(peer);
    }

    fn clear(&mut self) {
        *self = Slot::default();
    }
}

/// Moves datagrams one way. Ready at the end of `from`.
fn poll_way(
    cx: &mut Context<'_>,
    from: &mut PacketEnd,
    to: &mut PacketEnd,
    slot: &mut Slot,
    moved: &mut usize,
) -> Poll<Result<(), Error>> {
    loop {
        if let (Some(buf), Some(peer)) = (&slot.buf, &slot.peer) {
            ready!(to.poll_send(cx, &buf[..slot.len], peer))?;
            *moved += slot.len;
            slot.clear();
        }
        if let Poll::Ready(Err(error)) = to.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        if !ready!(from.poll_recv(cx, slot))? {
            return Poll::Ready(Ok(()));
        }
    }
}

/// How long a target that could not be reached is not tried again, while datagrams to it keep coming.
const RETRY: Duration = Duration::from_secs(10);

/// Throws away what a local client sends, as long as its flow lasts: if each datagram were asked about anew, each would be
/// a line in the logs. One whose target was `refused` lasts until nothing has come for `idle`, any other is tried again
/// after ten seconds.
pub(crate) async fn discard(near: PacketEnd, idle: Duration, refused: bool) {
    let PacketEnd::Local(mut queue, _, _, muted) = near else {
        return;
    };
    muted.set();
    let most = if refused { Duration::MAX } else { RETRY };
    let all = async { while let Ok(Some(_)) = timeout(idle, queue.recv()).await {} };
    let _ = timeout(most, all).await;
}

/// Carries datagrams until an end closes or nothing has moved for `idle`.
pub(crate) async fn carry(mut near: PacketEnd, mut far: PacketEnd, idle: Duration, user: Traffic) -> Result<(), Error> {
    let (mut up, mut down) = (Slot::default(), Slot::default());
    let mut last = Instant::now();
    let mut timer = Box::pin(sleep_until(last + idle));
    let ended = poll_fn(|cx| {
        let (mut sent, mut received) = (0, 0);
        let up_end = poll_way(cx, &mut near, &mut far, &mut up, &mut sent);
        let down_end = poll_way(cx, &mut far, &mut near, &mut down, &mut received);
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
    Turn::default().wait(Turns::shared(), last).await;
    near.close().await;
    far.close().await;
    ended
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::{Address, Network};

    use super::*;

    #[test]
    fn waiting_datagrams_share_a_bounded_room() {
        let room = Room::new();
        let to = || Destination {
            network: Network::Udp,
            address: Address::from(std::net::IpAddr::from([127, 0, 0, 1])),
            port: 53,
        };
        let bytes = vec![0; MAX];
        let mut kept: Vec<Datagram> = std::iter::from_fn(|| room.keep(&bytes, to())).collect();
        assert_eq!(kept.len(), ROOM / (MAX + size_of::<Datagram>()));
        assert!(room.keep(&bytes, to()).is_none());
        // What has gone on its way makes room.
        kept.pop();
        assert!(room.keep(&bytes, to()).is_some());
        // Nothing at all is not free either.
        let room = Room::new();
        let most = ROOM / size_of::<Datagram>();
        assert_eq!(
            std::iter::from_fn(|| room.keep(&[], to()))
                .take(2 * most)
                .collect::<Vec<_>>()
                .len(),
            most
        );
    }
}
