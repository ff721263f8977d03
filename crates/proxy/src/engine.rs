//! A running configuration: one value. Connections hold it for as long as they need it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use sealway_v2ray::Destination;
use tokio::time::Instant;

use crate::Error;
use crate::access::{Access, Chosen, Client};
use crate::guard::Named;
use crate::hold::Held;
use crate::inbound::{self, Fresh, Inbound, Kind, Taken, UserRecord, http};
use crate::names::Names;
use crate::outbound::{Caller, Far, Outbound};
use crate::own::Own;
use crate::relay::Relay;
use crate::router::{Question, Router};
use crate::settings::{DomainStrategy, Level, Settings};
use crate::sock::Sock;
use crate::stats::{Counter, Stats, Traffic};
use crate::stream::Stream;
use crate::transport::ServerSide;
use crate::udp;

/// Inbounds, outbounds, rules and counters of one configuration.
pub(crate) struct Engine {
    pub(crate) inbounds: Vec<Arc<Inbound>>,
    outbounds: Vec<Arc<Outbound>>,
    router: Router,
    access: Access,
    names: Arc<Names>,
    /// What the server listens on; set when it does.
    pub(crate) own: Arc<Own>,
    held: Held,
    base: Level,
}

/// Where a connection goes.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) outbound: Arc<Outbound>,
    /// Private addresses that the rule names which chose it.
    pub(crate) named: Option<Named>,
}

/// What there is to carry.
enum Carry {
    Stream(Box<Relay>),
    Datagrams(Box<(udp::PacketEnd, udp::PacketEnd)>, Arc<UserRecord>),
    /// HTTP requests, each to wherever it says.
    Requests(Box<http::Session>),
    /// A client whose target is refused.
    Refused(Box<Stream>, Error),
    /// What the rules let through could not be reached.
    Failed(Error),
    /// Datagrams that go nowhere, for their target is refused or cannot be reached.
    Unheard(Box<udp::PacketEnd>, Arc<UserRecord>, Error),
    Nothing,
}

fn level(levels: &HashMap<u32, Level>, number: u32) -> Level {
    levels
        .get(&number)
        .or_else(|| levels.get(&0))
        .copied()
        .unwrap_or_default()
}

/// One counter of a pair, if it is wanted.
fn pick(wanted: bool, counter: &Arc<Counter>) -> Option<Arc<Counter>> {
    wanted.then(|| Arc::clone(counter))
}

impl Engine {
    /// Builds everything that can fail before the first connection.
    ///
    /// # Errors
    /// [`Error::Config`] for certificates, tags and users that do not work.
    pub(crate) fn new(settings: &Settings, stats: &Stats) -> Result<Self, Error> {
        let levels: HashMap<u32, Level> = settings.levels.iter().copied().collect();
        let mut inbounds = Vec::with_capacity(settings.inbounds.len());
        let mut seen = std::collections::HashSet::new();
        for (at, inbound) in settings.inbounds.iter().enumerate() {
            let place = format!("inbounds[{at}]");
            if !inbound.tag.is_empty() && !seen.insert(inbound.tag.as_str()) {
                let what = format!("two inbounds have the tag {:?}", inbound.tag);
                return Err(Error::config(format!("{place}.tag"), what));
            }
            let mut record = |user: &crate::settings::User| {
                let level = level(&levels, user.level);
                let counted = !user.email.is_empty();
                let traffic = if counted && (level.count_uplink || level.count_downlink) {
                    let [up, down] = stats.pair("user", &user.email);
                    Traffic::new(pick(level.count_uplink, &up), pick(level.count_downlink, &down))
                } else {
                    Traffic::default()
                };
                Arc::new(UserRecord {
                    email: user.email.clone(),
                    level,
                    traffic,
                })
            };
            let kind = inbound::kind(&place, &inbound.protocol, &mut record)?;
            let own = match &kind {
                Kind::Dokodemo(dokodemo) => dokodemo.level,
                Kind::Socks(socks) => socks.settings.level,
                Kind::Http(http) => http.level,
                Kind::Vless { .. } | Kind::Vmess { .. } => 0,
            };
            let counters = &settings.counters;
            let traffic = if inbound.tag.is_empty() {
                Traffic::default()
            } else {
                let [up, down] = stats.pair("inbound", &inbound.tag);
                Traffic::new(
                    pick(counters.inbound_uplink, &up),
                    pick(counters.inbound_downlink, &down),
                )
            };
            inbounds.push(Arc::new(Inbound {
                tag: inbound.tag.clone(),
                kind,
                side: ServerSide::new(&format!("{place}.streamSettings"), &inbound.transport)?,
                traffic,
                anyone: Arc::new(UserRecord {
                    email: String::new(),
                    level: level(&levels, own),
                    traffic: Traffic::default(),
                }),
                remote: inbound.is_remote(),
            }));
        }
        if settings.outbounds.is_empty() {
            return Err(Error::config(
                "outbounds",
                "there is none; add one, for example {\"protocol\": \"freedom\"}",
            ));
        }
        let names = Arc::new(Names::new(settings));
        let own = Arc::new(Own::default());
        let mut outbounds = Vec::with_capacity(settings.outbounds.len());
        for (at, outbound) in settings.outbounds.iter().enumerate() {
            let counters = &settings.counters;
            let traffic = if outbound.tag.is_empty() {
                Traffic::default()
            } else {
                let [up, down] = stats.pair("outbound", &outbound.tag);
                Traffic::new(
                    pick(counters.outbound_uplink, &up),
                    pick(counters.outbound_downlink, &down),
                )
                .reversed()
            };
            let place = format!("outbounds[{at}]");
            let (names, own) = (Arc::clone(&names), Arc::clone(&own));
            outbounds.push(Arc::new(Outbound::new(&place, outbound, names, own, traffic)?));
        }
        let tags: Vec<&str> = outbounds.iter().map(|outbound| outbound.tag.as_str()).collect();
        Ok(Engine {
            router: Router::new(&settings.rules, settings.domain_strategy, &tags)?,
            inbounds,
            outbounds,
            access: Access::open(&settings.access_log, settings.mask_address)?,
            names,
            own,
            held: Held::default(),
            base: level(&levels, 0),
        })
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, inbound: Arc<Inbound>, sock: Sock, listener: Option<SocketAddr>) {
        let mut source = sock.peer();
        // What it takes to begin is freed before the long part.
        let begun = Box::pin(self.begin(&inbound, sock, listener, &mut source)).await;
        match begun {
            Ok(carry) => self.carry(&inbound, carry, source).await,
            Err(error) => self.refused(&inbound, source, &error),
        }
    }

    fn refused(&self, inbound: &Inbound, source: Option<SocketAddr>, error: &Error) {
        match error {
            // A client that connects and leaves is not worth a line.
            Error::Closed => tracing::debug!("[{}] {}: {error}", inbound.tag, Client(source)),
            _ => self.access.rejected(&inbound.tag, source, error),
        }
    }

    /// What the rules let through could not be reached, or broke off before it began.
    fn failed(&self, inbound: &Inbound, source: Option<SocketAddr>, error: &Error) {
        match error {
            Error::Closed => tracing::debug!("[{}] {}: {error}", inbound.tag, Client(source)),
            _ => self.access.failed(&inbound.tag, source, error),
        }
    }

    /// From accepting to a connection that only has to be carried.
    async fn begin(
        self: &Arc<Self>,
        inbound: &Arc<Inbound>,
        sock: Sock,
        listener: Option<SocketAddr>,
        told: &mut Option<SocketAddr>,
    ) -> Result<Carry, Error> {
        let deadline = Instant::now() + self.base.handshake;
        let accepting = inbound.side.accept(sock, inbound.traffic.clone());
        let accepted = tokio::time::timeout_at(deadline, accepting)
            .await
            .map_err(|_| Error::TimedOut("TLS and transport handshake"))??;
        let (source, local) = (accepted.source, accepted.local);
        // Who a server in front says the client is, is also whom the log blames.
        *told = source;
        let fresh = Fresh {
            accepted,
            listener,
            remote: inbound.is_remote(source),
            deadline,
        };
        let taken = match &inbound.kind {
            Kind::Dokodemo(settings) => inbound::dokodemo::take(fresh, settings, Arc::clone(&inbound.anyone))?,
            Kind::Socks(settings) => return self.socks(inbound, settings, fresh).await,
            Kind::Http(settings) => {
                let asked = http::take(fresh, Arc::clone(settings), Arc::clone(&inbound.anyone));
                return self.http(inbound, asked.await?, source, local).await;
            }
            Kind::Vless { users, fallbacks } => inbound::vless::take(fresh, users, fallbacks, &self.base).await?,
            Kind::Vmess { users, secure_only } => inbound::vmess::take(fresh, users, *secure_only).await?,
        };
        self.dispatch(inbound, taken, source, local).await
    }

    async fn socks(
        self: &Arc<Self>,
        inbound: &Arc<Inbound>,
        settings: &inbound::socks::Socks,
        fresh: Fresh,
    ) -> Result<Carry, Error> {
        let (source, local) = (fresh.accepted.source, fresh.accepted.local);
        match inbound::socks::take(fresh, settings, Arc::clone(&inbound.anyone)).await? {
            inbound::socks::Asked::Stream(taken) => self.dispatch(inbound, taken, source, local).await,
            inbound::socks::Asked::Associate(association) => {
                inbound::associate::serve(self, inbound, *association).await?;
                Ok(Carry::Nothing)
            }
            inbound::socks::Asked::Http(asked) => self.http(inbound, asked, source, local).await,
        }
    }

    async fn http(
        &self,
        inbound: &Inbound,
        asked: http::Asked,
        source: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) -> Result<Carry, Error> {
        match asked {
            http::Asked::Tunnel(taken) => self.dispatch(inbound, taken, source, local).await,
            http::Asked::Forward(session) => Ok(Carry::Requests(session)),
        }
    }

    /// Logs the refusal and lets the client wait.
    pub(crate) async fn hold(&self, inbound: &Inbound, near: Stream, source: Option<SocketAddr>, error: &Error) {
        self.refused(inbound, source, error);
        self.held.hold(near).await;
    }

    /// Chooses the outbound.
    pub(crate) async fn route(
        &self,
        inbound: &Inbound,
        to: &Destination,
        (source, local): (Option<SocketAddr>, Option<SocketAddr>),
        email: &str,
    ) -> Route {
        let question = Question {
            target: to,
            source,
            local,
            email,
            inbound: &inbound.tag,
        };
        let resolve = async || {
            let found = self
                .names
                .resolve(&to.address, to.port, DomainStrategy::default())
                .await;
            found
                .map(|found| found.iter().map(SocketAddr::ip).collect())
                .unwrap_or_default()
        };
        let (at, chosen, named) = match self.router.choose(&question, resolve).await {
            Some(decision) => (decision.outbound, Chosen::Rule, decision.named.clone()),
            None => (0, Chosen::Default, None),
        };
        let outbound = Arc::clone(&self.outbounds[at]);
        self.access
            .accepted(source, to, (&inbound.tag, &outbound.tag), chosen, email);
        Route { outbound, named }
    }

    /// Chooses the outbound and connects.
    async fn dispatch(
        &self,
        inbound: &Inbound,
        taken: Taken,
        source: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) -> Result<Carry, Error> {
        let remote = inbound.is_remote(source);
        let caller = |named| Caller {
            source,
            local,
            remote,
            named,
        };
        match taken {
            Taken::Elsewhere(relay) => Ok(Carry::Stream(relay)),
            Taken::Nowhere => Ok(Carry::Nothing),
            Taken::Stream { mut near, to, user } => {
                let Route { outbound, named } = self.route(inbound, &to, (source, local), &user.email).await;
                match outbound.connect(&to, &caller(named)).await {
                    Ok(Far::Stream(far)) => {
                        let relay = Relay::new(*near, *far, user.level.timeouts, user.traffic.clone());
                        Ok(Carry::Stream(Box::new(relay)))
                    }
                    Ok(Far::Nowhere(answer)) => {
                        // The client reads the answer before it sees the end, for it is not reset.
                        near.leave(answer.unwrap_or_default()).await;
                        Ok(Carry::Nothing)
                    }
                    Err(error @ Error::Forbidden { .. }) => Ok(Carry::Refused(near, error)),
                    Err(error) => Ok(Carry::Failed(error)),
                }
            }
            Taken::Datagrams { near, to, user } => {
                let Route { outbound, named } = self.route(inbound, &to, (source, local), &user.email).await;
                Ok(match outbound.associate(&to, &caller(named)).await {
                    Ok(far) => Carry::Datagrams(Box::new((*near, far)), user),
                    Err(error) => Carry::Unheard(near, user, error),
                })
            }
        }
    }

    async fn relay(&self, inbound: &Inbound, relay: Box<Relay>, source: Option<SocketAddr>) -> Result<(), Error> {
        let ended = Box::pin(relay.run()).await?;
        tracing::debug!("[{}] {} ended: {ended:?}", inbound.tag, Client(source));
        Ok(())
    }

    async fn carry(&self, inbound: &Inbound, carry: Carry, source: Option<SocketAddr>) {
        let ended = match carry {
            Carry::Nothing => return,
            Carry::Failed(error) => return self.failed(inbound, source, &error),
            Carry::Unheard(near, user, error) => {
                self.failed(inbound, source, &error);
                let refused = matches!(error, Error::Forbidden { .. } | Error::Unsupported(_));
                return udp::discard(*near, user.level.timeouts.idle, refused).await;
            }
            Carry::Stream(relay) => self.relay(inbound, relay, source).await,
            Carry::Refused(near, error) => return Box::pin(self.hold(inbound, *near, source, &error)).await,
            Carry::Requests(session) => {
                let local = session.caller.local;
                match Box::pin(http::serve(self, inbound, *session)).await {
                    Ok(None) => return,
                    Ok(Some(tunnel)) => match Box::pin(self.dispatch(inbound, tunnel, source, local)).await {
                        Ok(Carry::Stream(relay)) => self.relay(inbound, relay, source).await,
                        Ok(Carry::Refused(near, error)) => {
                            return Box::pin(self.hold(inbound, *near, source, &error)).await;
                        }
                        Ok(Carry::Failed(error)) => return self.failed(inbound, source, &error),
                        Ok(_) => return,
                        Err(error) => return self.refused(inbound, source, &error),
                    },
                    Err(error) => return self.failed(inbound, source, &error),
                }
            }
            Carry::Datagrams(ends, user) => {
                let (near, far) = *ends;
                udp::carry(near, far, user.level.timeouts.idle, user.traffic.clone()).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("[{}] {} broke off: {error}", inbound.tag, Client(source));
        }
    }

    /// Carries datagrams of a local client through an outbound that has been chosen.
    #[expect(clippy::too_many_arguments, reason = "one call, of what one flow is")]
    pub(crate) async fn carry_flow(
        &self,
        inbound: &Inbound,
        route: &Route,
        near: udp::PacketEnd,
        to: Destination,
        user: Arc<UserRecord>,
        source: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) {
        let caller = Caller {
            source,
            local,
            remote: inbound.is_remote(source),
            named: route.named.clone(),
        };
        let carry = match route.outbound.associate(&to, &caller).await {
            Ok(far) => Carry::Datagrams(Box::new((near, far)), user),
            Err(error) => Carry::Unheard(Box::new(near), user, error),
        };
        self.carry(inbound, carry, source).await;
    }

    /// Serves what an inbound has taken without a connection of its own.
    pub(crate) async fn carry_on(
        &self,
        inbound: &Inbound,
        taken: Taken,
        source: Option<SocketAddr>,
        local: Option<SocketAddr>,
    ) {
        match self.dispatch(inbound, taken, source, local).await {
            Ok(carry) => self.carry(inbound, carry, source).await,
            Err(error) => self.refused(inbound, source, &error),
        }
    }
}
