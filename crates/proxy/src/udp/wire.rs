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
    /// Through another outbound, to this server.
    Through(Box<dyn PacketEnd>, Destination),
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
        Wire::Through(end, server)
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
            Wire::Through(end, server) => match end.poll_send(cx, bytes, server) {
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
            Wire::Through(end, _) => {
                let came = ready!(end.poll_recv(cx, slot))?;
                Poll::Ready(Ok(came.then(|| slot.len())))
            }
        }
    }
}
