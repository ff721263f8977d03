//! A running relay: a listener, connections, an end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use super::limits::Limits;
use super::stats::{Counters, Stats, add};
use super::visit::{Guest, Shared, Stage, receive};
use crate::Error;
use crate::cancel::Cancel;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Pause after a failed accept, so that a process out of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What goes wrong with every connection is logged this often at most.
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
        let listener = listen(address).map_err(failed)?;
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
        let (stage, watching) = watch::channel(Stage::Running);
        let (alive, mut ended) = mpsc::channel(1);
        let grace = self.limits.grace;
        let shared = Arc::new(Shared::new(self.limits, Arc::clone(&self.counters), watching));
        tokio::select! {
            biased;
            () = shutdown => {}
            () = accept(&listener, &shared, alive) => {}
        }
        drop(listener);
        stage.send_replace(Stage::Draining);
        if tokio::time::timeout(grace, ended.recv()).await.is_err() {
            stage.send_replace(Stage::Stopped);
            let _ = ended.recv().await;
        }
        Ok(self.counters.read())
    }
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A port whose connections still fade away may be taken again.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts for ever. Every connection holds `alive`, so that the end can be waited for.
async fn accept(listener: &TcpListener, shared: &Arc<Shared>, alive: mpsc::Sender<()>) {
    let mut logged: Option<Instant> = None;
    let mut may_log = || {
        let may = logged.is_none_or(|last| last.elapsed() >= LOG_PAUSE);
        if may {
            logged = Some(Instant::now());
        }
        may
    };
    loop {
        match listener.accept().await {
            Ok((tcp, from)) => {
                add(&shared.counters.accepted, 1);
                match Guest::enter(shared, from.ip(), alive.clone()) {
                    Some(guest) => drop(tokio::spawn(receive(tcp, guest))),
                    None => {
                        add(&shared.counters.limited, 1);
                        if may_log() {
                            tracing::warn!("connections are turned away: too many, in all or of one source");
                        }
                    }
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if may_log() {
                    tracing::error!("cannot accept connections: {error}; trying again until it works");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The client went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | ConnectionRefused | Interrupted
    )
}
