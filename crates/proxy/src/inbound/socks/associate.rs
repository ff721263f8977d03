//! Datagrams of a SOCKS client, for as long as its connection lives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::socks::udp;
use sealway_v2ray::{Destination, Network};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{Inbound, UserRecord, dokodemo};
use crate::Error;
use crate::engine::{Engine, Route};
use crate::sock::unmapped;
use crate::stream::Stream;
use crate::udp::{Datagram, Muted, PacketEnd, Reply, Room};

/// Flows of one association that are served at once. An outbound that reaches every target needs one for all of them,
/// others need one for each.
const MAX_FLOWS: usize = 256;
/// Targets of which one association remembers what the rules said.
const MAX_ROUTES: usize = 1024;

/// An association for datagrams.
pub(crate) struct Association {
    pub(super) control: Stream,
    pub(super) socket: Arc<UdpSocket>,
    /// The only address datagrams are taken from; the port is pinned by the first one.
    pub(super) owner: SocketAddr,
    pub(super) user: Arc<UserRecord>,
    pub(super) local: Option<SocketAddr>,
}

/// Shortest time between two looks at whether flows are over.
const LOOK: Duration = Duration::from_millis(100);

/// Relays datagrams until the connection that asked for it ends, or the client has sent nothing for as long as a connection
/// may be idle and all its flows are over: a client that has vanished does not end its connection.
pub(crate) async fn serve(engine: &Arc<Engine>, inbound: &Arc<Inbound>, association: Association) -> Result<(), Error> {
    let Association {
        mut control,
        socket,
        mut owner,
        user,
        local,
    } = association;
    let mut routes: HashMap<Destination, Route> = HashMap::new();
    let mut flows: Flows = Flows::default();
    let room = Room::new();
    let mut buffer = vec![0; 65_535];
    let idle = user.level.timeouts.idle;
    let mut last = Instant::now();
    let mut timer = Box::pin(sleep_until(last + idle));
    loop {
        let (len, from) = tokio::select! {
            () = timer.as_mut() => {
                let now = Instant::now();
                if now >= last + idle && flows.are_over() {
                    control.leave(&[]).await;
                    return Ok(());
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
                _ => return Ok(()),
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
        to.network = Network::Udp;
        // Every target is asked for: that one of them may go straight out says nothing of the others.
        let route = match routes.get(&to) {
            Some(route) => route.clone(),
            None => {
                if routes.len() >= MAX_ROUTES {
                    routes.clear();
                }
                let route = engine.route(inbound, &to, (Some(from), local), &user.email).await;
                routes.insert(to.clone(), route.clone());
                route
            }
        };
        let target = (!route.outbound.is_open_to_all()).then(|| to.clone());
        let Some(datagram) = room.keep(&buffer[payload], to.clone()) else {
            continue;
        };
        let Some((waiting, muted)) = flows.push(&route, target, datagram) else {
            continue;
        };
        let near = PacketEnd::Local(
            waiting,
            Reply::Socks(Arc::clone(&socket), from),
            inbound.traffic.clone(),
            muted,
        );
        let (engine, inbound, user) = (Arc::clone(engine), Arc::clone(inbound), Arc::clone(&user));
        tokio::spawn(async move {
            engine
                .carry_flow(&inbound, &route, near, to, user, Some(from), local)
                .await
        });
    }
}

/// The flows of one association.
#[derive(Default)]
struct Flows {
    // The outbound and the list of a rule are kept alive by whoever holds the engine; their addresses are only names here.
    // What one rule lets pass is nothing to the targets of another.
    queues: HashMap<(usize, usize, Option<Destination>), (mpsc::Sender<Datagram>, Muted)>,
}

impl Flows {
    /// True if none is carried any more.
    fn are_over(&self) -> bool {
        self.queues.values().all(|(queue, _)| queue.is_closed())
    }

    /// Hands a datagram to its flow. If that has to be made, its end of the queue is returned. What does not fit is dropped,
    /// as a full socket would.
    fn push(
        &mut self,
        route: &Route,
        target: Option<Destination>,
        mut datagram: Datagram,
    ) -> Option<(mpsc::Receiver<Datagram>, Muted)> {
        let named = route
            .named
            .as_ref()
            .map_or(0, |named| Arc::as_ptr(named).cast::<u8>() as usize);
        let flow = (Arc::as_ptr(&route.outbound) as usize, named, target);
        if let Some((queue, _)) = self.queues.get(&flow) {
            match queue.try_send(datagram) {
                Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => return None,
                Err(mpsc::error::TrySendError::Closed(back)) => datagram = back,
            }
        }
        if self.queues.len() >= MAX_FLOWS {
            self.queues.retain(|_, (queue, _)| !queue.is_closed());
            if self.queues.len() >= MAX_FLOWS {
                // Those to refused targets carry nothing: they only keep the logs short.
                self.queues.retain(|_, (_, muted)| !muted.is_set());
            }
            if self.queues.len() >= MAX_FLOWS {
                return None;
            }
        }
        let (queue, waiting) = mpsc::channel(dokodemo::QUEUE);
        let _ = queue.try_send(datagram);
        let muted = Muted::default();
        self.queues.insert(flow, (queue, muted.clone()));
        Some((waiting, muted))
    }
}
