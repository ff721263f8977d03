//! A running server: listeners, connections, an end.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use sealway_net::sock::Sock;
use sealway_net::{Alive, Drain, listen as net};
use sealway_v2ray::Network;
use tokio::net::UdpSocket;

use crate::dial::accepted;
use crate::dns::Dns;
use crate::engine::Engine;
use crate::listen::{self, Bound, SocketFile};
use crate::lists::{GeoLists, ListSize, Lists};
use crate::loops::{Listener, LoopGuard};
use crate::replay;
use crate::settings::{
    AccessLog, DomainMatch, InboundProtocol, IpMatch, OutboundProtocol, Parts, ServerTransport, Settings,
    ShadowsocksUsers, SocketOptions,
};
use crate::stats::Stats;
use crate::tls::provider;
use crate::{Error, loops, sockopt};

/// What each task of the server shares.
#[derive(Clone)]
struct Shared {
    /// The running configuration. It can be swapped; connections keep the one they began with.
    engine: Arc<ArcSwap<Engine>>,
    alive: Alive,
}

/// Every list of a geo file that cannot be had, whoever names it, and whether or not the engine came so far.
fn missing(settings: &Settings, lists: &Lists) -> Vec<Error> {
    // What else is wrong is told by those whom it belongs to; here only what is noted counts.
    let names = |conditions: &[DomainMatch]| drop(lists.names("", conditions));
    let ips = |conditions: &[IpMatch]| drop(lists.addresses("", conditions));
    for rule in &settings.rules {
        names(&rule.domains);
        ips(&rule.ips);
        ips(&rule.sources);
        ips(&rule.locals);
    }
    for sniffing in settings.inbounds.iter().filter_map(|inbound| inbound.sniffing.as_ref()) {
        names(&sniffing.domains_excluded);
        ips(&sniffing.ips_excluded);
    }
    for outbound in &settings.outbounds {
        match &outbound.protocol {
            OutboundProtocol::Freedom(freedom) => freedom.final_rules.iter().for_each(|rule| ips(&rule.ips)),
            OutboundProtocol::Dns(dns) => {
                for rule in &dns.rules {
                    let domains: Vec<_> = rule.domains.0.iter().map(|one| one.value.clone()).collect();
                    names(&domains);
                }
            }
            _ => {}
        }
    }
    drop(Dns::new(&settings.dns, lists));
    lists.noted()
}

/// A running server. Dropping it stops it at once; [`Server::shutdown`] lets connections finish.
pub struct Server {
    drain: Drain,
    stats: Arc<Stats>,
    lists: Arc<Lists>,
    addresses: HashMap<String, Vec<SocketAddr>>,
    /// Files of unix sockets, removed at the end.
    _files: Vec<SocketFile>,
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
        let mut found = Parts::from(settings).problems();
        let lists = Arc::new(Lists::noting(settings));
        if !found.is_empty() {
            found.extend(missing(settings, &lists));
            return Err(found);
        }
        let mut settings = Settings {
            access_log: AccessLog::Off,
            ..settings.clone()
        };
        for tls in settings.inbounds.iter_mut().filter_map(|i| i.transport.tls.as_mut()) {
            tls.key_log = None;
        }
        for tls in settings.outbounds.iter_mut().flat_map(|o| o.transport.tls_mut()) {
            tls.key_log = None;
        }
        for reality in settings
            .inbounds
            .iter_mut()
            .filter_map(|i| i.transport.reality.as_mut())
        {
            reality.key_log = None;
        }
        for reality in settings
            .outbounds
            .iter_mut()
            .filter_map(|o| o.transport.reality.as_mut())
        {
            reality.key_log = None;
        }
        found.extend(Engine::with_lists(&settings, &Stats::default(), Arc::clone(&lists)).err());
        found.extend(missing(&settings, &lists));
        match found.is_empty() {
            true => Ok(lists.sizes()),
            false => Err(found),
        }
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
        let inbound = settings
            .inbounds
            .iter()
            .any(|inbound| inbound.transport.tls.is_some() || inbound.transport.reality.is_some());
        if inbound
            || settings
                .outbounds
                .iter()
                .any(|outbound| outbound.transport.tls.is_some())
        {
            provider::seed();
        }
        let mut protocols = settings.inbounds.iter().map(|inbound| &inbound.protocol);
        let timed = |protocol: &InboundProtocol| match protocol {
            InboundProtocol::Vmess(_) => true,
            InboundProtocol::Shadowsocks(shadowsocks) => !matches!(shadowsocks.users, ShadowsocksUsers::Classic(_)),
            _ => false,
        };
        let mut reality = settings
            .inbounds
            .iter()
            .filter_map(|inbound| inbound.transport.reality.as_ref());
        if protocols.any(timed) || reality.any(|reality| reality.max_time_diff.is_some()) {
            // Before anything listens: who is queued by the system meanwhile would come with an id of this second.
            replay::begin().await;
        }
        if settings
            .inbounds
            .iter()
            .any(|inbound| inbound.protocol.capture().is_some())
        {
            loops::own::watch();
        }
        let tasks = std::thread::available_parallelism().map_or(1, usize::from);
        let mut bound = Vec::new();
        let mut addresses: HashMap<String, Vec<SocketAddr>> = HashMap::new();
        let (mut files, mut listeners) = (Vec::new(), Vec::new());
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            let (tcp, udp) = inbound.protocol.networks();
            for listen in &inbound.listen {
                let options = &listener_options(&inbound.transport);
                if let (crate::settings::Listen::Unix(_), true, true) = (listen, tcp, udp) {
                    let name = listen::name(listen);
                    tracing::warn!("[{}] {name} takes streams only: datagrams need a port", inbound.tag);
                }
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
                    if let (Some(address), true) = (address, LoopGuard::is_closed_to_us(inbound)) {
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
        engine.loops.set(listeners);
        engine.measure(&stats);
        let (drain, alive) = Drain::new();
        let shared = Shared {
            engine: Arc::new(ArcSwap::new(Arc::clone(&engine))),
            alive,
        };
        for (at, socket) in bound {
            let shared = shared.clone();
            match socket {
                Bound::Tcp(listener) => {
                    let address = listener.local_addr().ok();
                    tokio::spawn(async move {
                        let next = async || listener.accept().await.and_then(|(tcp, _)| accepted(tcp));
                        accept(shared, at, address, next).await;
                    });
                }
                Bound::Unix(listener, file) => {
                    files.extend(file);
                    tokio::spawn(async move {
                        let next = async || listener.accept().await.map(|(unix, _)| Sock::Unix(unix));
                        accept(shared, at, None, next).await;
                    });
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
            drain,
            stats,
            lists: Arc::clone(&engine.lists),
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

    /// The lists of geo files that the configuration names.
    pub fn lists(&self) -> GeoLists {
        GeoLists(Arc::clone(&self.lists))
    }

    /// Stops accepting, lets connections finish for at most `grace`, then cuts off those that remain. True if none did.
    pub async fn shutdown(self, grace: Duration) -> bool {
        self.drain.finish(grace).await
    }
}

/// What a listener has. Whether a target probes silent connections shows to strangers, and most do not within minutes: with REALITY
/// only what the user asks for does.
fn listener_options(transport: &ServerTransport) -> SocketOptions {
    let mut options = transport.socket.clone();
    if transport.reality.is_some() && options.keep_alive_idle.is_none() && options.keep_alive_interval.is_none() {
        options.no_keep_alive = true;
    }
    options
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

/// Accepts until told to stop; no error of one connection ends it.
async fn accept<F>(shared: Shared, at: usize, listener: Option<SocketAddr>, next: impl FnMut() -> F)
where
    F: Future<Output = io::Result<Sock>>,
{
    let serve = |sock| {
        let engine = shared.engine.load_full();
        if let Some(inbound) = engine.inbounds.get(at).map(Arc::clone) {
            let (alive, serving) = (shared.alive.clone(), engine.serve(inbound, sock, listener));
            tokio::spawn(async move { alive.run(serving).await });
        }
    };
    shared.alive.accepting(net::accept(next, serve)).await;
}

async fn datagrams(shared: Shared, at: usize, socket: UdpSocket) {
    let engine = shared.engine.load_full();
    let Some(inbound) = engine.inbounds.get(at).map(Arc::clone) else {
        return;
    };
    let serving = engine.serve_datagrams(inbound, socket);
    shared.alive.accepting(serving).await;
}

async fn reload(shared: Shared, at: usize, period: Duration) {
    while shared.alive.accepting(tokio::time::sleep(period)).await.is_some() {
        let engine = shared.engine.load_full();
        let certificates = engine.inbounds.get(at).and_then(|inbound| inbound.certificates());
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

#[cfg(test)]
mod tests;
