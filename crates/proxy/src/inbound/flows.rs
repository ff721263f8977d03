//! Datagrams of one client to many targets: a flow for each that needs one of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealway_v2ray::Destination;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::local::{Datagram, Flow, LocalClient, Reply, Room};
use crate::dispatch::{Dispatcher, FlowWay, KEPT, MAX_FLOWS, MAX_ROUTES, Origin, Route, User};
use crate::log::about_this;
use crate::stats::Traffic;

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

/// What tells flows apart.
#[derive(Eq, Hash, PartialEq)]
struct Key {
    /// That of a route. `None`: the flow of one target, which finds out by itself where it goes.
    way: Option<FlowWay>,
    target: Option<Destination>,
}

impl Key {
    fn of(route: &Route, to: &Destination) -> Key {
        Key {
            way: Some(route.way()),
            target: route.own_target(to),
        }
    }

    fn own(target: &Destination) -> Key {
        Key {
            way: None,
            target: Some(target.clone()),
        }
    }
}

/// What is known of one client.
#[derive(Default)]
struct Known {
    routes: Routes,
    flows: HashMap<Key, Flow>,
}

/// The flows of one client.
#[derive(Clone)]
pub(super) struct Flows {
    dispatcher: Arc<Dispatcher>,
    user: Arc<User>,
    /// Bytes of the inbound.
    traffic: Traffic,
    /// A flow that is found to need none of its own goes over into another.
    known: Arc<Mutex<Known>>,
    /// What clients share: each flow takes one of every one of these.
    limits: Vec<Arc<Semaphore>>,
}

/// A datagram on its way, and how its flow answers.
type Asked = (Datagram, Reply);
/// The client's end of a flow, and its share of the limits.
type Begun = (Box<LocalClient>, Vec<OwnedSemaphorePermit>);

impl Flows {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, user: Arc<User>, traffic: Traffic) -> Self {
        Flows {
            dispatcher,
            user,
            traffic,
            known: Arc::default(),
            limits: Vec::new(),
        }
    }

    /// Bounds its flows together with those of other clients.
    pub(super) fn within(mut self, limits: Vec<Arc<Semaphore>>) -> Self {
        self.limits = limits;
        self
    }

    /// Bounds its flows and what it remembers together with those of other associations of a carrier.
    pub(super) fn sharing(self, shares: &Shares) -> Self {
        self.known().routes.together = Arc::clone(&shares.routes);
        self.within(vec![Arc::clone(&shares.flows)])
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if none is carried any more.
    pub(super) fn are_over(&self) -> bool {
        self.known().flows.values().all(Flow::is_over)
    }

    /// Forgets those that are over, and what the rules said.
    pub(super) fn forget(&mut self) {
        let mut known = self.known();
        known.routes.clear();
        known.flows.retain(|_, flow| !flow.is_over());
        known.flows.shrink_to_fit();
    }

    /// Sends a datagram on its way. `reply` says how its flow answers, if that has to be made.
    pub(super) async fn carry(&mut self, origin: &Origin, datagram: Datagram, reply: Reply) {
        let to = datagram.to().clone();
        // Every target is asked for: that one of them may go straight out says nothing of the others.
        let (route, own) = {
            let known = self.known();
            let own = || known.flows.get(&Key::own(&to)).is_some_and(|flow| !flow.is_over());
            (known.routes.of.get(&to).cloned(), origin.sniffer.is_some() && own())
        };
        let mut asked = (datagram, reply);
        let route = match route {
            Some(route) => route,
            None => {
                let aim = match own {
                    true => None,
                    false => self.dispatcher.glance(origin, &to, asked.0.bytes()),
                };
                let aim = match aim {
                    Some(aim) => aim,
                    None => match self.carry_alone(origin, &to, asked) {
                        None => return,
                        // There is no place for it.
                        Some(back) => {
                            asked = back;
                            match self.dispatcher.glance_in_passing(origin, &to, asked.0.bytes()) {
                                Some(aim) => aim,
                                None => return tracing::debug!("datagram to {to} dropped: there are too many flows"),
                            }
                        }
                    },
                };
                let route = self.dispatcher.route(origin, &aim, &self.user).await;
                self.known().routes.remember(to.clone(), route.clone());
                route
            }
        };
        let begun = self.hand(&mut self.known(), &route, &to, asked);
        if let Ok(Some(begun)) = begun {
            self.spawn(origin, route, to, begun);
        }
    }

    /// Hands a datagram to the flow of a route.
    fn hand(&self, known: &mut Known, route: &Route, to: &Destination, asked: Asked) -> Result<Option<Begun>, Asked> {
        self.push(known, Key::of(route, to), asked, 0)
    }

    /// Carries a flow that has begun.
    fn spawn(&self, origin: &Origin, route: Route, to: Destination, (near, share): Begun) {
        let (dispatcher, origin, user) = (Arc::clone(&self.dispatcher), origin.clone(), Arc::clone(&self.user));
        tokio::spawn(about_this(async move {
            dispatcher.carry_datagrams(&origin, &route, near, &to, user).await;
            drop(share);
        }));
    }

    /// Sends a datagram on its way in a flow of its own, until it is known where that is meant to go: only one that goes
    /// elsewhere stays alone. The datagram is returned if there is no place.
    fn carry_alone(&self, origin: &Origin, to: &Destination, asked: Asked) -> Option<Asked> {
        let (mut near, share) = match self.push(&mut self.known(), Key::own(to), asked, KEPT) {
            Ok(begun) => begun?,
            Err(back) => return Some(back),
        };
        let (to, origin, user) = (to.clone(), origin.clone(), Arc::clone(&self.user));
        let dispatcher = Arc::clone(&self.dispatcher);
        let (traffic, limits) = (self.traffic.clone(), self.limits.clone());
        // When the client has gone its flows end.
        let known = Arc::downgrade(&self.known);
        tokio::spawn(about_this(async move {
            let aim = match dispatcher.watch(&origin, &mut *near, &to, &user).await {
                Ok(aim) if !aim.is_renamed() => aim,
                aim => {
                    dispatcher.carry_aimed(&origin, near, aim, user).await;
                    return drop(share);
                }
            };
            let route = dispatcher.route(&origin, &aim, &user).await;
            drop(share);
            let Some(known) = known.upgrade() else { return };
            let flows = Flows {
                dispatcher,
                user,
                traffic,
                known,
                limits,
            };
            flows.join(&origin, route, &to, *near);
        }));
        None
    }

    /// Lets a flow that was alone go over into that of its route.
    fn join(&self, origin: &Origin, route: Route, to: &Destination, near: LocalClient) {
        // Whatever comes meanwhile comes after what waits.
        let mut known = self.known();
        known.flows.remove(&Key::own(to));
        known.routes.remember(to.clone(), route.clone());
        let (waiting, reply) = near.into_waiting();
        let mut waiting = waiting.into_iter();
        let Some(first) = waiting.next() else { return };
        let Ok(begun) = self.hand(&mut known, &route, to, (first, reply)) else {
            return;
        };
        if let Some(flow) = known.flows.get(&Key::of(&route, to)) {
            for datagram in waiting {
                flow.push(datagram);
            }
        }
        drop(known);
        if let Some(begun) = begun {
            self.spawn(origin, route, to.clone(), begun);
        }
    }

    /// Hands a datagram to its flow. If that has to be made, the client's end of it is returned; `kept` places stay free then.
    /// What does not fit is dropped, as a full socket would.
    ///
    /// # Errors
    /// The datagram, where there is no place for another flow.
    fn push(
        &self,
        known: &mut Known,
        key: Key,
        (mut datagram, reply): Asked,
        kept: usize,
    ) -> Result<Option<Begun>, Asked> {
        #[expect(
            clippy::mutable_key_type,
            reason = "ways are told apart by addresses, not by what is counted there"
        )]
        let flows = &mut known.flows;
        if let Some(flow) = flows.get(&key) {
            match flow.push(datagram) {
                None => return Ok(None),
                Some(back) => datagram = back,
            }
        }
        let most = MAX_FLOWS - kept;
        if flows.len() >= most {
            flows.retain(|_, flow| !flow.is_over());
            if flows.len() >= most {
                // Those to refused targets carry nothing: they only keep the logs short.
                flows.retain(|_, flow| !flow.is_muted());
            }
            if flows.len() >= most {
                return Err((datagram, reply));
            }
        }
        let limits = self.limits.iter();
        let share = limits.map(|limit| match limit.available_permits() > kept {
            true => Arc::clone(limit).try_acquire_owned().ok(),
            false => None,
        });
        let Some(share) = share.collect::<Option<Vec<_>>>() else {
            // Places for flows that carry something, when these have ended.
            flows.retain(|_, flow| !flow.is_muted());
            return Err((datagram, reply));
        };
        let (flow, near) = Flow::begin(datagram, reply, self.traffic.clone());
        flows.insert(key, flow);
        Ok(Some((near, share)))
    }
}
