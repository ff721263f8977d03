//! Datagrams of a SOCKS client, for as long as its connection lives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::sock::unmapped;
use sealway_v2ray::socks::udp;
use sealway_v2ray::{Destination, Network};
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use crate::dispatch::{Dispatcher, Origin, Request, Route, Session, User};
use crate::error::Pending;
use crate::inbound::local::{Datagram, Flow, LocalClient, Reply, Room};
use crate::stats::Traffic;
use crate::stream::Stream;

/// Flows of one association that are served at once. An outbound that reaches every target needs one for all of them,
/// others need one for each.
const MAX_FLOWS: usize = 256;
/// Targets of which one association remembers what the rules said.
const MAX_ROUTES: usize = 1024;

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
        // Every target is asked for: that one of them may go straight out says nothing of the others.
        let route = match routes.get(&to) {
            Some(route) => route.clone(),
            None => {
                if routes.len() >= MAX_ROUTES {
                    routes.clear();
                }
                let route = dispatcher.route(&origin, &to, &user).await;
                routes.insert(to.clone(), route.clone());
                route
            }
        };
        let target = (!route.outbound.is_open_to_all()).then(|| to.clone());
        let Some(datagram) = room.keep(&buffer[payload], to.clone()) else {
            continue;
        };
        let begin = |first| Flow::begin(first, Reply::Socks(Arc::clone(&socket), from), traffic.clone());
        let Some(near) = flows.push(&route, target, datagram, begin) else {
            continue;
        };
        let (dispatcher, origin, user) = (Arc::clone(dispatcher), origin.clone(), Arc::clone(&user));
        tokio::spawn(async move { dispatcher.carry_datagrams(&origin, &route, near, &to, user).await });
    }
}

/// The flows of one association.
#[derive(Default)]
struct Flows {
    // The outbound and the list of a rule are kept alive by whoever holds the engine; their addresses are only names here.
    // What one rule lets pass is nothing to the targets of another.
    flows: HashMap<(usize, usize, Option<Destination>), Flow>,
}

impl Flows {
    /// True if none is carried any more.
    fn are_over(&self) -> bool {
        self.flows.values().all(Flow::is_over)
    }

    /// Hands a datagram to its flow. If that has to be made, the client's end of it is returned. What does not fit is
    /// dropped, as a full socket would.
    fn push(
        &mut self,
        route: &Route,
        target: Option<Destination>,
        mut datagram: Datagram,
        begin: impl FnOnce(Datagram) -> (Flow, Box<LocalClient>),
    ) -> Option<Box<LocalClient>> {
        let exempt = route.exempt.as_ref();
        let exempt = exempt.map_or(0, |exempt| Arc::as_ptr(exempt).cast::<u8>() as usize);
        let key = (Arc::as_ptr(&route.outbound) as usize, exempt, target);
        if let Some(flow) = self.flows.get(&key) {
            datagram = flow.push(datagram)?;
        }
        if self.flows.len() >= MAX_FLOWS {
            self.flows.retain(|_, flow| !flow.is_over());
            if self.flows.len() >= MAX_FLOWS {
                // Those to refused targets carry nothing: they only keep the logs short.
                self.flows.retain(|_, flow| !flow.is_muted());
            }
            if self.flows.len() >= MAX_FLOWS {
                return None;
            }
        }
        let (flow, near) = begin(datagram);
        self.flows.insert(key, flow);
        Some(near)
    }
}
