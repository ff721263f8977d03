//! Carrying datagrams: between a client's packets, however they are framed, and the target.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::vless::packet;
use sealway_v2ray::{Address, Destination, Network, Step};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::Error;
use crate::dial::resolve;
use crate::guard::Guard;
use crate::pool::{Buf, Class};
use crate::settings::DomainStrategy;
use crate::sock::unmapped;
use crate::stats::Traffic;
use crate::stream::Stream;

/// Longest datagram, bytes.
const MAX: usize = 65_535;
/// Names whose address one association remembers.
const MAX_NAMES: usize = 64;

/// A datagram on its way, and the other end of it: where it goes, or where it came from.
pub(crate) struct Datagram {
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: Destination,
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
    /// A stream of datagrams with their lengths: VLESS, or VMess with a chunk each.
    Framed(Box<Framed>),
    /// A client of a local inbound.
    Local(mpsc::Receiver<Datagram>, Reply),
}

type Resolving = Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>, Error>> + Send>>;

/// A socket that sends anywhere.
pub(crate) struct Open {
    socket: UdpSocket,
    v6: bool,
    strategy: DomainStrategy,
    guard: Guard,
    names: HashMap<Destination, SocketAddr>,
    resolving: Option<Resolving>,
    traffic: Traffic,
}

impl Open {
    /// Binds a socket for both families, or for IPv4 where that is all there is.
    pub(crate) fn bind(
        source: Option<IpAddr>,
        strategy: DomainStrategy,
        guard: Guard,
        traffic: Traffic,
    ) -> Result<Self, Error> {
        let bind = |ip: IpAddr| {
            let domain = if ip.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            if ip.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            socket.set_nonblocking(true)?;
            socket.bind(&SocketAddr::new(ip, 0).into())?;
            UdpSocket::from_std(socket.into())
        };
        let socket = match source {
            Some(ip) => bind(ip)?,
            None => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into()))?,
        };
        let v6 = socket.local_addr()?.is_ipv6();
        Ok(Open {
            socket,
            v6,
            strategy,
            guard,
            names: HashMap::new(),
            resolving: None,
            traffic,
        })
    }

    fn poll_address(&mut self, cx: &mut Context<'_>, to: &Destination) -> Poll<Result<SocketAddr, Error>> {
        if let Some(address) = to.socket_addr() {
            return Poll::Ready(Ok(address));
        }
        if let Some(&address) = self.names.get(to) {
            return Poll::Ready(Ok(address));
        }
        let resolving = self.resolving.get_or_insert_with(|| {
            let (host, port, strategy) = (to.address.clone(), to.port, self.strategy);
            Box::pin(async move { resolve(&host, port, strategy).await })
        });
        let found = ready!(resolving.as_mut().poll(cx));
        self.resolving = None;
        let address = found?.into_iter().find(|a| self.v6 || a.is_ipv4());
        let address = address.ok_or_else(|| Error::Resolve { name: to.to_string() })?;
        if self.names.len() < MAX_NAMES {
            self.names.insert(to.clone(), address);
        }
        Poll::Ready(Ok(address))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        let mut address = match ready!(self.poll_address(cx, to)) {
            Ok(address) => address,
            // One name that does not exist is no reason to end the association.
            Err(error) => {
                tracing::debug!("datagram dropped: {error}");
                return Poll::Ready(Ok(()));
            }
        };
        if let Err(error) = self.guard.check(address, Network::Udp) {
            tracing::warn!("datagram dropped: {error}");
            return Poll::Ready(Ok(()));
        }
        if self.v6
            && let IpAddr::V4(v4) = address.ip()
        {
            address.set_ip(v4.to_ipv6_mapped().into());
        }
        match ready!(self.socket.poll_send_to(cx, bytes, address)) {
            Ok(sent) => self.traffic.sent(sent),
            // Unreachable hosts and datagrams too long for the path concern this datagram only.
            Err(error) => tracing::debug!("datagram to {address} dropped: {error}"),
        }
        Poll::Ready(Ok(()))
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
            PacketEnd::Socket(open) => {
                ready!(open.socket.poll_recv_ready(cx))?;
                let buf = slot.take();
                let mut into = ReadBuf::new(buf);
                let from = match open.socket.poll_recv_from(cx, &mut into) {
                    Poll::Ready(Ok(from)) => unmapped(from),
                    // An answer that a port is closed belongs to one datagram, not to the association.
                    Poll::Ready(Err(error)) => {
                        tracing::debug!("receiving: {error}");
                        cx.waker().wake_by_ref();
                        slot.clear();
                        return Poll::Pending;
                    }
                    Poll::Pending => {
                        slot.clear();
                        return Poll::Pending;
                    }
                };
                let len = into.filled().len();
                open.traffic.received(len);
                slot.fill(len, Destination::udp(Address::from(from.ip()), from.port()));
                Poll::Ready(Ok(true))
            }
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
            PacketEnd::Local(queue, _) => match ready!(queue.poll_recv(cx)) {
                None => Poll::Ready(Ok(false)),
                Some(datagram) => {
                    let len = datagram.bytes.len().min(MAX);
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
            PacketEnd::Framed(framed) => {
                // What is still being written goes first; then there is room for one more.
                ready!(framed.stream.poll_flush(cx))?;
                if !bytes.is_empty() {
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
            PacketEnd::Local(_, reply) => {
                let sent = match reply {
                    Reply::Plain(socket, client) => socket.try_send_to(bytes, *client),
                    Reply::Socks(socket, client) => {
                        let mut whole = vec![0, 0, 0];
                        sealway_v2ray::address::write_type_first(&peer.address, peer.port, &mut whole);
                        whole.extend_from_slice(bytes);
                        socket.try_send_to(&whole, *client)
                    }
                };
                if let Err(error) = sent {
                    tracing::debug!("datagram to the client dropped: {error}");
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
    near.close().await;
    far.close().await;
    ended
}
