//! A running configuration. It can be changed while it serves: what is the same as before stays, and connections go on with what
//! they began with.

mod next;
pub(crate) mod plan;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sealway_net::sock::Sock;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::unix_time;
use crate::dispatch::table::{self, Table};
use crate::dispatch::{Access, Dispatcher, Origin, Request};
use crate::error::Error;
use crate::inbound::Inbound;
use crate::lists::{ListSize, Lists};
use crate::log::about_new;
use crate::loops::LoopGuard;
use crate::observe::Observer;
use crate::outbound::{Outbound, Surroundings};
use crate::resolver::Resolver;
use crate::roads::{Roads, Ways};
use crate::settings::{RoutingStrategy, Settings};
use crate::stats::Stats;
use crate::transport::{Accepted, Arrival, Many, TRANSPORT};

pub(crate) use next::{How, Next};
use plan::Plan;

/// Streams of one connection that are served at a time.
const MAX_STREAMS: usize = 1024;

/// What stands behind listeners.
pub(crate) struct Engine {
    dispatcher: Arc<Dispatcher>,
    around: Surroundings,
    stats: Arc<Stats>,
    made: Mutex<Made>,
}

/// What there is now, for whoever changes it. Cheap to clone.
#[derive(Clone, Default)]
struct Made {
    plan: Plan,
    /// In the order of the plan.
    inbounds: Vec<Arc<Inbound>>,
    observer: Option<Arc<Observer>>,
    /// Something was made of a plan.
    begun: bool,
}

impl Engine {
    /// Builds everything that can fail before the first connection.
    ///
    /// # Errors
    /// [`Error::Config`] for certificates, tags and users that do not work.
    pub(crate) fn new(settings: &Settings, stats: &Arc<Stats>) -> Result<Self, Error> {
        Engine::with_lists(settings, stats, Arc::new(Lists::of(settings)))
    }

    /// The same, with lists that may take note of what is missing.
    ///
    /// # Errors
    /// As for [`Engine::new`].
    pub(crate) fn with_lists(settings: &Settings, stats: &Arc<Stats>, lists: Arc<Lists>) -> Result<Self, Error> {
        let engine = Engine::empty(stats, lists)?;
        let next = engine.prepare(Plan::of(settings.clone()), How::Strict)?;
        engine.commit(next, false);
        Ok(engine)
    }

    /// One that leads nowhere yet.
    ///
    /// # Errors
    /// None that settings could be blamed for.
    pub(crate) fn empty(stats: &Arc<Stats>, lists: Arc<Lists>) -> Result<Self, Error> {
        let around = Surroundings {
            resolver: Arc::new(Resolver::new(&Settings::default(), &lists)?),
            lists,
            loops: Arc::new(LoopGuard::default()),
            roads: Roads::new(Vec::new()),
            clock: unix_time,
        };
        let parts = table::Parts {
            outbounds: Vec::new(),
            services: Vec::new(),
            missing: vec![Arc::new(Outbound::missing(""))],
            rules: &[],
            by_name: RoutingStrategy::AsIs,
            balancers: &[],
            counted: false,
        };
        let table = Table::new(parts, &around.lists, None)?;
        let access = Access::open(&Settings::default())?;
        let dispatcher = Arc::new(Dispatcher::new(table, access, Arc::clone(&around.resolver)));
        let ways: Arc<dyn Ways> = Arc::clone(&dispatcher) as _;
        around.roads.set(Arc::downgrade(&ways));
        Ok(Engine {
            dispatcher,
            around,
            stats: Arc::clone(stats),
            made: Mutex::default(),
        })
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        // Held for a look or a step: what is made takes its time, and is made of a clone.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is made of now.
    pub(crate) fn plan(&self) -> Plan {
        self.made().plan.clone()
    }

    /// Whether there is anywhere to connect to.
    pub(crate) fn listens(&self) -> bool {
        !self.made().inbounds.is_empty()
    }

    pub(crate) fn inbound(&self, tag: &str) -> Option<Arc<Inbound>> {
        self.made().inbounds.iter().find(|one| &*one.tag == tag).cloned()
    }

    /// What chooses the outbounds.
    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// What the rules know of geo files.
    pub(crate) fn lists(&self) -> &Lists {
        &self.around.lists
    }

    /// What each list of a geo file takes that is named.
    pub(crate) fn list_sizes(&self) -> Vec<ListSize> {
        self.around.lists.sizes()
    }

    /// Keeps outbounds from the listeners of this server.
    pub(crate) fn loops(&self) -> &LoopGuard {
        &self.around.loops
    }

    /// Ways out for whoever stands below the outbounds.
    #[cfg(test)]
    fn roads(&self) -> Arc<Roads> {
        let tags = self.dispatcher.table().tags().into_iter().map(str::to_owned).collect();
        self.around.roads.to(tags)
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, inbound: Arc<Inbound>, sock: Sock, listener: Option<SocketAddr>) {
        let _open = inbound.meter.as_ref().map(|meter| meter.enter());
        let origin = inbound.origin(sock.peer(), sock.local());
        let began = Instant::now();
        let deadline = began + inbound.handshake;
        // What it takes to begin is freed before the long part.
        match Box::pin(inbound.accept(sock, listener, deadline)).await {
            Ok(Arrival::One(accepted)) => {
                // The handshake may have waited for the target of REALITY.
                let after = if inbound.has_reality() {
                    TRANSPORT
                } else {
                    Duration::ZERO
                };
                let deadline = deadline.max(Instant::now() + after);
                self.serve_stream(inbound, accepted, origin, listener, (began, deadline))
                    .await;
            }
            Ok(Arrival::Stranger(passing)) => {
                if let Some(meter) = &inbound.meter {
                    meter.strangers.add();
                }
                if let Err(error) = passing.run().await {
                    tracing::debug!("REALITY: the connection of a stranger ended: {error}");
                }
            }
            Ok(Arrival::Gone(error)) => self.dispatcher.failed(&origin, &error),
            Ok(Arrival::Many(many)) => Box::pin(self.serve_many(inbound, many, &origin, listener)).await,
            Err(error) => self.dispatcher.rejected(&origin, &error),
        }
    }

    /// Serves the streams of a connection, each as a task of its own, until the last has ended. They end with the connection.
    async fn serve_many(
        self: Arc<Self>,
        inbound: Arc<Inbound>,
        mut many: Box<dyn Many>,
        origin: &Origin,
        listener: Option<SocketAddr>,
    ) {
        let mut streams = JoinSet::new();
        loop {
            let mut accepted = match many.next().await {
                Ok(Some(accepted)) => Box::new(accepted),
                Ok(None) => break,
                Err(error) => {
                    self.dispatcher.rejected(origin, &error);
                    break;
                }
            };
            while streams.try_join_next().is_some() {}
            // A client may end streams faster than what they began here ends.
            if streams.len() >= MAX_STREAMS {
                accepted.stream.carrier.reset_on_close();
                continue;
            }
            let began = Instant::now();
            let times = (began, began + inbound.handshake);
            let (engine, inbound) = (Arc::clone(&self), Arc::clone(&inbound));
            streams.spawn(about_new(engine.serve_stream(
                inbound,
                accepted,
                origin.clone(),
                listener,
                times,
            )));
        }
        drop(many);
        while streams.join_next().await.is_some() {}
    }

    /// Serves one stream of a connection to its end.
    async fn serve_stream(
        self: Arc<Self>,
        inbound: Arc<Inbound>,
        accepted: Box<Accepted>,
        mut origin: Origin,
        listener: Option<SocketAddr>,
        (began, deadline): (Instant, Instant),
    ) {
        let begun = Box::pin(async {
            let request = inbound.take(*accepted, listener, deadline, &mut origin).await?;
            match (&inbound.meter, &request) {
                (None, _) => {}
                (Some(meter), Request::Fallback(_)) => meter.strangers.add(),
                (Some(meter), _) => meter.handshake.add(began.elapsed()),
            }
            // Who waits within his header pays for it, not for what comes then.
            Ok(Box::pin(self.dispatcher.begin(&origin, request)).await)
        });
        match begun.await {
            Ok(carry) => self.dispatcher.carry(&origin, carry).await,
            Err(error) => self.dispatcher.rejected(&origin, &error),
        }
    }

    /// Serves a socket for datagrams until the future is dropped. `since`: see [`Inbound::serve_datagrams`].
    pub(crate) async fn serve_datagrams(&self, inbound: &Inbound, socket: Arc<UdpSocket>, since: Option<i64>) {
        inbound
            .serve_datagrams(Arc::clone(&self.dispatcher), socket, since)
            .await;
    }
}

#[cfg(test)]
mod tests;
