//! Datagrams of a SOCKS client, for as long as its connection lives.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::sock::unmapped;
use sealway_v2ray::Network;
use sealway_v2ray::socks::udp;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use crate::dispatch::{Dispatcher, Origin, Request, Session, User};
use crate::error::Pending;
use crate::inbound::flows::Flows;
use crate::inbound::local::{Reply, Room};
use crate::stats::Traffic;
use crate::stream::Stream;

/// An association for datagrams.
pub(super) struct Association {
    pub(super) control: Stream,
    pub(super) socket: Arc<UdpSocket>,
    /// The only address datagrams are taken from; the port is pinned by the first one.
    pub(super) owner: SocketAddr,
    pub(super) user: Arc<User>,
    /// Bytes of the inbound.
    pub(super) traffic: Traffic,
}

impl Session for Association {
    fn user(&self) -> &User {
        &self.user
    }

    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>> {
        Box::pin(async move {
            relay(*self, &dispatcher, origin).await;
            Ok(None)
        })
    }
}

/// Shortest time between two looks at whether flows are over.
const LOOK: Duration = Duration::from_millis(100);

/// Relays datagrams until the connection that asked for it ends, or the client has sent nothing for as long as a connection
/// may be idle and all its flows are over: a client that has vanished does not end its connection.
async fn relay(association: Association, dispatcher: &Arc<Dispatcher>, mut origin: Origin) {
    let Association {
        mut control,
        socket,
        mut owner,
        user,
        traffic,
    } = association;
    let room = Room::new();
    let mut buffer = vec![0; 65_535];
    let idle = user.level.timeouts.idle;
    let mut flows = Flows::new(Arc::clone(dispatcher), user, traffic);
    let mut last = Instant::now();
    let mut timer = Box::pin(sleep_until(last + idle));
    loop {
        let (len, from) = tokio::select! {
            () = timer.as_mut() => {
                let now = Instant::now();
                if now >= last + idle && flows.are_over() {
                    control.leave(&[]).await;
                    return;
                }
                // Flows have the same limit, each from its own last datagram.
                timer.as_mut().reset((last + idle).max(now + LOOK.max(idle / 8)));
                continue;
            }
            received = socket.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                // The answer that a port of the client is closed; the association lives as long as its connection.
                Err(_) => continue,
            },
            more = control.more() => match more {
                Ok(true) => {
                    let len = control.payload().len();
                    control.consume(len);
                    last = Instant::now();
                    continue;
                }
                _ => return,
            },
        };
        let from = unmapped(from);
        if from.ip() != owner.ip() || owner.port() != 0 && owner.port() != from.port() {
            continue;
        }
        let Ok((mut to, payload)) = udp::decode(&buffer[..len]) else {
            continue;
        };
        last = Instant::now();
        owner.set_port(from.port());
        origin.source = Some(from);
        to.network = Network::Udp;
        let Some(datagram) = room.keep(&buffer[payload], to) else {
            continue;
        };
        flows
            .carry(&origin, datagram, Reply::Socks(Arc::clone(&socket), from))
            .await;
    }
}
