//! Where connections go out: each protocol in a module of its own, and the choice of one.

mod blackhole;
mod dns;
mod freedom;
mod http;
mod missing;
mod mux;
mod service;
mod shadowsocks;
pub(crate) mod socks;
mod trojan;
mod vless;
mod vmess;

use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::{Address, Destination};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::error::{Error, Pending};
use crate::lists::Lists;
use crate::loops::LoopGuard;
use crate::meters::{Meters, OutMeter};
use crate::resolver::Resolver;
pub(crate) use crate::roads::Caller;
use crate::roads::Roads;
use crate::settings::{self, OutboundProtocol, SendThrough};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::{Connector, Remote};
use crate::udp::PacketEnd;

/// How long connecting and every handshake on the way to a target may take together: a next server that accepts and says
/// nothing must not hold the client for ever.
const REACH: Duration = Duration::from_secs(60);

/// What outbounds are built around.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) lists: Arc<Lists>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) loops: Arc<LoopGuard>,
    pub(crate) roads: Arc<Roads>,
    pub(crate) clock: Clock,
}

/// The other end of a stream.
pub(crate) enum Far {
    /// Carry to here.
    Stream(Box<Stream>),
    /// There is no other end: this is what the client is told, if anything.
    Nowhere(Option<&'static [u8]>),
}

/// What an outbound speaks.
trait Protocol: Send + Sync {
    /// Opens a stream to the target.
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far>;

    /// Opens an association for datagrams to the target, or, if it is open to all, to any.
    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>>;

    /// True if one association serves all targets of a client, of which this is the first.
    fn is_open_to_all(&self, _: &Destination) -> bool {
        false
    }
}

/// The protocol that the settings ask for.
fn protocol(
    place: &str,
    settings: &settings::Outbound,
    dialer: Dialer,
    around: &Surroundings,
) -> Result<Box<dyn Protocol>, Error> {
    let clock = around.clock;
    Ok(match settings.protocol.clone() {
        OutboundProtocol::Freedom(freedom) => Box::new(freedom::Freedom::new(freedom, dialer, around)?),
        OutboundProtocol::Blackhole { http } => Box::new(blackhole::Blackhole { http }),
        OutboundProtocol::Dns(dns) => Box::new(dns::Dns::new(place, dns, dialer, around)?),
        OutboundProtocol::Shadowsocks(to) => Box::new(shadowsocks::Shadowsocks::new(to, dialer, clock)),
        OutboundProtocol::Trojan(trojan) => Box::new(trojan::Trojan {
            settings: trojan,
            dialer,
        }),
        OutboundProtocol::Vless(mut vless) => {
            // What is made ahead of a client does not have the address that it would get.
            if let (Some(SendThrough::Origin | SendThrough::Client), Some(vision)) =
                (settings.send_through, &mut vless.vision)
            {
                vision.ready = 0;
            }
            Box::new(vless::Vless::new(vless, dialer, &settings.mux)?)
        }
        OutboundProtocol::Vmess(vmess) => Box::new(vmess::Vmess::new(vmess, dialer, clock)),
        OutboundProtocol::Socks(proxy) => Box::new(socks::Socks { proxy, dialer }),
        OutboundProtocol::Http(proxy) => Box::new(http::Http { proxy, dialer }),
    })
}

/// What protocols reach their server with.
struct Dialer {
    connector: Connector,
    /// Bytes of the connections.
    traffic: Traffic,
}

impl Dialer {
    /// A stream to the server. What of `first` went along with its making is said by the number returned.
    async fn connect(&self, server: &(Address, u16), first: &[u8], caller: &Caller) -> Result<(Stream, usize), Error> {
        let traffic = self.traffic.clone();
        self.connector
            .connect(&Remote::server(server), first, traffic, caller)
            .await
    }

    /// A stream to the server that begins with this header, which leaves together with the first payload.
    async fn connect_with(
        &self,
        server: &(Address, u16),
        mut header: Vec<u8>,
        caller: &Caller,
    ) -> Result<Stream, Error> {
        let (mut stream, sent) = self.connect(server, &header, caller).await?;
        header.drain(..sent);
        stream.set_prefix(header);
        Ok(stream)
    }
}

/// An outbound, ready to dial.
pub(crate) struct Outbound {
    pub(crate) tag: String,
    protocol: Box<dyn Protocol>,
    meter: Option<Arc<OutMeter>>,
}

impl Outbound {
    /// Builds TLS settings and keys.
    ///
    /// # Errors
    /// [`Error::Config`] for certificates and names that do not work.
    pub(crate) fn new(
        place: &str,
        settings: &settings::Outbound,
        around: &Surroundings,
        traffic: Traffic,
    ) -> Result<Self, Error> {
        let dialled_with = (&around.resolver, &around.roads);
        let connector = Connector::new(place, &settings.transport, settings.send_through, dialled_with)?;
        let dialer = Dialer { connector, traffic };
        let protocol = protocol(place, settings, dialer, around)?;
        Ok(Outbound {
            tag: settings.tag.clone(),
            protocol: mux::around(protocol, settings)?,
            meter: None,
        })
    }

    /// What stands for an outbound that was removed, or, without a tag, for the default.
    pub(crate) fn missing(tag: &str) -> Self {
        Outbound {
            tag: tag.to_owned(),
            protocol: Box::new(missing::Missing),
            meter: None,
        }
    }

    /// One that leads to a service of this program.
    pub(crate) fn service(settings: &settings::Service, traffic: Traffic) -> Self {
        let service = service::Service {
            settings: settings.clone(),
            traffic,
        };
        Outbound {
            tag: settings.tag.clone(),
            protocol: Box::new(service),
            meter: None,
        }
    }

    /// The same, with what is counted of it.
    pub(crate) fn metered(self, meters: &Meters) -> Self {
        let meter = meters.outbound(&self.tag);
        Outbound { meter, ..self }
    }

    /// True if one association serves all targets of a client for which this is true.
    pub(crate) fn is_open_to_all(&self, to: &Destination) -> bool {
        self.protocol.is_open_to_all(to)
    }

    /// Opens a stream to the target, within [`REACH`].
    pub(crate) async fn connect(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let began = Instant::now();
        let mut reached = in_time(began, self.protocol.connect(to, caller)).await;
        match (&self.meter, &mut reached) {
            (Some(meter), Ok(Far::Stream(stream))) => stream.count(meter.reached(began.elapsed())),
            (Some(meter), Err(error)) => meter.missed(error),
            _ => {}
        }
        reached
    }

    /// Opens an association for datagrams to the target, or, if [`Outbound::is_open_to_all`], to any.
    ///
    /// Within [`REACH`].
    pub(crate) async fn associate(&self, to: &Destination, caller: &Caller) -> Result<Box<dyn PacketEnd>, Error> {
        let reached = in_time(Instant::now(), self.protocol.associate(to, caller)).await;
        if let (Some(meter), Err(error)) = (&self.meter, &reached) {
            meter.missed(error);
        }
        reached
    }
}

async fn in_time<T>(began: Instant, reaching: Pending<'_, T>) -> Result<T, Error> {
    let reached = tokio::time::timeout_at(began + REACH, reaching).await;
    reached.map_err(|_| Error::TimedOut("answer of the next server"))?
}
