//! Datagrams through a SOCKS 5 server (RFC 1928 section 7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll, ready};

use sealway_v2ray::Destination;
use sealway_v2ray::socks::udp;
use tokio::net::UdpSocket;

use crate::Error;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::{PacketEnd, Slot, poll_socket};

/// An association with a SOCKS server. It lasts as long as the connection that asked for it.
pub(crate) struct Relayed {
    control: Stream,
    /// Connected to the server: the system drops what comes from anywhere else.
    socket: UdpSocket,
    /// The datagram being built.
    out: Vec<u8>,
    traffic: Traffic,
}

impl Relayed {
    /// Datagrams by way of the server's address `relay`, for as long as `control` is open.
    pub(crate) async fn new(
        control: Stream,
        relay: SocketAddr,
        source: Option<IpAddr>,
        traffic: Traffic,
    ) -> Result<Self, Error> {
        let unspecified = match relay {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let source = source
            .filter(|ip| ip.is_ipv4() == relay.is_ipv4())
            .unwrap_or(unspecified);
        let socket = UdpSocket::bind(SocketAddr::new(source, 0)).await?;
        socket
            .connect(relay)
            .await
            .map_err(|error| Error::connect(relay, error))?;
        Ok(Relayed {
            control,
            socket,
            out: Vec::new(),
            traffic,
        })
    }
}

impl PacketEnd for Relayed {
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        self.out.clear();
        udp::write_head(&to.address, to.port, &mut self.out);
        self.out.extend_from_slice(bytes);
        match ready!(self.socket.poll_send(cx, &self.out)) {
            Ok(sent) => self.traffic.sent(sent),
            // One that is too long with its header, or that the server's port is closed to, is lost.
            Err(error) => tracing::debug!("datagram to the SOCKS server dropped: {error}"),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        loop {
            match self.control.poll_fill(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(_)) => {
                    // Nothing is said there any more; what comes all the same is thrown away.
                    self.control.open()?;
                    let len = self.control.payload().len();
                    self.control.consume(len);
                    if self.control.has_ended() {
                        return Poll::Ready(Ok(false));
                    }
                    continue;
                }
                Poll::Pending => {}
            }
            let Some((len, _)) = ready!(poll_socket(cx, &self.socket, slot))? else {
                continue;
            };
            self.traffic.received(len);
            let received = &mut slot.take()[..len];
            match udp::decode(received) {
                Ok((from, payload)) => {
                    let len = payload.len();
                    received.copy_within(payload, 0);
                    slot.fill(len, from);
                    return Poll::Ready(Ok(true));
                }
                Err(error) => {
                    tracing::debug!("datagram of the SOCKS server dropped: {error}");
                    slot.clear();
                }
            }
        }
    }
}
