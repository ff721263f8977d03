//! Datagrams of one client to many targets: a flow for each that needs one of its own.

use std::collections::HashMap;
use std::sync::Arc;

use sealway_v2ray::Destination;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::local::{Datagram, Flow, LocalClient, Reply};
use crate::dispatch::{Dispatcher, Origin, Route, User};
use crate::stats::Traffic;

/// Flows of one client that are served at once. An outbound that reaches every target needs one for all of them, others need
/// one for each.
const MAX_FLOWS: usize = 256;
/// Targets of which is remembered what the rules said, for one client.
const MAX_ROUTES: usize = 1024;

/// The flows of one client.
pub(super) struct Flows {
    dispatcher: Arc<Dispatcher>,
    user: Arc<User>,
    /// Bytes of the inbound.
    traffic: Traffic,
    routes: HashMap<Destination, Route>,
    // The outbound and the list of a rule are kept alive by whoever holds the engine; their addresses are only names here.
    // What one rule lets pass is nothing to the targets of another.
    flows: HashMap<(usize, usize, Option<Destination>), Flow>,
    /// What clients share: each flow takes one of every one of these.
    limits: Vec<Arc<Semaphore>>,
}

impl Flows {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, user: Arc<User>, traffic: Traffic) -> Self {
        Flows {
            dispatcher,
            user,
            traffic,
            routes: HashMap::new(),
            flows: HashMap::new(),
            limits: Vec::new(),
        }
    }

    /// Bounds its flows together with those of other clients.
    pub(super) fn within(mut self, limits: Vec<Arc<Semaphore>>) -> Self {
        self.limits = limits;
        self
    }

    /// True if none is carried any more.
    pub(super) fn are_over(&self) -> bool {
        self.flows.values().all(Flow::is_over)
    }

    /// Forgets those that are over, and what the rules said.
    pub(super) fn forget(&mut self) {
        self.routes = HashMap::new();
        self.flows.retain(|_, flow| !flow.is_over());
        self.flows.shrink_to_fit();
    }

    /// Sends a datagram on its way. `reply` says how its flow answers, if that has to be made.
    pub(super) async fn carry(&mut self, origin: &Origin, datagram: Datagram, reply: Reply) {
        let to = datagram.to().clone();
        // Every target is asked for: that one of them may go straight out says nothing of the others.
        let route = match self.routes.get(&to) {
            Some(route) => route.clone(),
            None => {
                if self.routes.len() >= MAX_ROUTES {
                    self.routes.clear();
                }
                let route = self.dispatcher.route(origin, &to, &self.user).await;
                self.routes.insert(to.clone(), route.clone());
                route
            }
        };
        let target = (!route.outbound.is_open_to_all(&to)).then(|| to.clone());
        let Some((near, share)) = self.push(&route, target, datagram, reply) else {
            return;
        };
        let (dispatcher, origin, user) = (Arc::clone(&self.dispatcher), origin.clone(), Arc::clone(&self.user));
        tokio::spawn(async move {
            dispatcher.carry_datagrams(&origin, &route, near, &to, user).await;
            drop(share);
        });
    }

    /// Hands a datagram to its flow. If that has to be made, the client's end of it is returned. What does not fit is
    /// dropped, as a full socket would.
    fn push(
        &mut self,
        route: &Route,
        target: Option<Destination>,
        mut datagram: Datagram,
        reply: Reply,
    ) -> Option<(Box<LocalClient>, Vec<OwnedSemaphorePermit>)> {
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
        let share = self
            .limits
            .iter()
            .map(|limit| Arc::clone(limit).try_acquire_owned().ok());
        let share = share.collect::<Option<Vec<_>>>()?;
        let (flow, near) = Flow::begin(datagram, reply, self.traffic.clone());
        self.flows.insert(key, flow);
        Some((near, share))
    }
}
