//! Where connections come in: each protocol in a module of its own, which makes a [`Request`] of a fresh connection.

mod accounts;
mod dokodemo;
mod fallback;
mod flows;
pub(crate) mod http;
mod local;
mod mux;
mod packet_addr;
pub(crate) mod roster;
mod shadowsocks;
mod socks;
mod transparent;
mod trojan;
mod vless;
mod vmess;

use std::collections::HashMap;
use std::mem::discriminant;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_net::sock::Sock;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::dispatch::{Dispatcher, Origin, Request, Sniffer, User};
use crate::error::{Error, Pending};
use crate::lists::Lists;
use crate::meters::InMeter;
use crate::reality::Reality;
use crate::settings::{self, InboundProtocol, Level, Limits, Settings, SystemCounters};
use crate::stats::{Stats, Traffic};
use crate::stream::Stream;
use crate::tls::certs::Certificates;
use crate::tls::handshake::Agreed;
use crate::transport::{Accepted, Acceptor, Arrival};

use roster::Roll;

/// What an inbound speaks.
trait Protocol: Send + Sync {
    /// Reads what a fresh connection asks for, by its deadline.
    fn take<'a>(&'a self, fresh: Fresh) -> Pending<'a, Request>;

    /// Its users, if it tells them apart.
    fn users(&self) -> Option<&dyn Roll> {
        None
    }

    /// Serves datagrams that come to a socket of the inbound's own, until the server stops.
    fn serve_datagrams<'a>(&'a self, _: Datagrams) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// The protocol that the settings ask for.
fn protocol(settings: &InboundProtocol, users: &Users<'_>) -> Result<Box<dyn Protocol>, Error> {
    Ok(match settings {
        InboundProtocol::Dokodemo(door) => match door.capture {
            Some(capture) => Box::new(transparent::Transparent::new(door, capture, users)),
            None => Box::new(dokodemo::Dokodemo::new(door, users)),
        },
        InboundProtocol::Shadowsocks(shadowsocks) => Box::new(shadowsocks::Shadowsocks::new(shadowsocks, users)?),
        InboundProtocol::Socks(socks) => Box::new(socks::Socks::new(socks, users)?),
        InboundProtocol::Http(http) => Box::new(http::Http::new(http, users)?),
        InboundProtocol::Trojan(trojan) => Box::new(trojan::Trojan::new(trojan, users)?),
        InboundProtocol::Vless(vless) => Box::new(vless::Vless::new(vless, users)?),
        InboundProtocol::Vmess(vmess) => Box::new(vmess::Vmess::new(vmess, users)?),
    })
}

/// A connection that has come in.
struct Fresh {
    stream: Stream,
    origin: Origin,
    /// What TLS agreed on.
    agreed: Agreed,
    /// Bytes of the inbound, for what does not come over the stream.
    traffic: Traffic,
    /// The address that the listener has, for targets that depend on it.
    listener: Option<SocketAddr>,
    /// By when the client must have said what it wants.
    deadline: Instant,
    /// Associations of the inbound that outlive their carriers.
    associations: Arc<mux::Associations>,
}

/// A socket that datagrams come to, and whom they are handed to.
struct Datagrams {
    socket: Arc<UdpSocket>,
    dispatcher: Arc<Dispatcher>,
    /// Who asks, but for the client's address.
    origin: Origin,
    /// Bytes of the inbound.
    traffic: Traffic,
    /// Another inbound took the datagrams up to this time, Unix time in seconds, and nobody knows which.
    since: Option<i64>,
}

/// What protocols are built with, above all the users of one inbound as connections see them.
struct Users<'a> {
    place: &'a str,
    levels: &'a Levels,
    stats: &'a Stats,
    clock: Clock,
    /// The mark of what the inbound sends.
    mark: Option<u32>,
    /// Those of the inbound of the same protocol that stands here.
    before: Option<&'a dyn Roll>,
}

impl<'a> Users<'a> {
    /// For a test of what they are made of.
    #[cfg(test)]
    fn of(levels: &'a Levels, stats: &'a Stats) -> Self {
        Users {
            place: "inbounds[0]",
            levels,
            stats,
            clock: || 0,
            mark: None,
            before: None,
        }
    }

    /// For connections of nobody in particular.
    fn anyone(&self, level: u32) -> Arc<User> {
        Arc::new(User {
            level: self.levels.get(level),
            ..User::default()
        })
    }

    fn wrong(&self, what: impl ToString) -> Error {
        Error::config(format!("{}.settings", self.place), what.to_string())
    }
}

/// Time limits and counters by user level.
#[derive(Clone, Default)]
pub(crate) struct Levels {
    levels: Arc<HashMap<u32, Arc<Level>>>,
    /// Limits of users by their e-mails in lower case.
    limits: Arc<HashMap<String, Limits>>,
}

impl Levels {
    pub(crate) fn new(settings: &Settings) -> Self {
        let each = |(number, level): &(u32, Level)| (*number, Arc::new(*level));
        let own = |(email, limits): &(String, Limits)| (email.to_lowercase(), *limits);
        Levels {
            levels: Arc::new(settings.levels.iter().map(each).collect()),
            limits: Arc::new(settings.limits.iter().map(own).collect()),
        }
    }

    /// Those of a level, of level 0 where it is missing, or the usual ones.
    pub(crate) fn get(&self, level: u32) -> Arc<Level> {
        let found = self.levels.get(&level).or_else(|| self.levels.get(&0));
        found.cloned().unwrap_or_default()
    }

    /// The limits of a user of a level.
    fn limits(&self, email: &str, level: u32) -> Limits {
        let own = self.limits.get(&email.to_lowercase()).copied().unwrap_or_default();
        own.or(self.get(level).limits)
    }
}

/// An inbound, ready to accept.
pub(crate) struct Inbound {
    pub(crate) tag: Arc<str>,
    protocol: Box<dyn Protocol>,
    acceptor: Acceptor,
    traffic: Traffic,
    /// Others than this machine reach it, by what it speaks or by where it listens.
    remote: bool,
    /// The firewall leads to it what is meant for others.
    captures: bool,
    /// Datagrams come from where the client's program sends them.
    is_program: bool,
    /// What is looked for in first bytes.
    sniffer: Option<Arc<Sniffer>>,
    /// Associations that outlive their carriers.
    associations: Arc<mux::Associations>,
    /// How long those may take who have not said who they are.
    pub(crate) handshake: Duration,
    /// How often its certificates are loaded again.
    reload: Option<Duration>,
    /// What is counted of it besides bytes.
    pub(crate) meter: Option<Arc<InMeter>>,
}

impl Inbound {
    /// Builds the lookup of users and loads certificates, if they are not those of the inbound that stood here `before`. Users who
    /// were known there by the same e-mail, protocol and credentials are the same ones.
    ///
    /// # Errors
    /// [`Error::Config`] for certificates and users that do not work.
    pub(crate) fn new(
        place: &str,
        settings: &settings::Inbound,
        (levels, counters): (&Levels, &SystemCounters),
        lists: &Lists,
        stats: &Stats,
        clock: Clock,
        before: Option<(&settings::Inbound, &Inbound)>,
    ) -> Result<Self, Error> {
        let sniffer = settings.sniffing.as_ref();
        let sniffer = sniffer.map(|sniffing| Sniffer::new(place, sniffing, lists));
        let same = before.filter(|(before, _)| discriminant(&before.protocol) == discriminant(&settings.protocol));
        let users = Users {
            place,
            levels,
            stats,
            clock,
            mark: settings.transport.socket.mark,
            before: same.and_then(|(_, inbound)| inbound.protocol.users()),
        };
        let traffic = match settings.tag.as_str() {
            "" => Traffic::default(),
            tag => stats.traffic("inbound", tag, counters.inbound_uplink, counters.inbound_downlink),
        };
        Ok(Inbound {
            tag: settings.tag.as_str().into(),
            protocol: protocol(&settings.protocol, &users)?,
            acceptor: Acceptor::new(
                &format!("{place}.streamSettings"),
                &settings.transport,
                before.map(|(before, inbound)| (&before.transport, &inbound.acceptor)),
            )?,
            traffic,
            remote: settings.is_remote(),
            captures: settings.protocol.capture().is_some(),
            is_program: settings.protocol.shows_programs(),
            sniffer: sniffer.transpose()?.map(Arc::new),
            associations: before
                .map(|(_, before)| Arc::clone(&before.associations))
                .unwrap_or_default(),
            handshake: levels.get(0).handshake,
            reload: settings.transport.tls.as_ref().and_then(|tls| tls.reload),
            meter: stats.meters().inbound(&settings.tag),
        })
    }

    /// Its users, if it tells them apart and they may change.
    pub(crate) fn users(&self) -> Option<&dyn Roll> {
        self.protocol.users().filter(|users| users.is_open())
    }

    /// Its users may take from now on what its settings say.
    pub(crate) fn limit(&self) {
        if let Some(users) = self.protocol.users() {
            users.limit();
        }
    }

    /// Others stand in its place: what is carried for its users whom none of them knows ends.
    pub(crate) fn hand_over(&self, heirs: &[&Inbound]) {
        if let Some(users) = self.protocol.users() {
            let heirs: Vec<_> = heirs.iter().filter_map(|heir| heir.protocol.users()).collect();
            users.hand_over(&heirs);
        }
    }

    /// The certificates of its TLS.
    pub(crate) fn certificates(&self) -> Option<Arc<Certificates>> {
        self.acceptor.certificates.clone()
    }

    /// A client as far as its socket tells.
    pub(crate) fn origin(&self, source: Option<SocketAddr>, local: Option<SocketAddr>) -> Origin {
        Origin {
            inbound: Arc::clone(&self.tag),
            source,
            local,
            remote: self.remote,
            captured: self.captures,
            forwarded: false,
            is_program: self.is_program,
            sniffer: self.sniffer.clone(),
            meter: self.meter.clone(),
        }
    }

    /// Goes up to the protocol, by the deadline.
    pub(crate) async fn accept(
        &self,
        sock: Sock,
        listener: Option<SocketAddr>,
        deadline: Instant,
    ) -> Result<Arrival, Error> {
        self.acceptor
            .accept(sock, self.traffic.clone(), listener, deadline)
            .await
    }

    /// Whether connections borrow the handshake of a target.
    pub(crate) fn has_reality(&self) -> bool {
        self.acceptor.reality.is_some()
    }

    /// Begins what goes on besides connections, but for what the inbound `before` has begun. Must be called within a tokio runtime.
    pub(crate) fn begin(&self, before: Option<&Inbound>) {
        let is_new = |reality: &Arc<Reality>| {
            let before = before.and_then(|before| before.acceptor.reality.as_ref());
            !before.is_some_and(|before| Arc::ptr_eq(before, reality))
        };
        if let Some(reality) = self.acceptor.reality.as_ref().filter(|reality| is_new(reality)) {
            reality.begin();
        }
        let is_new = |certificates: &Arc<Certificates>| {
            let before = before.and_then(|before| before.acceptor.certificates.as_ref());
            !before.is_some_and(|before| Arc::ptr_eq(before, certificates))
        };
        let certificates = self.acceptor.certificates.as_ref();
        if let (Some(certificates), Some(period)) = (certificates.filter(|one| is_new(one)), self.reload) {
            certificates.keep_fresh(period.max(Duration::from_secs(1)));
        }
    }

    /// What a stream asks for. `origin` learns who the client is as soon as that is known.
    pub(crate) async fn take(
        &self,
        accepted: Accepted,
        listener: Option<SocketAddr>,
        deadline: Instant,
        origin: &mut Origin,
    ) -> Result<Request, Error> {
        let Accepted {
            stream,
            source,
            local,
            forwarded,
            agreed,
        } = accepted;
        // Who a server in front says the client is, is also whom the log blames.
        (origin.source, origin.local, origin.forwarded) = (source, local, forwarded);
        origin.remote |= forwarded && is_outside(source);
        let fresh = Fresh {
            stream,
            origin: origin.clone(),
            agreed,
            traffic: self.traffic.clone(),
            listener,
            deadline,
            associations: Arc::clone(&self.associations),
        };
        let request = self.protocol.take(fresh).await?;
        mux::within(request, &self.associations)
    }

    /// Serves a socket for datagrams until the server stops.
    ///
    /// `since`: another inbound had the socket up to this time, Unix time in seconds.
    pub(crate) async fn serve_datagrams(
        &self,
        dispatcher: Arc<Dispatcher>,
        socket: Arc<UdpSocket>,
        since: Option<i64>,
    ) {
        let datagrams = Datagrams {
            dispatcher,
            origin: self.origin(None, socket.local_addr().ok()),
            traffic: self.traffic.clone(),
            socket,
            since,
        };
        if let Err(error) = self.protocol.serve_datagrams(datagrams).await {
            tracing::error!("[{}] {error}", self.tag);
        }
    }
}

/// True for a client that a server in front tells of, if it is not on this machine.
///
/// The socket's own address says nothing of the kind. To a listener on loopback come programs of this machine, from whichever
/// of its addresses they like, and connections that the administrator has redirected there (`REDIRECT`, `DNAT`), with the
/// addresses of the clients they were meant for.
fn is_outside(client: Option<SocketAddr>) -> bool {
    client.is_some_and(|client| !client.ip().to_canonical().is_loopback())
}

/// What is wrong with the users of an inbound.
pub(crate) fn problem(place: &str, settings: &InboundProtocol) -> Option<Error> {
    let users = Users {
        place,
        levels: &Levels::default(),
        stats: &Stats::default(),
        clock: || 0,
        mark: None,
        before: None,
    };
    protocol(settings, &users).err()
}
