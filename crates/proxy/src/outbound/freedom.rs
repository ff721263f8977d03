//! Straight to the target.

mod datagrams;
mod further;
mod noise;
mod pieces;

use std::net::SocketAddr;
use std::sync::Arc;

use sealway_v2ray::{Address, Destination};

use super::{Caller, Dialer, Far, Protocol, Surroundings};
use crate::carrier::Carrier;
use crate::dial;
use crate::error::{Error, Pending};
use crate::log::Limit;
use crate::loops::LoopGuard;
use crate::policy::{DialPolicy, Final, finals};
use crate::proxy_protocol;
use crate::resolver::of_client;
use crate::roads::Through;
use crate::settings::{self, Noise, NoiseTo};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::Remote;
use crate::udp::{Answers, PacketEnd};

use datagrams::Open;
use further::Further;
use noise::Noisy;
use pieces::Pieces;

/// Lines a second about datagrams that go without what carries streams.
static BARE: Limit = Limit::new(1);

/// Where traffic goes in place of its target.
#[derive(Clone, Debug, Default)]
struct Redirect {
    /// The host. `None`: the target's.
    host: Option<Address>,
    /// The port. `None`: the target's.
    port: Option<u16>,
}

impl Redirect {
    /// Where to go in place of `to`, or `None` if that stands.
    fn of(&self, to: &Destination) -> Option<Destination> {
        if self.host.is_none() && self.port.is_none() {
            return None;
        }
        Some(Destination {
            network: to.network,
            address: self.host.clone().unwrap_or_else(|| to.address.clone()),
            port: self.port.unwrap_or(to.port),
        })
    }
}

/// Straight out.
pub(super) struct Freedom {
    settings: settings::Freedom,
    rules: Arc<[Final]>,
    dialer: Dialer,
    loops: Arc<LoopGuard>,
}

impl Freedom {
    /// # Errors
    /// [`Error::Config`] for a list of a geo file that cannot be had.
    pub(super) fn new(settings: settings::Freedom, dialer: Dialer, around: &Surroundings) -> Result<Self, Error> {
        Ok(Freedom {
            rules: finals(&settings.final_rules, &around.lists)?,
            settings,
            dialer,
            loops: Arc::clone(&around.loops),
        })
    }

    fn redirect(&self) -> Redirect {
        Redirect {
            host: self.settings.redirect_host.clone(),
            port: self.settings.redirect_port,
        }
    }

    fn policy(&self, caller: &Caller) -> DialPolicy {
        DialPolicy {
            rules: Arc::clone(&self.rules),
            remote: caller.remote,
            captured: caller.captured,
            neighbour: caller.neighbour,
            exempt: caller.exempt.clone(),
        }
    }

    /// The addresses of a host that are allowed.
    async fn allowed(&self, to: &Destination, caller: &Caller) -> Result<Vec<SocketAddr>, Error> {
        let strategy = self.settings.domain_strategy;
        let resolver = &self.dialer.connector.line.resolver;
        let resolving = resolver.resolve(&to.address, to.port, strategy);
        let addresses = of_client(caller.source, resolving).await?;
        let policy = self.policy(caller);
        let mut allowed = Vec::with_capacity(addresses.len());
        let mut refused = None;
        for address in addresses {
            let checked = policy.check(address, to.network);
            match checked.and_then(|()| self.loops.check(address, to.network)) {
                Ok(()) => allowed.push(address),
                Err(error) => refused = Some(error),
            }
        }
        match (allowed.is_empty(), refused) {
            (true, Some(error)) => Err(error),
            _ => Ok(allowed),
        }
    }

    /// What the outbound that this one dials through is asked for: a name as it is, unless it is to be resolved here, or a
    /// final rule wants to know its address.
    async fn onward(&self, through: &Through, to: &Destination, caller: &Caller) -> Result<Onward, Error> {
        let resolves = through.resolves || self.settings.resolves;
        if to.address.ip().is_none() && !resolves && self.policy(caller).check_name(to)? {
            return Ok(Onward {
                first: to.clone(),
                second: None,
            });
        }
        let allowed = self.allowed(to, caller).await?;
        let at = |ip: &SocketAddr| Destination {
            address: ip.ip().into(),
            ..to.clone()
        };
        let Some(first) = allowed.first() else {
            return Err(Error::Resolve {
                name: to.address.to_string(),
            });
        };
        let second = allowed.iter().find(|other| other.is_ipv4() != first.is_ipv4());
        Ok(Onward {
            first: at(first),
            second: second.map(at),
        })
    }

    /// A stream to the first address that is allowed and answers.
    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Far, Error> {
        let elsewhere = self.redirect().of(to);
        let to = elsewhere.as_ref().unwrap_or(to);
        let announced = self.settings.proxy_protocol;
        let mut stream = match self.dialer.connector.is_bare() {
            true => self.bare(to, caller).await?,
            false => self.carried(to, caller).await?,
        };
        if announced > 0 {
            let header = proxy_protocol::header(announced, caller.source, caller.local);
            stream.send(&header).await?;
        }
        if let Some(fragment) = &self.settings.fragment {
            stream.carrier = Pieces::around(stream.carrier, fragment.clone());
        }
        Ok(Far::Stream(Box::new(stream)))
    }

    /// A stream over the transport and TLS of the outbound.
    async fn carried(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let Dialer { connector, traffic } = &self.dialer;
        let allowed = match &connector.line.through {
            // Only here it is known who asks.
            Some(through) if !connector.is_shared() => {
                let Onward { first, second } = self.onward(through, to, caller).await?;
                [Some(first), second]
                    .iter()
                    .flatten()
                    .filter_map(Destination::socket_addr)
                    .collect()
            }
            _ => self.allowed(to, caller).await?,
        };
        let remote = Remote {
            name: (to.address.clone(), to.port),
            allowed: Some(allowed),
        };
        let (mut stream, _) = connector.connect(&remote, &[], traffic.clone(), caller).await?;
        if self.settings.fragment.is_none() {
            return Ok(stream);
        }
        // The target may be the first to speak.
        stream.seal_prefix()?;
        stream.flush().await?;
        // Pieces are made of what the client says, not of what carries it.
        Ok(Stream::new(stream.into_carrier(), Traffic::default()))
    }

    /// A stream by a socket or another outbound, as it is.
    async fn bare(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let Dialer { connector, traffic } = &self.dialer;
        let line = &connector.line;
        let carrier = match &line.through {
            None => {
                let allowed = self.allowed(to, caller).await?;
                Carrier::from(dial::connect_any(&allowed, &line.socket, line.source(caller)?).await?)
            }
            Some(through) => {
                let Onward { first, second } = self.onward(through, to, caller).await?;
                let mut stream = match (through.stream(&first, caller).await, second) {
                    (Err(_), Some(second)) => through.stream(&second, caller).await?,
                    (reached, _) => reached?,
                };
                if traffic.is_silent() && self.settings.proxy_protocol == 0 && self.settings.fragment.is_none() {
                    return Ok(stream);
                }
                // The target may be the first to speak.
                stream.seal_prefix()?;
                stream.flush().await?;
                stream.into_carrier()
            }
        };
        Ok(Stream::new(carrier, traffic.clone()))
    }

    /// Whether datagrams go to an address of IPv6, as far as noise depends on it. A name that is not resolved here stands for
    /// one of IPv4.
    async fn is_v6(&self, to: &Destination) -> bool {
        let line = &self.dialer.connector.line;
        let depends = |noise: &Noise| matches!(noise.to, NoiseTo::Ipv4 | NoiseTo::Ipv6);
        if to.address.ip().is_none() && (line.through.is_some() || !self.settings.noises.iter().any(depends)) {
            return false;
        }
        let resolver = &line.resolver;
        let found = resolver
            .resolve(&to.address, to.port, self.settings.domain_strategy)
            .await;
        found.is_ok_and(|found| found.first().is_some_and(|first| first.is_ipv6()))
    }

    /// Datagrams to the target through another outbound.
    async fn packets_through(
        &self,
        through: &Through,
        to: &Destination,
        caller: &Caller,
    ) -> Result<Box<dyn PacketEnd>, Error> {
        let elsewhere = self.redirect().of(to);
        let goes_to = self
            .onward(through, elsewhere.as_ref().unwrap_or(to), caller)
            .await?
            .first;
        Ok(Box::new(Further {
            end: through.packets(&goes_to, caller).await?,
            meant: to.clone(),
            answers: Answers::of(goes_to.clone()),
            goes_to,
            traffic: self.dialer.traffic.clone(),
        }))
    }
}

/// What the outbound that another one dials through is asked for.
struct Onward {
    first: Destination,
    /// The same in the other family, for where the first cannot be reached.
    second: Option<Destination>,
}

impl Protocol for Freedom {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(self.stream(to, caller))
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move {
            if !self.dialer.connector.is_bare()
                && let Some(kept) = BARE.pass()
            {
                tracing::warn!(
                    "datagrams to {to} go without TLS and transport of the outbound, which are for streams{kept}"
                );
            }
            let end = match &self.dialer.connector.line.through {
                Some(through) => self.packets_through(through, to, caller).await?,
                None => {
                    let policy = (self.policy(caller), Arc::clone(&self.loops), caller.source);
                    let source = self.dialer.connector.line.source(caller)?;
                    let strategy = self.settings.domain_strategy;
                    let mut open = Open::bind(policy, self.redirect(), strategy, &self.dialer, source)?;
                    if to.address.domain().is_some() {
                        open = open.ready().await?;
                    }
                    Box::new(open)
                }
            };
            let noises = &self.settings.noises;
            if noises.is_empty() {
                return Ok(end);
            }
            let elsewhere = self.redirect().of(to);
            let is_v6 = self.is_v6(elsewhere.as_ref().unwrap_or(to)).await;
            Ok(Noisy::around(end, noises, is_v6))
        })
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        self.dialer.connector.line.through.is_none()
    }
}
