//! A running server: listeners, connections, an end.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sealway_v2ray::Network;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::check::Parts;
use crate::dial::accepted;
use crate::engine::Engine;
use crate::inbound::{Kind, dokodemo};
use crate::listen::{self, Bound, SocketFile};
use crate::own::{Listener, Own};
use crate::replay;
use crate::settings::{AccessLog, InboundProtocol, Settings};
use crate::sock::Sock;
use crate::stats::Stats;
use crate::tls::provider;
use crate::{Error, sockopt};

/// Pause after a failed accept, so that a process out of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Failed accepts are logged this often at most.
const ACCEPT_LOG: Duration = Duration::from_secs(1);

/// How far the end has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Running,
    /// Nothing is accepted any more.
    Draining,
    /// Connections are cut off.
    Stopped,
}

/// What each task of the server shares.
#[derive(Clone)]
struct Shared {
    /// The running configuration. It can be swapped; connections keep the one they began with.
    engine: Arc<ArcSwap<Engine>>,
    stage: watch::Receiver<Stage>,
    /// Held by every connection, so that the end can be waited for.
    alive: mpsc::Sender<()>,
}

/// A running server. Dropping it stops it at once; [`Server::shutdown`] lets connections finish.
pub struct Server {
    stage: watch::Sender<Stage>,
    ended: mpsc::Receiver<()>,
    stats: Arc<Stats>,
    addresses: HashMap<String, Vec<SocketAddr>>,
    /// Files of unix sockets, removed at the end.
    _files: Vec<SocketFile>,
}

impl Server {
    /// Builds everything that can fail before the first connection, certificates included, and lets go of it again.
    /// Takes no port and makes no file. Must be called within a tokio runtime.
    ///
    /// Returns all that is wrong: [`Error::Config`] for what the settings ask for, [`Error::Listen`] for what may pass by
    /// itself, such as an address that the machine does not have now.
    pub fn check(settings: &Settings) -> Vec<Error> {
        let found = Parts::from(settings).problems();
        if !found.is_empty() {
            return found;
        }
        let mut settings = Settings {
            access_log: AccessLog::Off,
            ..settings.clone()
        };
        for tls in settings.inbounds.iter_mut().filter_map(|i| i.transport.tls.as_mut()) {
            tls.key_log = None;
        }
        for tls in settings.outbounds.iter_mut().filter_map(|o| o.transport.tls.as_mut()) {
            tls.key_log = None;
        }
        Engine::new(&settings, &Stats::default()).err().into_iter().collect()
    }

    /// Binds every listener and begins to serve. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] for what is wrong with the settings; [`Error::Listen`] if an address cannot be bound. Nothing is
    /// left running then.
    pub async fn start(settings: Settings) -> Result<Server, Error> {
        let stats = Arc::new(Stats::default());
        refuse_options(&settings)?;
        let engine = Arc::new(Engine::new(&settings, &stats)?);
        let inbound = settings.inbounds.iter().any(|inbound| inbound.transport.tls.is_some());
        if inbound
            || settings
                .outbounds
                .iter()
                .any(|outbound| outbound.transport.tls.is_some())
        {
            provider::seed();
        }
        let mut protocols = settings.inbounds.iter().map(|inbound| &inbound.protocol);
        if protocols.any(|protocol| matches!(protocol, InboundProtocol::Vmess(_))) {
            // Before anything listens: who is queued by the system meanwhile would come with an id of this second.
            replay::begin().await;
        }
        let tasks = std::thread::available_parallelism().map_or(1, usize::from);
        let mut bound = Vec::new();
        let mut addresses: HashMap<String, Vec<SocketAddr>> = HashMap::new();
        let (mut files, mut listeners) = (Vec::new(), Vec::new());
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            let (tcp, udp) = match &inbound.protocol {
                InboundProtocol::Dokodemo(dokodemo) => (dokodemo.tcp, dokodemo.udp),
                _ => (true, false),
            };
            for listen in &inbound.listen {
                let options = &inbound.transport.socket;
                let sockets = listen::bind(listen, options, tasks, tcp, udp).map_err(|source| Error::Listen {
                    place: format!("inbounds[{at}]"),
                    on: listen::name(listen),
                    source,
                })?;
                let own = addresses.entry(inbound.tag.clone()).or_default();
                for socket in sockets {
                    let (address, network) = match &socket {
                        Bound::Tcp(tcp) => (tcp.local_addr().ok(), Network::Tcp),
                        Bound::Udp(udp) => (udp.local_addr().ok(), Network::Udp),
                        Bound::Unix(..) => (None, Network::Tcp),
                    };
                    own.extend(address);
                    if let (Some(address), true) = (address, Own::is_closed_to_us(inbound)) {
                        let v6_only = options.v6_only;
                        listeners.push(Listener {
                            address,
                            network,
                            v6_only,
                        });
                    }
                    bound.push((at, socket));
                }
                own.dedup();
            }
        }
        listeners.dedup();
        engine.own.set(listeners);
        let (stage, watching) = watch::channel(Stage::Running);
        let (alive, ended) = mpsc::channel(1);
        let shared = Shared {
            engine: Arc::new(ArcSwap::new(Arc::clone(&engine))),
            stage: watching,
            alive,
        };
        for (at, socket) in bound {
            let shared = shared.clone();
            match socket {
                Bound::Tcp(listener) => {
                    let address = listener.local_addr().ok();
                    let next = async move || listener.accept().await.and_then(|(tcp, _)| accepted(tcp));
                    tokio::spawn(accept(shared, at, address, next));
                }
                Bound::Unix(listener, file) => {
                    files.extend(file);
                    let next = async move || listener.accept().await.map(|(unix, _)| Sock::Unix(unix));
                    tokio::spawn(accept(shared, at, None, next));
                }
                Bound::Udp(socket) => {
                    tokio::spawn(datagrams(shared, at, socket));
                }
            }
        }
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            if let Some(period) = inbound.transport.tls.as_ref().and_then(|tls| tls.reload) {
                tokio::spawn(reload(shared.clone(), at, period.max(Duration::from_secs(1))));
            }
        }
        Ok(Server {
            stage,
            ended,
            stats,
            addresses,
            _files: files,
        })
    }

    /// Addresses that the inbound with this tag listens on, with the ports the system chose for port 0.
    pub fn addresses(&self, tag: &str) -> &[SocketAddr] {
        self.addresses.get(tag).map_or(&[], Vec::as_slice)
    }

    /// The counters.
    pub fn stats(&self) -> &Arc<Stats> {
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

/// Options that the kernel refuses would drop every connection of an outbound, so nothing starts with them.
fn refuse_options(settings: &Settings) -> Result<(), Error> {
    let inbounds = settings.inbounds.iter().enumerate();
    let inbounds = inbounds.map(|(at, one)| (format!("inbounds[{at}]"), &one.transport.socket, true));
    let outbounds = settings.outbounds.iter().enumerate();
    let outbounds = outbounds.map(|(at, one)| (format!("outbounds[{at}]"), &one.transport.socket, false));
    let mut found = inbounds
        .chain(outbounds)
        .flat_map(|(place, options, listens)| sockopt::problems(&place, options, listens));
    found.next().map_or(Ok(()), Err)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopped);
    }
}

/// Waits until the server has come to `stage` or further.
async fn reached(watching: &mut watch::Receiver<Stage>, stages: &[Stage]) {
    // If the server itself is gone, so is the reason to go on.
    let _ = watching.wait_for(|now| stages.contains(now)).await;
}

const NOT_ACCEPTING: &[Stage] = &[Stage::Draining, Stage::Stopped];

/// Accepts until told to stop; no error of one connection ends it.
async fn accept<F>(shared: Shared, at: usize, listener: Option<SocketAddr>, next: F)
where
    F: AsyncFn() -> io::Result<Sock>,
{
    let mut watching = shared.stage.clone();
    let mut logged: Option<Instant> = None;
    loop {
        let sock = tokio::select! {
            biased;
            () = reached(&mut watching, NOT_ACCEPTING) => return,
            sock = next() => sock,
        };
        match sock {
            Ok(sock) => {
                let engine = shared.engine.load_full();
                let Some(inbound) = engine.inbounds.get(at).map(Arc::clone) else {
                    continue;
                };
                tokio::spawn(connection(shared.clone(), engine.serve(inbound, sock, listener)));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if logged.is_none_or(|last| last.elapsed() >= ACCEPT_LOG) {
                    tracing::error!("cannot accept connections: {error}; trying again until it works");
                    logged = Some(Instant::now());
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The client went away before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Runs one connection until it ends or the server does.
async fn connection(mut shared: Shared, serve: impl Future<Output = ()>) {
    tokio::select! {
        () = serve => {}
        () = reached(&mut shared.stage, &[Stage::Stopped]) => {}
    }
    drop(shared.alive);
}

async fn datagrams(mut shared: Shared, at: usize, socket: UdpSocket) {
    let engine = shared.engine.load_full();
    let Some(inbound) = engine.inbounds.get(at).map(Arc::clone) else {
        return;
    };
    let Kind::Dokodemo(settings) = &inbound.kind else {
        return;
    };
    let settings = settings.clone();
    tokio::select! {
        () = dokodemo::serve_udp(engine, inbound, settings, Arc::new(socket)) => {}
        () = reached(&mut shared.stage, NOT_ACCEPTING) => {}
    }
}

async fn reload(shared: Shared, at: usize, period: Duration) {
    let mut watching = shared.stage.clone();
    loop {
        tokio::select! {
            () = tokio::time::sleep(period) => {}
            () = reached(&mut watching, NOT_ACCEPTING) => return,
        }
        let engine = shared.engine.load_full();
        let certificates = engine
            .inbounds
            .get(at)
            .and_then(|inbound| inbound.side.certificates.clone());
        if let Some(certificates) = certificates {
            // Files are read where that may take its time.
            let errors = tokio::task::spawn_blocking(move || certificates.reload())
                .await
                .unwrap_or_default();
            for error in errors {
                tracing::warn!("certificate not loaded again, the old one stays: {error}");
            }
        }
    }
}
