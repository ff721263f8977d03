//! A running server: listeners, connections, an end.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::Error;
use crate::dial::{accepted, set_options, unix_address};
use crate::engine::Engine;
use crate::inbound::{Kind, dokodemo};
use crate::settings::{AccessLog, Listen, Settings, SocketOptions, UnixName};
use crate::sock::Sock;
use crate::stats::Stats;

/// Connections that wait to be accepted, per listener.
const BACKLOG: i32 = 4096;
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
    files: Vec<std::path::PathBuf>,
}

/// A bound socket.
enum Bound {
    Tcp(TcpListener),
    Unix(UnixListener),
    Udp(UdpSocket),
}

impl Server {
    /// Builds everything that can fail before the first connection, certificates included, and lets go of it again.
    /// Opens no socket and no log. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] for what is wrong with the settings.
    pub fn check(settings: &Settings) -> Result<(), Error> {
        let settings = Settings {
            access_log: AccessLog::Off,
            ..settings.clone()
        };
        Engine::new(&settings, &Stats::default()).map(drop)
    }

    /// Binds every listener and begins to serve. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Config`] for what is wrong with the settings; [`Error::Listen`] if an address cannot be bound. Nothing is
    /// left running then.
    pub async fn start(settings: Settings) -> Result<Server, Error> {
        let stats = Arc::new(Stats::default());
        let engine = Arc::new(Engine::new(&settings, &stats)?);
        let tasks = std::thread::available_parallelism().map_or(1, usize::from);
        let mut bound = Vec::new();
        let mut addresses: HashMap<String, Vec<SocketAddr>> = HashMap::new();
        let mut files = Vec::new();
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            let (tcp, udp) = match &inbound.protocol {
                crate::settings::InboundProtocol::Dokodemo(dokodemo) => (dokodemo.tcp, dokodemo.udp),
                _ => (true, false),
            };
            for listen in &inbound.listen {
                let options = &inbound.transport.socket;
                let sockets = bind(listen, options, tasks, tcp, udp).map_err(|source| Error::Listen {
                    on: format!("{listen:?}"),
                    source,
                })?;
                if let Listen::Unix(UnixName::Path(path, _)) = listen {
                    files.push(path.clone());
                }
                let own = addresses.entry(inbound.tag.clone()).or_default();
                for socket in sockets {
                    own.extend(match &socket {
                        Bound::Tcp(tcp) => tcp.local_addr().ok(),
                        Bound::Udp(udp) => udp.local_addr().ok(),
                        Bound::Unix(_) => None,
                    });
                    bound.push((at, socket));
                }
                own.dedup();
            }
        }
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
                Bound::Unix(listener) => {
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
            files,
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

impl Drop for Server {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopped);
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
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

fn bind(listen: &Listen, options: &SocketOptions, tasks: usize, tcp: bool, udp: bool) -> io::Result<Vec<Bound>> {
    let address = match listen {
        Listen::Unix(name) => return bind_unix(name).map(|unix| vec![Bound::Unix(unix)]),
        Listen::Port(address) => *address,
        Listen::EveryAddress(port) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port)),
    };
    match bind_ip(address, options, tasks, tcp, udp) {
        // A system without IPv6 still has every IPv4 address.
        Err(_) if matches!(listen, Listen::EveryAddress(_)) => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            bind_ip(address, options, tasks, tcp, udp)
        }
        bound => bound,
    }
}

fn bind_ip(
    mut address: SocketAddr,
    options: &SocketOptions,
    tasks: usize,
    tcp: bool,
    udp: bool,
) -> io::Result<Vec<Bound>> {
    let mut bound = Vec::new();
    // One listener a core: the kernel spreads connections over them, and no core waits for another to accept.
    for _ in 0..if tcp { tasks } else { 0 } {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        // When the system chooses the port, sharing must not be allowed yet: it would choose one that is shared already.
        let given = address.port() != 0;
        socket.set_reuse_address(given)?;
        socket.set_reuse_port(given)?;
        if address.is_ipv6() {
            socket.set_only_v6(options.v6_only)?;
        }
        set_options(SockRef::from(&socket), options)?;
        socket.bind(&address.into())?;
        socket.set_reuse_port(true)?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from_std(socket.into())?;
        // The first one's port is the others' too, also when the system chose it.
        address = listener.local_addr()?;
        bound.push(Bound::Tcp(listener));
    }
    if udp {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(options.v6_only)?;
        }
        socket.bind(&address.into())?;
        bound.push(Bound::Udp(UdpSocket::from_std(socket.into())?));
    }
    Ok(bound)
}

/// Keeps two servers from taking the same socket file at the same moment.
static UNIX_BIND: Mutex<()> = Mutex::new(());

fn bind_unix(name: &UnixName) -> io::Result<UnixListener> {
    let _alone = UNIX_BIND.lock().unwrap_or_else(PoisonError::into_inner);
    if let UnixName::Path(path, _) = name
        && std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    {
        // Left behind by a server that is gone, unless somebody answers.
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind_addr(&unix_address(name)?)?;
    if let UnixName::Path(path, Some(mode)) = name {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))?;
    }
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}
