//! Answers to one client.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use sealway_v2ray::Destination;
use sealway_v2ray::shadowsocks::Key;
use sealway_v2ray::shadowsocks::classic::packet;
use sealway_v2ray::shadowsocks::edition2022::packet::{MAX_OVERHEAD, PacketSealer};
use tokio::net::UdpSocket;

use crate::body::shadowsocks::{Salt, padding};
use crate::clock::Clock;
use crate::inbound::local::Answer;
use crate::{Error, random};

/// How answers are sealed.
pub(super) enum How {
    Classic(Key),
    Edition2022(PacketSealer),
}

/// Answers to one client, of all its flows.
pub(super) struct Answers {
    socket: Arc<UdpSocket>,
    /// Where the client was heard from last: it may move.
    client: Mutex<SocketAddr>,
    how: How,
    clock: Clock,
}

impl Answers {
    pub(super) fn new(socket: Arc<UdpSocket>, client: SocketAddr, how: How, clock: Clock) -> Self {
        Answers {
            socket,
            client: Mutex::new(client),
            how,
            clock,
        }
    }

    /// The client was heard from here.
    pub(super) fn moved(&self, to: SocketAddr) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

impl Answer for Answers {
    fn send(&self, bytes: &[u8], peer: &Destination) -> Result<usize, Error> {
        let mut out = Vec::with_capacity(bytes.len() + MAX_OVERHEAD);
        let from = (&peer.address, peer.port);
        match &self.how {
            How::Classic(key) => packet::seal(key, Salt::draw(key)?.bytes(), from, bytes, &mut out)?,
            How::Edition2022(sealer) => {
                let padding = padding(peer.port, bytes.len())?;
                sealer.seal((self.clock)(), &random::bytes()?, from, padding, bytes, &mut out)?;
            }
        }
        let client = *self.client.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.socket.try_send_to(&out, client)?)
    }
}
