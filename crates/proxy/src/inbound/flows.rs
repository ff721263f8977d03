//! Datagrams of one client to many targets: a flow for each that needs one of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealway_v2ray::Destination;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::local::{Datagram, Flow, LocalClient, Reply, Room};
use crate::dispatch::{Dispatcher, Origin, Request, Route, User};
use crate::stats::Traffic;

/// Flows of one client that are served at once. An outbound that reaches every target needs one for all of them, others need
/// one for each.
const MAX_FLOWS: usize = 256;
/// Targets of which is remembered what the rules said, for one client.
const MAX_ROUTES: usize = 1024;

/// Flows of all associations of one carrier of a mux that are served at once.
const MAX_FLOWS_OF_CARRIER: usize = 512;
/// Targets of which all associations of a carrier remember what the rules said, before each has to do with a few.
const MAX_ROUTES_OF_CARRIER: usize = 4096;
/// Those few.
const FEW_ROUTES: usize = 16;

/// What the associations of one carrier share.
#[derive(Clone)]
pub(super) struct Shares {
    /// For datagrams on their way to targets.
    pub(super) asked: Room,
    /// For those on their way back, where they wait in a queue.
    pub(super) answers: Room,
    flows: Arc<Semaphore>,
    routes: Arc<AtomicUsize>,
}

impl Shares {
    /// Those of a carrier that has just begun.
    pub(super) fn of_carrier() -> Shares {
        Shares {
            asked: Room::of_carrier(),
            answers: Room::of_carrier(),
            flows: Arc::new(Semaphore::new(MAX_FLOWS_OF_CARRIER)),
            routes: Arc::default(),
        }
    }
}

/// What the rules said of targets, up to a number of them.
#[derive(Default)]
struct Routes {
    of: HashMap<Destination, Route>,
    /// How many all who share this remember.
    together: Arc<AtomicUsize>,
}

impl Routes {
    fn remember(&mut self, to: Destination, route: Route) {
        let most = match self.together.load(Ordering::Relaxed) {
            0..MAX_ROUTES_OF_CARRIER => MAX_ROUTES,
            _ => FEW_ROUTES,
        };
        if self.of.len() >= most {
            self.clear();
        }
        if self.of.insert(to, route).is_none() {
            self.together.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn clear(&mut self) {
        self.together.fetch_sub(self.of.len(), Ordering::Relaxed);
        self.of = HashMap::new();
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What tells flows apart: what one rule lets pass is nothing to the targets of another.
#[derive(Eq, Hash, PartialEq)]
struct Key {
    /// The outbound and the list of a rule. They are kept alive by whoever holds the engine; their addresses are only names
    /// here. `None`: the flow of one target, which finds out by itself where it goes.
    way: Option<(usize, usize)>,
    target: Option<Destination>,
}

impl Key {
    fn of(route: &Route, target: Option<Destination>) -> Key {
        let exempt = route.exempt.as_ref();
        let exempt = exempt.map_or(0, |exempt| Arc::as_ptr(exempt).cast::<u8>() as usize);
        let way = Some((Arc::as_ptr(&route.outbound) as usize, exempt));
        Key { way, target }
    }

    fn own(target: &Destination) -> Key {
        Key {
            way: None,
            target: Some(target.clone()),
        }
    }
}

/// The flows of one client.
pub(super) struct Flows {
    dispatcher: Arc<Dispatcher>,
    user: Arc<User>,
    /// Bytes of the inbound.
    traffic: Traffic,
    routes: Routes,
    flows: HashMap<Key, Flow>,
    /// What clients share: each flow takes one of every one of these.
    limits: Vec<Arc<Semaphore>>,
}

impl Flows {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, user: Arc<User>, traffic: Traffic) -> Self {
        Flows {
            dispatcher,
            user,
            traffic,
            routes: Routes::default(),
            flows: HashMap::new(),
            limits: Vec::new(),
        }
    }

    /// Bounds its flows together with those of other clients.
    pub(super) fn within(mut self, limits: Vec<Arc<Semaphore>>) -> Self {
        self.limits = limits;
        self
    }

    /// Bounds its flows and what it remembers together with those of other associations of a carrier.
    pub(super) fn sharing(mut self, shares: &Shares) -> Self {
        self.routes.together = Arc::clone(&shares.routes);
        self.within(vec![Arc::clone(&shares.flows)])
    }

    /// True if none is carried any more.
    pub(super) fn are_over(&self) -> bool {
        self.flows.values().all(Flow::is_over)
    }

    /// Forgets those that are over, and what the rules said.
    pub(super) fn forget(&mut self) {
        self.routes.clear();
        self.flows.retain(|_, flow| !flow.is_over());
        self.flows.shrink_to_fit();
    }

    /// Sends a datagram on its way. `reply` says how its flow answers, if that has to be made.
    pub(super) async fn carry(&mut self, origin: &Origin, datagram: Datagram, reply: Reply) {
        let to = datagram.to().clone();
        // Every target is asked for: that one of them may go straight out says nothing of the others.
        let route = match self.routes.of.get(&to) {
            Some(route) => route.clone(),
            None => {
                let own = Key::own(&to);
                let known = origin.sniffer.is_some() && self.flows.get(&own).is_some_and(|flow| !flow.is_over());
                let aim = match known {
                    true => None,
                    false => self.dispatcher.glance(origin, &to, datagram.bytes()),
                };
                let Some(aim) = aim else {
                    return self.carry_alone(origin, own, datagram, reply);
                };
                let route = self.dispatcher.route(origin, &aim, &self.user).await;
                self.routes.remember(to.clone(), route.clone());
                route
            }
        };
        let target = (!route.outbound.is_open_to_all(&to)).then(|| to.clone());
        let Some((near, share)) = self.push(Key::of(&route, target), datagram, reply) else {
            return;
        };
        let (dispatcher, origin, user) = (Arc::clone(&self.dispatcher), origin.clone(), Arc::clone(&self.user));
        tokio::spawn(async move {
            dispatcher.carry_datagrams(&origin, &route, near, &to, user).await;
            drop(share);
        });
    }

    /// Sends a datagram on its way in a flow of its own, which is held until it is known where it is meant to go.
    fn carry_alone(&mut self, origin: &Origin, own: Key, datagram: Datagram, reply: Reply) {
        let to = datagram.to().clone();
        let Some((near, share)) = self.push(own, datagram, reply) else {
            return;
        };
        let (dispatcher, origin, user) = (Arc::clone(&self.dispatcher), origin.clone(), Arc::clone(&self.user));
        tokio::spawn(async move {
            dispatcher.serve(&origin, Request::Datagrams { near, to, user }).await;
            drop(share);
        });
    }

    /// Hands a datagram to its flow. If that has to be made, the client's end of it is returned. What does not fit is
    /// dropped, as a full socket would.
    fn push(
        &mut self,
        key: Key,
        mut datagram: Datagram,
        reply: Reply,
    ) -> Option<(Box<LocalClient>, Vec<OwnedSemaphorePermit>)> {
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
        let limits = self.limits.iter();
        let share = limits.map(|limit| Arc::clone(limit).try_acquire_owned().ok());
        let Some(share) = share.collect::<Option<Vec<_>>>() else {
            // Places for flows that carry something, when these have ended.
            self.flows.retain(|_, flow| !flow.is_muted());
            return None;
        };
        let (flow, near) = Flow::begin(datagram, reply, self.traffic.clone());
        self.flows.insert(key, flow);
        Some((near, share))
    }
}
