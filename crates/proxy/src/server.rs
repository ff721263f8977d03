//! A running server: listeners, connections, an end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::Drain;
use tokio::task::JoinSet;

use crate::control::{Control, Running};
use crate::keeper::Keeper;
use crate::listen::{self, Wanted};
use crate::lists::ListSize;
use crate::monitor::Monitor;
use crate::settings::{Listen, Metrics, Settings, SocketOptions};
use crate::stats::Stats;
use crate::{Error, check};

/// A running server. Dropping it stops it at once; [`Server::shutdown`] lets connections finish.
pub struct Server {
    drain: Drain,
    /// What watchers are told.
    monitor: Arc<Monitor>,
    /// Who answers them; it ends with the server.
    watching: JoinSet<()>,
    stats: Arc<Stats>,
    running: Arc<Running>,
    keeper: Option<Arc<Keeper>>,
}

impl Server {
    /// Builds everything that can fail before the first connection, certificates included, and lets go of it again.
    /// Takes no port and makes no file. Must be called within a tokio runtime.
    ///
    /// Gives what each list of a geo file takes that the settings name.
    ///
    /// # Errors
    /// All that is wrong: [`Error::Config`] for what the settings ask for, [`Error::Listen`] for what may pass by
    /// itself, such as an address that the machine does not have now.
    pub fn check(settings: &Settings) -> Result<Vec<ListSize>, Vec<Error>> {
        check::whole(settings)
    }

    /// Binds every listener and begins to serve. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] for what is wrong with the settings; [`Error::Listen`] if an address cannot be bound. Nothing is
    /// left running then.
    pub async fn start(settings: Settings) -> Result<Server, Error> {
        let stats = Arc::new(Stats::default());
        stats.meters().switch(settings.metrics.is_some());
        let monitor = Monitor::new(&stats, settings.metrics.as_ref());
        // Who asks whether the server is ready is told from here on that it is not.
        let watching = watch(&monitor, settings.metrics.as_ref())?;
        let (drain, alive) = Drain::new();
        let keeper = match &settings.store {
            Some(store) => Some(Arc::new(Keeper::open(store, &stats).await?)),
            None => None,
        };
        let running = Running::start(settings, &stats, alive).await?;
        if let Some(keeper) = &keeper {
            keeper.begin(&stats).await;
        }
        monitor.serve(running.engine());
        Ok(Server {
            running,
            drain,
            monitor,
            watching,
            stats,
            keeper,
        })
    }

    /// Addresses that the inbound with this tag listens on, with the ports the system chose for port 0.
    pub fn addresses(&self, tag: &str) -> Vec<SocketAddr> {
        self.running.addresses(tag)
    }

    /// The counters.
    pub fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// What can be changed while it runs.
    pub fn control(&self) -> Control {
        Control::new(&self.stats, &self.running)
    }

    /// Says to whoever asks that new connections are not welcome any more. They are served all the same.
    pub fn leave(&self) {
        self.monitor.state.drain();
    }

    /// Stops accepting, lets connections finish for at most `grace`, then cuts off those that remain. True if none did.
    pub async fn shutdown(self, grace: Duration) -> bool {
        self.shutdown_telling(grace, |_| {}).await
    }

    /// The same, and tells every few seconds how many connections remain.
    pub async fn shutdown_telling(mut self, grace: Duration, tell: impl FnMut(usize)) -> bool {
        self.leave();
        self.running.stop();
        // Files of unix sockets are removed at the end.
        let finished = self.drain.finish_telling(grace, tell).await;
        if let Some(keeper) = self.keeper {
            keeper.finish(&self.stats).await;
        }
        // Up to here watchers have heard how it ends.
        self.watching.shutdown().await;
        finished
    }
}

/// Begins to answer watchers where the settings say.
fn watch(monitor: &Arc<Monitor>, settings: Option<&Metrics>) -> Result<JoinSet<()>, Error> {
    let mut watching = JoinSet::new();
    let wanted = Wanted {
        tasks: 1,
        tcp: true,
        udp: false,
        beside: false,
    };
    if let Some(listen) = settings.and_then(|metrics| metrics.listen.as_ref()) {
        let listen = &Listen::from(listen);
        let sockets = listen::bind(listen, &SocketOptions::default(), wanted).map_err(|source| Error::Listen {
            place: "metrics.listen".to_owned(),
            on: listen::name(listen),
            source,
        })?;
        for socket in sockets {
            watching.spawn(Arc::clone(monitor).listen(socket));
        }
    }
    Ok(watching)
}

#[cfg(test)]
mod tests;
