//! Datagrams through a SOCKS 5 server (RFC 1928 section 7).

use std::task::{Context, Poll, ready};

use sealway_v2ray::Destination;
use sealway_v2ray::socks::udp;

use crate::Error;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::{PacketEnd, Slot, Wire};

/// An association with a SOCKS server. It lasts as long as the connection that asked for it.
pub(crate) struct Relayed {
    control: Stream,
    wire: Wire,
    /// The datagram being built.
    out: Vec<u8>,
    traffic: Traffic,
}

impl Relayed {
    /// Datagrams by `wire`, which leads to where the server relays them, for as long as `control` is open.
    pub(crate) fn new(control: Stream, wire: Wire, traffic: Traffic) -> Self {
        Relayed {
            control,
            wire,
            out: Vec::new(),
            traffic,
        }
    }
}

impl PacketEnd for Relayed {
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        // Asked first, so that a datagram that has to wait is not built again and again.
        ready!(self.wire.poll_ready(cx))?;
        self.out.clear();
        udp::write_head(&to.address, to.port, &mut self.out);
        self.out.extend_from_slice(bytes);
        match self.wire.send(cx, &self.out) {
            Ok(sent) => self.traffic.sent(sent),
            // One that is too long with its header, that the server's port is closed to, or that there is no room for, is lost.
            Err(error) => tracing::debug!("datagram to the SOCKS server dropped: {error}"),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.wire.poll_flush(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.wire.finish(cx);
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
            let Some(len) = ready!(self.wire.poll_recv(cx, slot))? else {
                return Poll::Ready(Ok(false));
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
