//! From a request to its end: the rules choose an outbound, it dials, and what moves between both ends is carried.
//!
//! An inbound makes of a connection a [`Request`], or a [`Session`] that makes several. It hands them to the
//! [`Dispatcher`], which knows nothing of the protocol they came in.

mod access;
mod datagrams;
mod explain;
mod flows;
mod route;
mod router;
mod sniff;
pub(crate) mod table;
pub(crate) mod tarpit;
mod user;
pub(crate) mod watchers;
mod ways;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use sealway_v2ray::{Destination, Domain, Network};

use crate::error::{Error, Pending};
use crate::meters::InMeter;
use crate::outbound::Far;
use crate::people::{Presence, Refused};
use crate::program::{Finder, Program};
use crate::relay::Relay;
use crate::resolver::{Resolver, of_client};
use crate::stream::Stream;
use crate::udp::{self, PacketEnd};

pub(crate) use access::Access;
use access::{Chosen, Client};
use flows::Flows;
pub(crate) use flows::{KEPT, MAX_FLOWS, MAX_ROUTES};
use router::Help;
use sniff::{Asked, Held, Sniffing};
use table::Table;
use tarpit::Tarpit;

pub(crate) use route::{FlowWay, Route};
pub(crate) use router::{Lead, Question};
pub(crate) use sniff::{Aim, Peeked, Sniffer};
pub(crate) use user::User;
use watchers::{Decided, Watchers};

/// Who asks: a connection as its inbound sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Tag of the inbound.
    pub(crate) inbound: Arc<str>,
    /// The client's address.
    pub(crate) source: Option<SocketAddr>,
    /// The address it came to.
    pub(crate) local: Option<SocketAddr>,
    /// It came from outside, and has no business on this machine's networks.
    pub(crate) remote: bool,
    /// The firewall has led it here on its way to somebody else.
    pub(crate) captured: bool,
    /// A server in front has said who the client is.
    pub(crate) forwarded: bool,
    /// The client's address is that of the program that sends datagrams.
    pub(crate) is_program: bool,
    /// What is looked for in first bytes.
    pub(crate) sniffer: Option<Arc<Sniffer>>,
    /// What is counted of the inbound.
    pub(crate) meter: Option<Arc<InMeter>>,
}

/// What waits now, and what was found in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queues {
    /// Connections whose target is refused.
    pub(crate) tarpit: usize,
    /// Flows of datagrams whose first bytes are not complete.
    pub(crate) sniffing: usize,
    /// Questions to DNS servers that are on their way.
    pub(crate) dns: usize,
    /// How often names were looked up, by what came of it.
    pub(crate) lookups: [(&'static str, u64); 3],
}

/// What an inbound made of a connection.
pub(crate) enum Request {
    /// A stream to be carried.
    Stream {
        near: Box<Stream>,
        to: Destination,
        user: Arc<User>,
    },
    /// Datagrams to be carried to one target.
    Datagrams {
        near: Box<dyn PacketEnd>,
        to: Destination,
        user: Arc<User>,
    },
    /// Datagrams that each say where they go.
    Packets { near: Box<dyn PacketEnd>, user: Arc<User> },
    /// A connection that asks for several things.
    Session(Box<dyn Session>),
    /// A stranger who was connected to a fallback.
    Fallback(Box<Relay>),
    /// A stranger whose fallback could not be reached, which has been said.
    Nothing,
}

/// A connection that asks for several things, one after another or at once.
pub(crate) trait Session: Send {
    /// Whose it is. It ends when he is removed.
    fn user(&self) -> &User;

    /// Asks until the client has no more. What it asks for in the end, and nothing can follow, is returned.
    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>>;
}

pub(crate) enum Carry {
    Stream(Box<Relay>),
    Datagrams(Box<dyn PacketEnd>, Box<dyn PacketEnd>, Arc<User>, Presence),
    Session(Box<dyn Session>),
    /// A client whose target is refused.
    Refused(Box<Stream>, Error, Presence),
    /// What the rules let through could not be reached.
    Failed(Error),
    /// Datagrams that go nowhere, for their target is refused or cannot be reached; or for a reason that has been said.
    Unheard(Box<dyn PacketEnd>, Arc<User>, Option<Error>, Presence),
    Nothing,
}

/// Who finds out what rules need to know of a connection.
struct Asking<'a> {
    dispatcher: &'a Dispatcher,
    to: &'a Destination,
    source: Option<SocketAddr>,
    /// Names are resolved. Those of the servers that do it are not: their addresses may be what is asked for.
    resolves: bool,
}

impl Help for Asking<'_> {
    async fn addresses(&mut self) -> Vec<IpAddr> {
        match self.resolves {
            true => of_client(self.source, self.dispatcher.resolver.addresses(&self.to.address)).await,
            false => Vec::new(),
        }
    }

    async fn program(&mut self) -> Option<Arc<Program>> {
        let source = self.source?;
        let networks = match self.to.network {
            Network::Tcp => [Network::Tcp, Network::Udp],
            // Datagrams may come in a stream.
            Network::Udp => [Network::Udp, Network::Tcp],
        };
        for network in networks {
            if let Some(program) = self.dispatcher.programs.find(network, source).await {
                return Some(program);
            }
        }
        None
    }
}

/// The rules, the outbounds that they choose from, and the log of what they chose. Rules and outbounds can be changed; what was
/// chosen stays so.
pub(crate) struct Dispatcher {
    table: ArcSwap<Table>,
    access: ArcSwap<Access>,
    programs: Finder,
    resolver: Arc<Resolver>,
    tarpit: Tarpit,
    /// Who is told what the rules decide.
    watchers: Arc<Watchers>,
    /// Flows of datagrams that are held for what they say.
    held: Held,
}

impl Dispatcher {
    pub(crate) fn new(table: Table, access: Access, resolver: Arc<Resolver>) -> Self {
        Dispatcher {
            table: ArcSwap::from_pointee(table),
            access: ArcSwap::from_pointee(access),
            programs: Finder::default(),
            resolver,
            tarpit: Tarpit::default(),
            watchers: Arc::default(),
            held: Held::default(),
        }
    }

    /// What requests are led by now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// Leads requests by this from now on.
    pub(crate) fn set_table(&self, table: Table) {
        self.table.store(Arc::new(table));
    }

    /// Writes to this log from now on.
    pub(crate) fn set_access(&self, access: Access) {
        self.access.store(Arc::new(access));
    }

    /// Who is told what the rules decide.
    pub(crate) fn watchers(&self) -> &Arc<Watchers> {
        &self.watchers
    }

    /// What rules look for in requests.
    fn asked(&self) -> Asked {
        self.table.load().asked
    }

    /// What waits now.
    pub(crate) fn queues(&self) -> Queues {
        let dns = self.resolver.dns();
        Queues {
            tarpit: self.tarpit.held(),
            sniffing: self.held.count(),
            dns: dns.flights(),
            lookups: dns.lookups(),
        }
    }

    /// Serves a request to its end.
    pub(crate) async fn serve(self: &Arc<Self>, origin: &Origin, request: Request) {
        let carry = Box::pin(self.begin(origin, request)).await;
        self.carry(origin, carry).await;
    }

    /// A client was refused by its inbound.
    pub(crate) fn rejected(&self, origin: &Origin, error: &Error) {
        if let Some(meter) = &origin.meter {
            meter.refuse(error);
        }
        match error {
            // A client that connects and leaves is not worth a line.
            Error::Closed | Error::Refused(Refused::Removed) => {
                tracing::debug!("[{}] {}: {error}", origin.inbound, Client(origin.source));
            }
            _ => self.access.load().rejected(&origin.inbound, origin.source, error),
        }
    }

    /// What the rules let through could not be reached, or broke off before it began.
    pub(crate) fn failed(&self, origin: &Origin, error: &Error) {
        match error {
            Error::Closed | Error::Refused(Refused::Removed) => {
                tracing::debug!("[{}] {}: {error}", origin.inbound, Client(origin.source));
            }
            _ => self.access.load().failed(&origin.inbound, origin.source, error),
        }
    }

    /// Logs that a target is refused and lets the client wait.
    pub(crate) async fn refuse(&self, origin: &Origin, near: Stream, error: &Error) {
        self.rejected(origin, error);
        self.tarpit.hold(near).await;
    }

    /// Chooses the outbound, and logs it.
    pub(crate) async fn route(&self, origin: &Origin, aim: &Aim, user: &User) -> Route {
        let (route, chosen) = self.choose(origin, aim, user, true).await;
        let tags = (&*origin.inbound, route.outbound.tag.as_str());
        self.access
            .load()
            .accepted(origin.source, &aim.asked, tags, chosen, user.email());
        route
    }

    /// Where a stream is meant to go, by its first bytes if its inbound looks at them.
    async fn aim(&self, origin: &Origin, near: &mut Stream, to: Destination) -> Result<Aim, Error> {
        match Sniffing::new(origin, &to, &self.resolver, self.asked()) {
            None => Ok(Aim::from(to)),
            Some(sniffing) => {
                let sniffed = Box::pin(sniffing.look(near)).await?;
                sniffing.aim(sniffed)
            }
        }
    }

    /// Chooses the outbound. `resolves`: by addresses too, if the rules ask for those of a name.
    async fn choose(&self, origin: &Origin, aim: &Aim, user: &User, resolves: bool) -> (Route, Chosen) {
        let to = &aim.dial;
        let question = Question {
            target: to,
            name: aim.name.as_ref().map(Domain::as_str),
            source: origin.source,
            local: origin.local,
            email: user.email(),
            vless_route: user.vless_route,
            inbound: &origin.inbound,
            protocol: aim.protocol,
            attributes: &aim.attributes,
        };
        let mut asking = Asking {
            dispatcher: self,
            to,
            source: origin.source,
            resolves,
        };
        let table = self.table();
        let decision = table.router.choose(&question, &mut asking).await;
        let (outbound, ruled) = table.lead(decision);
        let exempt = decision.filter(|_| ruled).and_then(|decision| decision.exempt.clone());
        let chosen = if ruled { Chosen::Rule } else { Chosen::Default };
        // What the server asks for itself is no client's.
        if resolves {
            self.watchers.tell(|| {
                let rule = decision.filter(|_| ruled);
                let rule = rule.and_then(|decision| table.router.rule(decision.rule));
                let balancer = rule.map_or("", |rule| rule.balancer_tag.as_str());
                Decided::new(&question, balancer, &outbound.tag)
            });
        }
        (Route { outbound, exempt }, chosen)
    }

    /// Chooses the outbound and has it connect.
    async fn connect(&self, origin: &Origin, aim: &Aim, user: &User) -> Result<Far, Error> {
        let route = self.route(origin, aim, user).await;
        route.outbound.connect(&aim.dial, &route.caller(origin)).await
    }

    /// The same for a request of HTTP with this head.
    pub(crate) async fn connect_http(
        &self,
        origin: &Origin,
        to: &Destination,
        head: &[u8],
        user: &User,
    ) -> Result<Far, Error> {
        let asked = self.asked();
        // The name of the request is what it asks for; only an address of ours stands for another.
        let aim = match Sniffing::new(origin, to, &self.resolver, asked) {
            Some(sniffing) => sniffing.aim(None.into())?,
            None => Aim::from(to.clone()),
        };
        let aim = match asked.protocol || asked.attributes {
            true => aim.with_http(head),
            false => aim,
        };
        self.connect(origin, &aim, user).await
    }

    /// From a request to a connection that only has to be carried. What it takes to begin can be freed before the long part.
    pub(crate) async fn begin(self: &Arc<Self>, origin: &Origin, request: Request) -> Carry {
        match request {
            Request::Fallback(relay) => Carry::Stream(relay),
            Request::Session(session) => Carry::Session(session),
            Request::Nothing => Carry::Nothing,
            Request::Stream { mut near, to, user } => {
                near.welcome();
                match user.enter(origin) {
                    Ok(presence) => self.begin_stream(origin, (near, presence), to, &user).await,
                    Err(error) => {
                        self.rejected(origin, &error);
                        near.leave(&[]).await;
                        Carry::Nothing
                    }
                }
            }
            Request::Packets { near, user } => match user.enter(origin) {
                Ok(presence) => {
                    let far = Flows::new(Arc::clone(self), origin.clone(), Arc::clone(&user));
                    Carry::Datagrams(near, far, user, presence)
                }
                Err(error) => self.turn_away(origin, near, user, error),
            },
            Request::Datagrams { near, to, user } => self.begin_datagrams(origin, near, to, user).await,
        }
    }

    /// From a stream to a relay.
    async fn begin_stream(
        self: &Arc<Self>,
        origin: &Origin,
        (mut near, mut presence): (Box<Stream>, Presence),
        to: Destination,
        user: &User,
    ) -> Carry {
        let reaching = async {
            let aim = match self.aim(origin, &mut near, to).await {
                Ok(aim) => aim,
                Err(error @ Error::Forgotten { .. }) => return Ok(Err(error)),
                Err(error) => return Err(error),
            };
            Ok(self.connect(origin, &aim, user).await)
        };
        let reached = presence.unless_gone(reaching).await;
        match reached.unwrap_or(Err(Refused::Removed.into())) {
            Err(error) => {
                tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
                if error.is_reset() {
                    near.carrier.reset_on_close();
                }
                Carry::Nothing
            }
            Ok(Ok(Far::Stream(far))) => {
                let relay = Relay::new(*near, *far, user.level.timeouts, presence);
                Carry::Stream(Box::new(relay))
            }
            Ok(Ok(Far::Nowhere(answer))) => {
                // The client reads the answer before it sees the end, for it is not reset.
                near.leave(answer.unwrap_or_default()).await;
                Carry::Nothing
            }
            Ok(Err(error @ Error::Forbidden { .. })) => Carry::Refused(near, error, presence),
            Ok(Err(error)) => Carry::Failed(error),
        }
    }

    /// Carries to the end.
    pub(crate) async fn carry(self: &Arc<Self>, origin: &Origin, carry: Carry) {
        let ended = match carry {
            Carry::Nothing => return,
            Carry::Failed(error) => return self.failed(origin, &error),
            Carry::Refused(near, error, mut presence) => {
                let refusing = Box::pin(self.refuse(origin, *near, &error));
                return presence.unless_gone(refusing).await.unwrap_or_default();
            }
            Carry::Unheard(near, user, error, mut presence) => {
                if let Some(error) = &error {
                    self.failed(origin, error);
                }
                let refused = matches!(error, Some(Error::Forbidden { .. } | Error::Unsupported(_)));
                let discarding = near.discard(user.level.timeouts.idle, refused);
                return presence.unless_gone(discarding).await.unwrap_or_default();
            }
            Carry::Session(session) => {
                let mut watch = session.user().watch();
                let serving = session.serve(Arc::clone(self), origin.clone());
                match watch.unless_gone(serving).await.unwrap_or(Err(Refused::Removed.into())) {
                    Ok(None) => return,
                    Ok(Some(last)) => return Box::pin(self.serve(origin, last)).await,
                    Err(error) => return self.failed(origin, &error),
                }
            }
            Carry::Stream(relay) => Box::pin(relay.run()).await.map(|ended| {
                tracing::debug!("[{}] {} ended: {ended:?}", origin.inbound, Client(origin.source));
            }),
            Carry::Datagrams(near, far, user, presence) => {
                Box::pin(udp::carry(near, far, user.level.timeouts.idle, presence)).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
        }
    }
}
