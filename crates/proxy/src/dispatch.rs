//! From a request to its end: the rules choose an outbound, it dials, and what moves between both ends is carried.
//!
//! An inbound makes of a connection a [`Request`], or a [`Session`] that makes several. It hands them to the
//! [`Dispatcher`], which knows nothing of the protocol they came in.

mod access;
mod datagrams;
mod explain;
mod flows;
mod router;
mod sniff;
pub(crate) mod tarpit;
mod ways;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::{Destination, Domain, Network};

use crate::balance::{self, Balancer};
use crate::error::{Error, Pending};
use crate::lists::Lists;
use crate::outbound::{Caller, Far, Outbound};
use crate::policy::{Exempt, is_private};
use crate::program::{Finder, Program};
use crate::relay::Relay;
use crate::resolver::{Resolver, of_client};
use crate::settings::{Level, Settings};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::{self, PacketEnd};

use access::{Access, Chosen, Client};
use flows::Flows;
pub(crate) use flows::{KEPT, MAX_FLOWS, MAX_ROUTES};
use router::{Help, Router};
use sniff::{Asked, Held, Sniffing};
use tarpit::Tarpit;

pub(crate) use router::{Lead, Question};
pub(crate) use sniff::{Aim, Peeked, Sniffer};

/// Who asks: a connection as its inbound sees it.
#[derive(Clone, Debug)]
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
}

/// A user as connections see him.
#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) email: String,
    pub(crate) level: Level,
    pub(crate) traffic: Traffic,
    /// The number in the id by which a client of VLESS said who this is.
    pub(crate) vless_route: Option<u16>,
}

impl User {
    /// The same user with this number in the id.
    pub(crate) fn by_route(self: &Arc<Self>, route: u16) -> Arc<Self> {
        if self.vless_route == Some(route) {
            return Arc::clone(self);
        }
        Arc::new(User {
            vless_route: Some(route),
            ..User::clone(self)
        })
    }
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
    /// Asks until the client has no more. What it asks for in the end, and nothing can follow, is returned.
    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>>;
}

/// Where a request goes.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) outbound: Arc<Outbound>,
    /// Private addresses that the rule names which chose it.
    pub(crate) exempt: Option<Exempt>,
}

impl Route {
    fn caller(&self, origin: &Origin) -> Caller {
        Caller {
            source: origin.source,
            local: origin.local,
            remote: origin.remote,
            captured: origin.captured,
            neighbour: origin.captured
                && !origin.forwarded
                && origin.source.is_some_and(|source| is_private(source.ip())),
            is_program: origin.is_program,
            exempt: self.exempt.clone(),
            asks_names: false,
        }
    }

    /// What tells the flows of a client apart that go different ways: what one rule lets pass is nothing to the targets of
    /// another. Both parts are kept alive by whoever holds the engine; their addresses are only names.
    pub(crate) fn way(&self) -> (usize, usize) {
        let exempt = self.exempt.as_ref();
        let exempt = exempt.map_or(0, |exempt| Arc::as_ptr(exempt).cast::<u8>() as usize);
        (Arc::as_ptr(&self.outbound) as usize, exempt)
    }

    /// The target where the outbound needs an association for each.
    pub(crate) fn own_target(&self, to: &Destination) -> Option<Destination> {
        (!self.outbound.is_open_to_all(to)).then(|| to.clone())
    }
}

/// What there is to carry.
pub(crate) enum Carry {
    Stream(Box<Relay>),
    Datagrams(Box<dyn PacketEnd>, Box<dyn PacketEnd>, Arc<User>),
    Session(Box<dyn Session>),
    /// A client whose target is refused.
    Refused(Box<Stream>, Error),
    /// What the rules let through could not be reached.
    Failed(Error),
    /// Datagrams that go nowhere, for their target is refused or cannot be reached.
    Unheard(Box<dyn PacketEnd>, Arc<User>, Error),
    Nothing,
}

/// The rules of settings with outbounds of these tags.
pub(crate) fn router(settings: &Settings, tags: &[&str], lists: &Lists) -> Result<Router, Error> {
    let balancers: Vec<&str> = settings.balancers.iter().map(|one| one.tag.as_str()).collect();
    Router::new(&settings.rules, settings.domain_strategy, tags, &balancers, lists)
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

/// The rules, the outbounds that they choose from, and the log of what they chose.
pub(crate) struct Dispatcher {
    outbounds: Vec<Arc<Outbound>>,
    balancers: Arc<[Balancer]>,
    router: Router,
    asked: Asked,
    programs: Finder,
    access: Access,
    resolver: Arc<Resolver>,
    tarpit: Tarpit,
    /// Flows of datagrams that are held for what they say.
    held: Held,
}

impl Dispatcher {
    /// Checks the rules and opens the access log.
    ///
    /// # Errors
    /// [`Error::Config`] for a rule that leads nowhere, and for a log that cannot be written.
    pub(crate) fn new(
        settings: &Settings,
        outbounds: Vec<Outbound>,
        resolver: Arc<Resolver>,
        lists: &Lists,
    ) -> Result<Self, Error> {
        let tags: Vec<&str> = outbounds.iter().map(|outbound| outbound.tag.as_str()).collect();
        let asked = Asked {
            protocol: settings.rules.iter().any(|rule| !rule.protocols.is_empty()),
            attributes: settings.rules.iter().any(|rule| !rule.attributes.is_empty()),
        };
        Ok(Dispatcher {
            asked,
            router: router(settings, &tags, lists)?,
            balancers: balance::all(settings, &tags)?,
            programs: Finder::default(),
            outbounds: outbounds.into_iter().map(Arc::new).collect(),
            access: Access::open(&settings.access_log, settings.mask_address)?,
            resolver,
            tarpit: Tarpit::default(),
            held: Held::default(),
        })
    }

    /// The balancers, which are told how outbounds are.
    pub(crate) fn balancers(&self) -> Arc<[Balancer]> {
        Arc::clone(&self.balancers)
    }

    /// Serves a request to its end.
    pub(crate) async fn serve(self: &Arc<Self>, origin: &Origin, request: Request) {
        let carry = Box::pin(self.begin(origin, request)).await;
        self.carry(origin, carry).await;
    }

    /// A client was refused by its inbound.
    pub(crate) fn rejected(&self, origin: &Origin, error: &Error) {
        match error {
            // A client that connects and leaves is not worth a line.
            Error::Closed => tracing::debug!("[{}] {}: {error}", origin.inbound, Client(origin.source)),
            _ => self.access.rejected(&origin.inbound, origin.source, error),
        }
    }

    /// What the rules let through could not be reached, or broke off before it began.
    pub(crate) fn failed(&self, origin: &Origin, error: &Error) {
        match error {
            Error::Closed => tracing::debug!("[{}] {}: {error}", origin.inbound, Client(origin.source)),
            _ => self.access.failed(&origin.inbound, origin.source, error),
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
            .accepted(origin.source, &aim.asked, tags, chosen, &user.email);
        route
    }

    /// Where a stream is meant to go, by its first bytes if its inbound looks at them.
    async fn aim(&self, origin: &Origin, near: &mut Stream, to: Destination) -> Result<Aim, Error> {
        match Sniffing::new(origin, &to, &self.resolver, self.asked) {
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
            email: &user.email,
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
        let decision = self.router.choose(&question, &mut asking).await;
        let found = decision.and_then(|decision| match decision.lead {
            Lead::Outbound(at) => Some((at, decision)),
            Lead::Balancer(at) => Some((self.balancers.get(at)?.pick()?, decision)),
        });
        let (at, chosen, exempt) = match found {
            Some((at, decision)) => (at, Chosen::Rule, decision.exempt.clone()),
            None => (0, Chosen::Default, None),
        };
        let outbound = Arc::clone(&self.outbounds[at]);
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
        // The name of the request is what it asks for; only an address of ours stands for another.
        let aim = match Sniffing::new(origin, to, &self.resolver, self.asked) {
            Some(sniffing) => sniffing.aim(None.into())?,
            None => Aim::from(to.clone()),
        };
        let aim = match self.asked.protocol || self.asked.attributes {
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
                let aim = match self.aim(origin, &mut near, to).await {
                    Ok(aim) => aim,
                    Err(error @ Error::Forgotten { .. }) => return Carry::Failed(error),
                    Err(error) => {
                        tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
                        if error.is_reset() {
                            near.carrier.reset_on_close();
                        }
                        return Carry::Nothing;
                    }
                };
                match self.connect(origin, &aim, &user).await {
                    Ok(Far::Stream(far)) => {
                        let relay = Relay::new(*near, *far, user.level.timeouts, user.traffic.clone());
                        Carry::Stream(Box::new(relay))
                    }
                    Ok(Far::Nowhere(answer)) => {
                        // The client reads the answer before it sees the end, for it is not reset.
                        near.leave(answer.unwrap_or_default()).await;
                        Carry::Nothing
                    }
                    Err(error @ Error::Forbidden { .. }) => Carry::Refused(near, error),
                    Err(error) => Carry::Failed(error),
                }
            }
            Request::Packets { near, user } => {
                let far = Flows::new(Arc::clone(self), origin.clone(), Arc::clone(&user));
                Carry::Datagrams(near, far, user)
            }
            Request::Datagrams { near, to, user } => self.begin_datagrams(origin, near, to, user).await,
        }
    }

    /// Carries to the end.
    pub(crate) async fn carry(self: &Arc<Self>, origin: &Origin, carry: Carry) {
        let ended = match carry {
            Carry::Nothing => return,
            Carry::Failed(error) => return self.failed(origin, &error),
            Carry::Refused(near, error) => return Box::pin(self.refuse(origin, *near, &error)).await,
            Carry::Unheard(near, user, error) => {
                self.failed(origin, &error);
                let refused = matches!(error, Error::Forbidden { .. } | Error::Unsupported(_));
                return near.discard(user.level.timeouts.idle, refused).await;
            }
            Carry::Session(session) => match session.serve(Arc::clone(self), origin.clone()).await {
                Ok(None) => return,
                Ok(Some(last)) => return Box::pin(self.serve(origin, last)).await,
                Err(error) => return self.failed(origin, &error),
            },
            Carry::Stream(relay) => Box::pin(relay.run()).await.map(|ended| {
                tracing::debug!("[{}] {} ended: {ended:?}", origin.inbound, Client(origin.source));
            }),
            Carry::Datagrams(near, far, user) => {
                udp::carry(near, far, user.level.timeouts.idle, user.traffic.clone()).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!("[{}] {} broke off: {error}", origin.inbound, Client(origin.source));
        }
    }
}
