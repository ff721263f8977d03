//! A running relay: a listener, connections, an end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::Drain;
use sealway_net::listen::{self, Seldom};
use tokio::net::TcpListener;

use super::client::{Admission, Shared, receive};
use super::limits::Limits;
use super::stats::{Counters, Stats, add};
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;

/// That connections are turned away is logged this often at most.
const LOG_PAUSE: Duration = Duration::from_secs(60);

/// How often [`Server::run`] looks whether it should end.
const TICK: Duration = Duration::from_millis(100);

/// A relay that listens. It logs no addresses.
///
/// A connection holds one descriptor, a pair in motion four more; the program that runs it sees to it that it may have as many
/// (`ulimit -n`). With none left it copies instead of splicing and accepts nobody.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
    limits: Limits,
    counters: Arc<Counters>,
}

impl Server {
    /// Listens. `[::]` takes connections over IPv4 too.
    ///
    /// # Errors
    /// [`Error::Network`] if the address is not ours or is taken.
    pub fn bind(address: SocketAddr, limits: Limits) -> Result<Self, Error> {
        let failed = |source| Error::Network {
            doing: format!("listening on {address}"),
            source,
        };
        let listener = listen::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server {
            listener,
            address,
            limits,
            counters: Arc::default(),
        })
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counters, to be read at any time.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Serves until `cancel`, on threads of its own, one for each processor. Then nobody is accepted, those who wait are sent
    /// away, and pairs have [`Limits::grace`] to end. Returns what was done in all.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no threads or no timers.
    pub fn run(self, cancel: &Cancel) -> Result<Stats, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("sealway-relay")
            .enable_all()
            .build()
            .map_err(Error::network("starting the relay"))?;
        runtime.block_on(self.serve(async {
            while !cancel.is_set() {
                tokio::time::sleep(TICK).await;
            }
        }))
    }

    /// The same within a tokio runtime with I/O and timers, until `shutdown` is over. Dropping it ends everything at once.
    ///
    /// # Errors
    /// [`Error::Network`] if the runtime cannot watch the listener.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<Stats, Error> {
        let listener = TcpListener::from_std(self.listener).map_err(Error::network("starting the relay"))?;
        let (drain, alive) = Drain::new();
        let grace = self.limits.grace;
        let shared = Arc::new(Shared::new(self.limits, Arc::clone(&self.counters), alive));
        tokio::select! {
            biased;
            () = shutdown => {}
            () = accept(&listener, &shared) => {}
        }
        drop((listener, shared));
        drain.finish(grace).await;
        Ok(self.counters.read())
    }
}

/// Accepts for ever.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut log = Seldom::every(LOG_PAUSE);
    let take = |(tcp, from): (_, SocketAddr)| {
        add(&shared.counters.accepted, 1);
        match Admission::enter(shared, from.ip()) {
            Some(admission) => drop(tokio::spawn(receive(tcp, admission))),
            None => {
                add(&shared.counters.limited, 1);
                if log.may() {
                    tracing::warn!("connections are turned away: too many, in all or of one source");
                }
            }
        }
    };
    listen::accept(|| listener.accept(), take).await;
}
