//! Datagrams through a Shadowsocks server.

use std::ops::Range;
use std::task::{Context, Poll, ready};

use sealway_v2ray::Destination;
use sealway_v2ray::shadowsocks::Key;
use sealway_v2ray::shadowsocks::classic::packet;
use sealway_v2ray::shadowsocks::edition2022::packet::ClientSession;

use crate::body::shadowsocks::{Salt, padding};
use crate::clock::Clock;
use crate::outbound::{Caller, Dialer};
use crate::settings::ShadowsocksOut;
use crate::stats::Traffic;
use crate::udp::{PacketEnd, Slot, Wire};
use crate::{Error, random};

/// How datagrams are sealed and opened.
enum Way {
    Classic(Key),
    Edition2022(Box<ClientSession>),
}

/// An association with a Shadowsocks server, from a port of its own.
pub(super) struct Relayed {
    way: Way,
    wire: Wire,
    /// The datagram being built, or one that has been opened.
    scratch: Vec<u8>,
    clock: Clock,
    traffic: Traffic,
}

impl Relayed {
    pub(super) async fn new(
        settings: &ShadowsocksOut,
        dialer: &Dialer,
        clock: Clock,
        caller: &Caller,
    ) -> Result<Self, Error> {
        let wire = dialer.connector.line.datagrams(&settings.server, caller).await?;
        let keys = &settings.keys;
        Ok(Relayed {
            way: match keys.method().is_2022() {
                true => {
                    let session = u64::from_ne_bytes(random::bytes()?);
                    Way::Edition2022(Box::new(ClientSession::new(keys, session)?))
                }
                false => Way::Classic(keys.own().clone()),
            },
            wire,
            scratch: Vec::new(),
            clock,
            traffic: dialer.traffic.clone(),
        })
    }

    /// Builds a datagram.
    fn seal(&mut self, bytes: &[u8], to: &Destination) -> Result<(), Error> {
        self.scratch.clear();
        let target = (&to.address, to.port);
        match &self.way {
            Way::Classic(key) => packet::seal(key, Salt::draw(key)?.bytes(), target, bytes, &mut self.scratch)?,
            Way::Edition2022(session) => {
                let padding = padding(to.port, bytes.len())?;
                let now = (self.clock)();
                let sealer = session.sealer();
                sealer.seal(now, &random::bytes()?, target, padding, bytes, &mut self.scratch)?;
            }
        }
        Ok(())
    }

    /// Opens a datagram where it lies: whom it comes from, and where the payload is.
    fn open(&mut self, datagram: &mut [u8]) -> Result<(Destination, Range<usize>), Error> {
        match &mut self.way {
            Way::Classic(key) => {
                let (from, at) = packet::open(key, datagram, &mut self.scratch)?;
                let payload = &self.scratch[at..];
                datagram[..payload.len()].copy_from_slice(payload);
                Ok((from, 0..payload.len()))
            }
            Way::Edition2022(session) => Ok(session.open(datagram, (self.clock)())?),
        }
    }
}

impl PacketEnd for Relayed {
    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        // Asked first, so that a datagram that has to wait is not sealed again and again.
        ready!(self.wire.poll_ready(cx))?;
        self.seal(bytes, to)?;
        match self.wire.send(cx, &self.scratch) {
            Ok(sent) => self.traffic.sent(sent),
            // One that is too long with its header, that the server's port is closed to, or that there is no room for, is lost.
            Err(error) => tracing::debug!("datagram to the Shadowsocks server dropped: {error}"),
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
            let Some(len) = ready!(self.wire.poll_recv(cx, slot))? else {
                return Poll::Ready(Ok(false));
            };
            self.traffic.received(len);
            let received = &mut slot.take()[..len];
            match self.open(received) {
                Ok((from, payload)) => {
                    let len = payload.len();
                    received.copy_within(payload, 0);
                    slot.fill(len, from);
                    return Poll::Ready(Ok(true));
                }
                Err(error) => {
                    tracing::debug!("datagram of the Shadowsocks server dropped: {error}");
                    slot.clear();
                }
            }
        }
    }
}
