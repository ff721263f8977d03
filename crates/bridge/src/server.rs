//! A running bridge: a listener, connections, an end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use crate::admission::{Admission, Limits, Refusal};
use crate::origin::Origin;
use crate::rate::Turns;
use crate::session::serve;
use crate::stats::{Stats, add};
use crate::{Error, Settings};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Pause after a failed accept, so that a process out of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What goes wrong with every connection is logged this often at most.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// How far the end has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Running,
    /// Nothing is accepted any more.
    Draining,
    /// Connections are cut off.
    Stopped,
}

/// A running bridge. Dropping it stops it at once; [`Bridge::shutdown`] lets connections finish.
#[derive(Debug)]
pub struct Bridge {
    stage: watch::Sender<Stage>,
    /// Closed when the last connection has ended.
    ended: mpsc::Receiver<()>,
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
        let listener = listen(settings.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stats = Arc::new(Stats::default());
        let (stage, watching) = watch::channel(Stage::Running);
        let (alive, ended) = mpsc::channel(1);
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
            watching,
            alive,
            logged: None,
        };
        tokio::spawn(accepting.run(listener));
        Ok(Bridge {
            stage,
            ended,
            stats,
            address,
        })
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
    pub async fn shutdown(mut self, grace: Duration) -> bool {
        self.stage.send_replace(Stage::Draining);
        let finished = tokio::time::timeout(grace, self.ended.recv()).await.is_ok();
        self.stage.send_replace(Stage::Stopped);
        if !finished {
            let _ = self.ended.recv().await;
        }
        finished
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopped);
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // A port whose connections still fade away may be taken again.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Waits until the end has come to `stages`.
async fn reached(watching: &mut watch::Receiver<Stage>, stages: &[Stage]) {
    // If the bridge itself is gone, so is the reason to go on.
    let _ = watching.wait_for(|now| stages.contains(now)).await;
}

struct Accepting {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    admission: Admission,
    turns: Arc<Turns>,
    watching: watch::Receiver<Stage>,
    /// Held by every connection, so that the end can be waited for.
    alive: mpsc::Sender<()>,
    logged: Option<Instant>,
}

impl Accepting {
    async fn run(mut self, listener: TcpListener) {
        let mut watching = self.watching.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = reached(&mut watching, &[Stage::Draining, Stage::Stopped]) => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((tcp, from)) => self.take(tcp, from),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    if self.may_log() {
                        tracing::error!("cannot accept connections: {error}; trying again until it works");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
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
        let (turns, alive, mut watching) = (Arc::clone(&self.turns), self.alive.clone(), self.watching.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = serve(tcp, from, settings, stats, &turns, &place) => {}
                () = place.taken() => tracing::info!("{from}: it said nothing, and others want its place"),
                () = reached(&mut watching, &[Stage::Stopped]) => {}
            }
            drop(place);
            drop(alive);
        });
    }

    /// The caller drops the connection.
    fn turn_away(&mut self, from: Origin, why: Refusal) {
        add(&self.stats.turned_away, 1);
        if self.may_log() {
            tracing::warn!("connections are turned away, such as one of {from}: {why}");
        }
    }

    fn may_log(&mut self) -> bool {
        let may = self.logged.is_none_or(|last| last.elapsed() >= LOG_PAUSE);
        if may {
            self.logged = Some(Instant::now());
        }
        may
    }
}

/// The client went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
