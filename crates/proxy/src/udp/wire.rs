//! Datagrams to one server: by a socket of our own, or through another outbound.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};

use sealway_v2ray::Destination;

use super::{PacketEnd, Slot, poll_socket};
use crate::Error;
use crate::dial::{OwnSocket, datagram_socket};
use crate::settings::SocketOptions;

/// A way for datagrams to one server.
pub(crate) enum Wire {
    /// Connected to the server: the system drops what comes from anywhere else.
    Socket(OwnSocket),
    /// Through another outbound, whose socket may hear anybody.
    Through(Box<dyn PacketEnd>, Answers),
}

/// Knows the answers of a server that other ends of an association may tell by a name or by an address.
pub(crate) struct Answers {
    server: Destination,
    /// The address of a name, from the first answer.
    learnt: Option<IpAddr>,
}

impl Answers {
    /// Those of this server.
    pub(crate) fn of(server: Destination) -> Answers {
        Answers { server, learnt: None }
    }

    /// Whether a datagram with this sender is one. Of a name, the first address that answers is the server's.
    pub(crate) fn include(&mut self, from: &Destination) -> bool {
        let server = &self.server;
        if from.port != server.port {
            return false;
        }
        match (server.address.ip(), from.address.ip()) {
            (Some(server), Some(from)) => server.to_canonical() == from.to_canonical(),
            (None, Some(from)) => *self.learnt.get_or_insert(from.to_canonical()) == from.to_canonical(),
            _ => server.address == from.address,
        }
    }
}

impl Wire {
    /// A socket that is connected to the server.
    pub(crate) async fn connect(
        server: SocketAddr,
        options: &SocketOptions,
        source: Option<IpAddr>,
    ) -> Result<Wire, Error> {
        let unspecified = match server {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let source = source.filter(|ip| ip.is_ipv4() == server.is_ipv4());
        let socket = datagram_socket(source.unwrap_or(unspecified), options)?;
        let connected = socket.connect(server).await;
        connected.map_err(|error| Error::connect(server, error))?;
        Ok(Wire::Socket(socket))
    }

    /// An association of another outbound that leads to the server.
    pub(crate) fn through(end: Box<dyn PacketEnd>, server: Destination) -> Wire {
        Wire::Through(end, Answers::of(server))
    }

    /// Ready when a datagram may be sent.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self {
            Wire::Socket(socket) => socket.poll_send_ready(cx).map_err(Error::from),
            Wire::Through(..) => Poll::Ready(Ok(())),
        }
    }

    /// Sends a datagram, for which [`Wire::poll_ready`] has said that it may be.
    ///
    /// # Errors
    /// Of a socket: the datagram is too long, or the server's port is closed to it, or there is no room; it is lost. Of an
    /// association: it is over, or has no room.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Socket(socket) => socket.try_send(bytes),
            Wire::Through(end, answers) => match end.poll_send(cx, bytes, &answers.server) {
                Poll::Ready(Ok(())) => Ok(bytes.len()),
                Poll::Ready(Err(error)) => Err(io::Error::other(error)),
                Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
            },
        }
    }

    /// Writes what waits.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self {
            Wire::Socket(_) => Poll::Ready(Ok(())),
            Wire::Through(end, _) => end.poll_flush(cx),
        }
    }

    /// Says that nothing follows.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) {
        if let Wire::Through(end, _) = self {
            end.finish(cx);
        }
    }

    /// Receives one datagram into `slot`, and says how long it is. `None`: the end.
    pub(crate) fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<Option<usize>, Error>> {
        match self {
            Wire::Socket(socket) => loop {
                if let Some((len, _)) = ready!(poll_socket(cx, socket, slot))? {
                    return Poll::Ready(Ok(Some(len)));
                }
            },
            Wire::Through(end, answers) => loop {
                if !ready!(end.poll_recv(cx, slot))? {
                    return Poll::Ready(Ok(None));
                }
                if slot.peer_mut().is_none_or(|from| answers.include(from)) {
                    return Poll::Ready(Ok(Some(slot.len())));
                }
                slot.clear();
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use sealway_v2ray::Address;

    use super::*;

    /// Datagrams with these senders.
    struct From(VecDeque<Destination>);

    impl PacketEnd for From {
        fn poll_recv(&mut self, _: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
            let next = self.0.pop_front();
            Poll::Ready(Ok(next.map(|from| slot.copy(b"datagram", from)).is_some()))
        }

        fn poll_send(&mut self, _: &mut Context<'_>, _: &[u8], _: &Destination) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn strangers_are_not_heard_through_another_outbound() {
        let at = |text: &str, port| Destination::udp(Address::parse(text).unwrap(), port);
        for (server, from, heard) in [
            ("192.0.2.1", vec![at("192.0.2.1", 53), at("::ffff:192.0.2.1", 53)], 2),
            ("192.0.2.1", vec![at("192.0.2.2", 53), at("192.0.2.1", 54)], 0),
            ("a.example", vec![at("a.example", 53), at("b.example", 53)], 1),
            (
                "a.example",
                vec![at("192.0.2.9", 9), at("192.0.2.1", 53), at("192.0.2.2", 53)],
                1,
            ),
        ] {
            let what = format!("{server}: {from:?}");
            let mut wire = Wire::through(Box::new(From(from.into())), at(server, 53));
            let (mut slot, mut count) = (Slot::default(), 0);
            while poll_fn(|cx| wire.poll_recv(cx, &mut slot)).await.unwrap().is_some() {
                count += 1;
            }
            assert_eq!(count, heard, "{what}");
        }
    }
}
