//! A running bridge: a listener, connections, an end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_net::listen::{self, Seldom};
use sealway_net::{Alive, Drain};
use tokio::net::{TcpListener, TcpStream};

use crate::admission::{Admission, Limits, Refusal};
use crate::origin::Origin;
use crate::rate::Turns;
use crate::session::serve;
use crate::stats::{Stats, add};
use crate::{Error, Settings};

/// That connections are turned away is logged this often at most.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// A running bridge. Dropping it stops it at once; [`Bridge::shutdown`] lets connections finish.
#[derive(Debug)]
pub struct Bridge {
    drain: Drain,
    stats: Arc<Stats>,
    address: SocketAddr,
}

impl Bridge {
    /// Listens, and serves from then on. Must be called within a tokio runtime with I/O and timers.
    ///
    /// The other side is not looked for before the first connection.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let failed = |source| Error::Listen {
            on: settings.listen,
            source,
        };
        let listener = listen::bind(settings.listen).and_then(TcpListener::from_std);
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stats = Arc::new(Stats::default());
        let (drain, alive) = Drain::new();
        // Where one address may have all places, as behind Tor, addresses tell nobody apart.
        let one_for_all = settings.connections_per_address >= settings.connections;
        let limits = Limits {
            connections: settings.connections,
            per_address: settings.connections_per_address,
            per_address_per_second: match one_for_all {
                true => settings.handshakes_per_second,
                false => settings.connections_per_address_per_second,
            },
        };
        let accepting = Accepting {
            admission: Admission::new(limits, Instant::now()),
            turns: Arc::new(Turns::new(settings.handshakes_per_second)),
            settings: Arc::new(settings),
            stats: Arc::clone(&stats),
            alive,
            log: Seldom::every(LOG_PAUSE),
        };
        tokio::spawn(accepting.run(listener));
        Ok(Bridge { drain, stats, address })
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counters.
    pub const fn stats(&self) -> &Arc<Stats> {
        &self.stats
    }

    /// Stops accepting, lets connections finish for at most `grace`, then cuts off those that remain. True if none did.
    pub async fn shutdown(self, grace: Duration) -> bool {
        self.drain.finish(grace).await
    }
}

struct Accepting {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    admission: Admission,
    turns: Arc<Turns>,
    alive: Alive,
    log: Seldom,
}

impl Accepting {
    async fn run(mut self, listener: TcpListener) {
        let alive = self.alive.clone();
        let accepting = listen::accept(|| listener.accept(), |(tcp, from)| self.take(tcp, from));
        alive.accepting(accepting).await;
    }

    fn take(&mut self, tcp: TcpStream, from: SocketAddr) {
        add(&self.stats.accepted, 1);
        let origin = Origin::of(from.ip());
        let (place, evicted) = match self.admission.enter(origin, Instant::now()) {
            Ok(entered) => entered,
            Err(why) => return self.turn_away(origin, why),
        };
        if evicted {
            add(&self.stats.evicted, 1);
        }
        let (settings, stats) = (Arc::clone(&self.settings), Arc::clone(&self.stats));
        let (turns, alive) = (Arc::clone(&self.turns), self.alive.clone());
        tokio::spawn(async move {
            let connection = async {
                tokio::select! {
                    () = serve(tcp, from, settings, stats, &turns, &place) => {}
                    () = place.taken() => tracing::info!("{from}: it said nothing, and others want its place"),
                }
            };
            alive.run(connection).await;
            drop(place);
        });
    }

    /// The caller drops the connection.
    fn turn_away(&mut self, from: Origin, why: Refusal) {
        add(&self.stats.turned_away, 1);
        if self.log.may() {
            tracing::warn!("connections are turned away, such as one of {from}: {why}");
        }
    }
}
