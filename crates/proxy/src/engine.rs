//! A running configuration: one value. Connections hold it for as long as they need it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sealway_net::sock::Sock;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::unix_time;
use crate::dispatch::{Dispatcher, Origin};
use crate::error::Error;
use crate::inbound::{Inbound, Levels};
use crate::lists::Lists;
use crate::loops::LoopGuard;
use crate::observe::Observer;
use crate::outbound::{Outbound, Surroundings};
use crate::resolver::Resolver;
use crate::roads::{Roads, Ways};
use crate::settings::{Level, Settings};
use crate::stats::{Stats, Traffic};
use crate::transport::{Accepted, Arrival, Many, TRANSPORT};
use crate::upstream;

/// Streams of one connection that are served at a time.
const MAX_STREAMS: usize = 1024;

/// Inbounds, and what they hand their requests to.
pub(crate) struct Engine {
    pub(crate) inbounds: Vec<Arc<Inbound>>,
    dispatcher: Arc<Dispatcher>,
    /// What the server listens on; set when it does.
    pub(crate) loops: Arc<LoopGuard>,
    /// Ways out for whoever stands below the outbounds.
    #[cfg(test)]
    roads: Arc<Roads>,
    /// What the rules know of geo files.
    pub(crate) lists: Arc<Lists>,
    /// What measures outbounds, before it begins.
    observer: Mutex<Option<Observer>>,
    /// What measures outbounds; it ends with the engine.
    measuring: OnceLock<JoinSet<()>>,
    /// Limits of those who have not said who they are.
    base: Level,
}

impl Engine {
    /// Builds everything that can fail before the first connection.
    ///
    /// # Errors
    /// [`Error::Config`] for certificates, tags and users that do not work.
    pub(crate) fn new(settings: &Settings, stats: &Stats) -> Result<Self, Error> {
        Engine::with_lists(settings, stats, Arc::new(Lists::of(settings)))
    }

    /// The same, with lists that may take note of what is missing.
    ///
    /// # Errors
    /// As for [`Engine::new`].
    pub(crate) fn with_lists(settings: &Settings, stats: &Stats, lists: Arc<Lists>) -> Result<Self, Error> {
        let levels = Levels::new(settings);
        let counters = &settings.counters;
        let mut inbounds = Vec::with_capacity(settings.inbounds.len());
        let mut seen = HashSet::new();
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            let place = format!("inbounds[{at}]");
            if !inbound.tag.is_empty() && !seen.insert(inbound.tag.as_str()) {
                let what = format!("two inbounds have the tag {:?}", inbound.tag);
                return Err(Error::config(format!("{place}.tag"), what));
            }
            let inbound = Inbound::new(&place, inbound, (&levels, counters), &lists, stats, unix_time)?;
            inbounds.push(Arc::new(inbound));
        }
        if settings.outbounds.is_empty() {
            return Err(Error::config(
                "outbounds",
                "there is none; add one, for example {\"protocol\": \"freedom\"}",
            ));
        }
        let around = Surroundings {
            resolver: Arc::new(Resolver::new(settings, &lists)?),
            lists,
            loops: Arc::new(LoopGuard::default()),
            roads: Roads::new(settings.outbounds.iter().map(|one| one.tag.clone()).collect()),
            clock: unix_time,
        };
        let mut outbounds = Vec::with_capacity(settings.outbounds.len());
        for (at, outbound) in settings.outbounds.iter().enumerate() {
            let traffic = match outbound.tag.as_str() {
                "" => Traffic::default(),
                tag => stats
                    .traffic("outbound", tag, counters.outbound_uplink, counters.outbound_downlink)
                    .reversed(),
            };
            let place = format!("outbounds[{at}]");
            outbounds.push(Outbound::new(&place, outbound, &around, traffic)?);
        }
        let Surroundings {
            lists,
            resolver,
            loops,
            roads,
            ..
        } = around;
        let dispatcher = Arc::new(Dispatcher::new(settings, outbounds, Arc::clone(&resolver), &lists)?);
        let ways: Arc<dyn Ways> = Arc::clone(&dispatcher) as _;
        roads.set(Arc::downgrade(&ways));
        resolver.set(upstream::all(settings, &resolver, &roads, &loops)?);
        let observer = Observer::new(settings, dispatcher.balancers(), Arc::clone(&roads), resolver)?;
        lists.close();
        Ok(Engine {
            inbounds,
            lists,
            dispatcher,
            loops,
            #[cfg(test)]
            roads,
            observer: Mutex::new(observer),
            measuring: OnceLock::new(),
            base: levels.get(0),
        })
    }

    /// What chooses the outbounds.
    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Begins to measure outbounds, if that is asked for, and to ask the targets of REALITY. Must be called within a tokio runtime.
    pub(crate) fn measure(&self, stats: &Arc<Stats>) {
        for inbound in &self.inbounds {
            inbound.begin();
        }
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(observer) = observer {
            // There is one observer, so it begins once.
            let _ = self.measuring.set(observer.begin(Arc::clone(stats)));
        }
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, inbound: Arc<Inbound>, sock: Sock, listener: Option<SocketAddr>) {
        let origin = inbound.origin(sock.peer(), sock.local());
        let deadline = Instant::now() + self.base.handshake;
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
                self.serve_stream(inbound, accepted, origin, listener, deadline).await;
            }
            Ok(Arrival::Stranger(passing)) => {
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
            let deadline = Instant::now() + self.base.handshake;
            let (engine, inbound) = (Arc::clone(&self), Arc::clone(&inbound));
            streams.spawn(engine.serve_stream(inbound, accepted, origin.clone(), listener, deadline));
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
        deadline: Instant,
    ) {
        let begun = Box::pin(async {
            let request = inbound.take(*accepted, listener, deadline, &mut origin).await?;
            Ok(self.dispatcher.begin(&origin, request).await)
        });
        match begun.await {
            Ok(carry) => self.dispatcher.carry(&origin, carry).await,
            Err(error) => self.dispatcher.rejected(&origin, &error),
        }
    }

    /// Serves a socket for datagrams until the server stops.
    pub(crate) async fn serve_datagrams(self: Arc<Self>, inbound: Arc<Inbound>, socket: UdpSocket) {
        inbound.serve_datagrams(Arc::clone(&self.dispatcher), socket).await;
    }
}

#[cfg(test)]
mod tests;
