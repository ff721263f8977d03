//! Listeners, and the inbounds behind them, which can be changed while they listen.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use sealway_net::sock::Sock;
use sealway_net::{Alive, listen as net};
use sealway_v2ray::Network;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use tokio::sync::watch;

use crate::clock::unix_time;
use crate::dial::accepted;
use crate::engine::Engine;
use crate::inbound::Inbound;
use crate::listen::{self, Bound, SocketFile, Wanted};
use crate::log::about_new;
use crate::loops::{Listener, LoopGuard};
use crate::settings::{self, Listen, ServerTransport, SocketOptions};

/// Connections of a listener that closes that are taken out of its queue at most.
const QUEUED: usize = 4096;

/// What a listener has. Whether a target probes silent connections shows to strangers, and most do not within minutes: with
/// REALITY only what the user asks for does.
pub(super) fn listener_options(transport: &ServerTransport) -> SocketOptions {
    let mut options = transport.socket.clone();
    if transport.reality.is_some() && options.keep_alive_idle.is_none() && options.keep_alive_interval.is_none() {
        options.no_keep_alive = true;
    }
    options
}

/// What of an inbound a listener depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    listen: Listen,
    options: SocketOptions,
    tcp: bool,
    udp: bool,
}

impl Place {
    /// The places of an inbound.
    pub(super) fn all(inbound: &settings::Inbound) -> impl Iterator<Item = Place> {
        let (tcp, udp) = inbound.protocol.networks();
        inbound.listen.iter().map(move |listen| Place {
            listen: listen.clone(),
            options: match listen {
                // None of them is about unix sockets.
                Listen::Unix(..) => SocketOptions::default(),
                _ => listener_options(&inbound.transport),
            },
            tcp,
            udp,
        })
    }

    /// The port, and 0 for one that the system chooses, or for none.
    fn port(&self) -> u16 {
        match &self.listen {
            Listen::Port(address) => address.port(),
            Listen::EveryAddress(port) => *port,
            Listen::Unix(..) => 0,
        }
    }

    /// Whether a listener here is one there. The permissions of a unix socket can be changed.
    fn is(&self, other: &Place) -> bool {
        match (&self.listen, &other.listen) {
            (Listen::Unix(own, _), Listen::Unix(other, _)) => own == other,
            _ => self == other,
        }
    }

    /// Binds it, beside those that are to go.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn bind(&self, tag: &str, going: &[Door]) -> io::Result<Vec<Bound>> {
        if let (Listen::Unix(..), true, true) = (&self.listen, self.tcp, self.udp) {
            let name = self.name();
            tracing::warn!("[{tag}] {name} takes streams only: datagrams need a port");
        }
        let wanted = Wanted {
            tasks: std::thread::available_parallelism().map_or(1, usize::from),
            tcp: self.tcp,
            udp: self.udp,
            beside: self.port() != 0 && going.iter().any(|door| door.place.port() == self.port()),
        };
        listen::bind(&self.listen, &self.options, wanted)
    }

    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        listen::name(&self.listen)
    }
}

/// The listeners of one place, which close when this is dropped.
pub(super) struct Door {
    place: Place,
    tag: Arc<str>,
    addresses: Vec<(SocketAddr, Network)>,
    inbound: Arc<ArcSwap<Inbound>>,
    /// Told when another inbound stands behind them.
    changed: watch::Sender<()>,
    /// Sockets of which nobody takes anything yet.
    closed: Vec<Bound>,
    file: Option<SocketFile>,
}

impl Door {
    /// Bound sockets, of which nobody takes anything yet.
    pub(super) fn new(place: Place, bound: Vec<Bound>, inbound: &Arc<Inbound>) -> Door {
        let addresses = bound.iter().filter_map(|socket| match socket {
            Bound::Tcp(tcp) => Some((tcp.local_addr().ok()?, Network::Tcp)),
            Bound::Udp(udp) => Some((udp.local_addr().ok()?, Network::Udp)),
            Bound::Unix(..) => None,
        });
        let mut addresses: Vec<_> = addresses.collect();
        addresses.dedup();
        Door {
            place,
            tag: Arc::clone(&inbound.tag),
            addresses,
            inbound: Arc::new(ArcSwap::new(Arc::clone(inbound))),
            changed: watch::Sender::new(()),
            closed: bound,
            file: None,
        }
    }

    /// Begins to serve who comes, if it has not begun yet.
    pub(super) fn open(&mut self, engine: &Arc<Engine>, alive: &Alive) {
        for socket in self.closed.drain(..) {
            let behind = Behind {
                engine: Arc::clone(engine),
                alive: alive.clone(),
                inbound: Arc::clone(&self.inbound),
                changed: self.changed.subscribe(),
            };
            match socket {
                Bound::Tcp(listener) => {
                    let address = listener.local_addr().ok();
                    tokio::spawn(behind.streams(listener, address));
                }
                Bound::Unix(listener, file) => {
                    self.file = file;
                    tokio::spawn(behind.streams(listener, None));
                }
                Bound::Udp(socket) => drop(tokio::spawn(behind.datagrams(Arc::new(socket)))),
            }
        }
    }

    /// Closes sockets that were bound beside it in vain. Who has come to them is served as here.
    pub(super) fn relieve(&self, place: Place, bound: Vec<Bound>, engine: &Arc<Engine>, alive: &Alive) {
        Door::new(place, bound, &self.inbound.load()).open(engine, alive);
    }

    /// Whether it listens where this place is.
    pub(super) fn is_at(&self, place: &Place) -> bool {
        self.place.listen == place.listen
    }

    /// Whether it may stay for an inbound with this tag that listens here. What the system chose stays with whom it was chosen for.
    pub(super) fn fits(&self, place: &Place, tag: &str) -> bool {
        let is_named = !matches!(place.listen, Listen::Port(_) | Listen::EveryAddress(_)) || place.port() != 0;
        self.place.is(place) && (*self.tag == *tag || is_named)
    }

    /// Puts an inbound behind it, for those who come from now on.
    pub(super) fn lead_to(&mut self, place: Place, inbound: &Arc<Inbound>) {
        if let (Some(file), &Listen::Unix(_, Some(mode))) = (&self.file, &place.listen)
            && self.place != place
            && let Err(error) = file.permit(mode)
        {
            tracing::error!("{}: its permissions stay as they were: {error}", place.name());
        }
        self.place = place;
        if !Arc::ptr_eq(&self.inbound.load(), inbound) {
            self.tag = Arc::clone(&inbound.tag);
            self.inbound.store(Arc::clone(inbound));
            self.changed.send_replace(());
        }
    }

    /// Addresses that it listens on.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().map(|(address, _)| *address)
    }

    /// What nothing of ours is to be sent to.
    pub(super) fn guarded(&self, inbound: &settings::Inbound) -> Vec<Listener> {
        let listeners = self.addresses.iter().map(|(address, network)| Listener {
            address: *address,
            network: *network,
            v6_only: self.place.options.v6_only,
        });
        let guarded = LoopGuard::is_closed_to_us(inbound);
        listeners.filter(|_| guarded).collect()
    }
}

/// Takes streams out of the queue of a listener.
trait Queue: Send + Sync + 'static {
    /// Waits for the next.
    fn next(&self) -> impl Future<Output = io::Result<Sock>> + Send;

    /// Those that are there, of a listener that closes.
    fn rest(self) -> Vec<Sock>;
}

impl Queue for TcpListener {
    async fn next(&self) -> io::Result<Sock> {
        self.accept().await.and_then(|(tcp, _)| accepted(tcp))
    }

    fn rest(self) -> Vec<Sock> {
        let Ok(listener) = self.into_std() else {
            return Vec::new();
        };
        let next = || {
            let (tcp, _) = listener.accept().ok()?;
            tcp.set_nonblocking(true).ok()?;
            TcpStream::from_std(tcp).and_then(accepted).ok()
        };
        std::iter::from_fn(next).take(QUEUED).collect()
    }
}

impl Queue for UnixListener {
    async fn next(&self) -> io::Result<Sock> {
        self.accept().await.map(|(unix, _)| Sock::Unix(unix))
    }

    fn rest(self) -> Vec<Sock> {
        let Ok(listener) = self.into_std() else {
            return Vec::new();
        };
        let next = || {
            let (unix, _) = listener.accept().ok()?;
            unix.set_nonblocking(true).ok()?;
            UnixStream::from_std(unix).map(Sock::Unix).ok()
        };
        std::iter::from_fn(next).take(QUEUED).collect()
    }
}

/// What a task of a listener knows.
struct Behind {
    engine: Arc<Engine>,
    alive: Alive,
    inbound: Arc<ArcSwap<Inbound>>,
    changed: watch::Receiver<()>,
}

impl Behind {
    fn serve(&self, sock: Sock, listener: Option<SocketAddr>) {
        let (alive, engine) = (self.alive.clone(), Arc::clone(&self.engine));
        // What is passed on is held again by each that passes it.
        let serving = about_new(Box::pin(engine.serve(self.inbound.load_full(), sock, listener)));
        tokio::spawn(async move { alive.run(serving).await });
    }

    /// Accepts until the door closes or the server stops; no error of one connection ends it.
    async fn streams(self, listener: impl Queue, address: Option<SocketAddr>) {
        let mut changed = self.changed.clone();
        let accepting = async {
            tokio::select! {
                biased;
                () = async { while changed.changed().await.is_ok() {} } => {}
                () = net::accept(|| listener.next(), |sock| self.serve(sock, address)) => {}
            }
        };
        if self.alive.accepting(accepting).await.is_some() {
            // Who has come already is not sent away.
            for sock in listener.rest() {
                self.serve(sock, address);
            }
        }
    }

    /// Serves datagrams until the door closes or the server stops.
    async fn datagrams(mut self, socket: Arc<UdpSocket>) {
        let mut since = None;
        loop {
            let inbound = self.inbound.load_full();
            let serving = async {
                self.engine.serve_datagrams(&inbound, Arc::clone(&socket), since).await;
                std::future::pending().await
            };
            let changed = async {
                tokio::select! {
                    changed = self.changed.changed() => changed.is_ok(),
                    never = serving => never,
                }
            };
            match self.alive.accepting(changed).await {
                Some(true) => since = Some(unix_time()),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
