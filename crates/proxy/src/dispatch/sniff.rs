//! What a request carries and which host it is meant for, out of its first bytes.
//!
//! A stream is looked at where its bytes lie, in the buffer that it is read into: nothing is taken out of it, so that whoever
//! carries it finds everything. Of datagrams only those are held whose first one is an Initial packet of QUIC. A fake address
//! is replaced whatever is found.

mod held;

use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::sniff::{self, Found, Kind, Look};
use sealway_v2ray::{Address, Destination, Domain, Network};
use tokio::time::{Instant, timeout_at};

use super::Origin;
use super::router::Attributes;
use crate::Error;
use crate::lists::{Addresses, Lists, Names};
use crate::log::Limit;
use crate::resolver::{Fake, Resolver};
use crate::settings::{self, Override};
use crate::stream::Stream;
use crate::udp::PacketEnd;

pub(crate) use held::Peeked;
pub(super) use held::{Held, Renamed, Room, Watch};
use held::{by_itself, hold};

/// How long a request waits for first bytes that say something, altogether.
const PATIENCE: Duration = Duration::from_millis(200);

/// Lines a second about fake addresses that stand for nothing.
static FORGOTTEN: Limit = Limit::new(5);

/// What an inbound looks for.
#[derive(Debug)]
pub(crate) struct Sniffer {
    overrides: Vec<Override>,
    domains_excluded: Option<Names>,
    ips_excluded: Option<Addresses>,
    metadata_only: bool,
    route_only: bool,
    server_first: Vec<(u16, u16)>,
}

impl Sniffer {
    /// Makes sets of the lists of the inbound at `place`.
    ///
    /// # Errors
    /// [`Error::Config`] for a list that makes no set.
    pub(crate) fn new(place: &str, settings: &settings::Sniffing, lists: &Lists) -> Result<Self, Error> {
        let domains_excluded = match settings.domains_excluded.as_slice() {
            [] => None,
            some => Some(lists.names(&format!("{place}.sniffing.domainsExcluded"), some)?),
        };
        let ips_excluded = match settings.ips_excluded.as_slice() {
            [] => None,
            some => Some(lists.addresses(some)?),
        };
        Ok(Sniffer {
            overrides: settings.overrides.clone(),
            domains_excluded,
            ips_excluded,
            metadata_only: settings.metadata_only,
            route_only: settings.route_only,
            server_first: settings.server_first.clone(),
        })
    }

    fn is_server_first(&self, port: u16) -> bool {
        self.server_first
            .iter()
            .any(|&(low, high)| (low..=high).contains(&port))
    }

    /// Whether names of this protocol replace targets.
    fn overrides(&self, kind: Kind) -> bool {
        let word = match kind {
            Kind::Http => Override::Http,
            Kind::Tls => Override::Tls,
            Kind::Quic => Override::Quic,
            _ => return false,
        };
        self.overrides.contains(&word)
    }

    /// Whether anything depends on what bytes of this network say. `asked`: a rule does.
    fn reads(&self, network: Network, asked: Asked) -> bool {
        let (by_rule, words) = match network {
            Network::Tcp => (asked.protocol || asked.attributes, &[Override::Http, Override::Tls][..]),
            Network::Udp => (asked.protocol, &[Override::Quic][..]),
        };
        !self.metadata_only && (by_rule || self.overrides.iter().any(|word| words.contains(word)))
    }

    fn excludes(&self, target: &Address, name: &Domain) -> bool {
        let by_name = self.domains_excluded.as_ref();
        let by_ip = self.ips_excluded.as_ref().zip(target.ip());
        by_name.is_some_and(|set| set.matches(name.as_str())) || by_ip.is_some_and(|(set, ip)| set.matches(ip))
    }
}

/// What was found, and the request of HTTP that it was found in.
#[derive(Debug, Default)]
pub(super) struct Sniffed {
    found: Option<Found>,
    attributes: Attributes,
}

impl From<Option<Found>> for Sniffed {
    fn from(found: Option<Found>) -> Self {
        Sniffed {
            found,
            attributes: Attributes::new(),
        }
    }
}

/// Where a request is meant to go.
#[derive(Clone, Debug)]
pub(crate) struct Aim {
    /// What the client asked for, which is what the access log shows.
    pub(super) asked: Destination,
    /// What is dialled.
    pub(super) dial: Destination,
    /// A name for the rules beside the address that is dialled.
    pub(super) name: Option<Domain>,
    /// What it was found to carry.
    pub(super) protocol: Option<&'static str>,
    pub(super) attributes: Attributes,
}

impl From<Destination> for Aim {
    fn from(to: Destination) -> Self {
        Aim {
            asked: to.clone(),
            dial: to,
            name: None,
            protocol: None,
            attributes: Attributes::new(),
        }
    }
}

impl Aim {
    /// Whether something else is dialled than the client asked for.
    pub(crate) fn is_renamed(&self) -> bool {
        self.dial.address != self.asked.address
    }

    /// That of a request of HTTP with this head.
    pub(super) fn with_http(self, head: &[u8]) -> Self {
        Aim {
            protocol: Some(Kind::Http.as_str()),
            attributes: sniff::attributes(head),
            ..self
        }
    }
}

/// What is looked for of one request, and how.
pub(super) struct Sniffing {
    sniffer: Arc<Sniffer>,
    to: Destination,
    /// What the target is to fake answers.
    fake: Fake,
    /// Bytes are looked at.
    reads: bool,
    /// Rules ask about headers.
    with_attributes: bool,
}

impl Sniffing {
    /// `None`: nothing is looked for.
    pub(super) fn new(origin: &Origin, to: &Destination, resolver: &Resolver, asked: Asked) -> Option<Self> {
        let sniffer = Arc::clone(origin.sniffer.as_ref()?);
        let fake = to.address.ip().map_or(Fake::No, |ip| resolver.fake(ip));
        // Where the fake answer is forgotten, what the bytes say is all there is.
        let lost = fake == Fake::Unknown && !sniffer.metadata_only;
        let reads = lost || sniffer.reads(to.network, asked);
        (reads || fake != Fake::No).then(|| Sniffing {
            sniffer,
            to: to.clone(),
            fake,
            reads,
            with_attributes: asked.attributes,
        })
    }

    /// Whether the flow of datagrams that begins with this one needs to be held, or goes elsewhere than the client says.
    pub(super) fn needs_own_flow(&self, first: &[u8]) -> bool {
        self.fake != Fake::No || self.reads && sniff::is_quic(first)
    }

    /// What a first datagram says by itself.
    pub(super) fn glance(&self, first: &[u8]) -> Sniffed {
        Sniffed::from(self.reads.then(|| by_itself(first)).flatten())
    }

    /// Looks at the first bytes of a stream, which stay where they are.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) async fn look(&self, near: &mut Stream) -> Result<Sniffed, Error> {
        if !self.reads {
            return Ok(Sniffed::default());
        }
        // What is there already costs no time. Who waits for the server to speak is not kept waiting.
        let patience = match self.sniffer.is_server_first(self.to.port) {
            true => Duration::ZERO,
            false => PATIENCE,
        };
        let looking = async {
            loop {
                match sniff::stream(near.payload(), false) {
                    Look::Found(found) => return Ok(Some(found)),
                    Look::Nothing => return Ok(None),
                    Look::More(more) => {
                        let need = near.payload().len() + more;
                        while near.payload().len() < need {
                            if need > sniff::MAX_BYTES || !near.more().await.map_err(Some)? {
                                return Err(None);
                            }
                        }
                    }
                }
            }
        };
        let found = match timeout_at(Instant::now() + patience, looking).await {
            Ok(Ok(found)) => found,
            // What came before a connection broke is carried all the same; whoever carries it meets the break.
            Ok(Err(Some(error))) if near.payload().is_empty() || !matches!(error, Error::Io(_)) => return Err(error),
            // It ended, or its time is over: what is whole is used.
            Ok(Err(_)) | Err(_) => match sniff::stream(near.payload(), true) {
                Look::Found(found) => Some(found),
                _ => None,
            },
        };
        let is_http = found.as_ref().is_some_and(|found| found.kind == Kind::Http);
        Ok(Sniffed {
            attributes: match is_http && self.with_attributes {
                true => sniff::attributes(near.payload()),
                false => Attributes::new(),
            },
            found,
        })
    }

    /// Holds the first datagrams of a client for the target. Returns what they say, and the client with them in front.
    ///
    /// # Errors
    /// Those of receiving.
    pub(super) async fn hold(
        &self,
        room: &Room,
        near: Box<dyn PacketEnd>,
    ) -> Result<(Option<Found>, Box<dyn PacketEnd>), Error> {
        match self.reads {
            true => hold(room, near).await,
            false => Ok((None, near)),
        }
    }

    /// Looks at the first datagrams of a flow. `None`: there is nothing to look at.
    pub(super) fn watch(&self, room: &Room) -> Option<Watch> {
        self.reads.then(|| Watch::new(room))
    }

    /// What becomes of what was found, where only the target that was asked for can be reached. `None`: it cannot.
    pub(super) fn aim_in_place(self, sniffed: Sniffed) -> Option<Aim> {
        if self.fake != Fake::No {
            return None;
        }
        let mut aim = self.aim(sniffed).ok()?;
        if let Address::Domain(name) = &aim.dial.address
            && aim.is_renamed()
        {
            aim.name = Some(name.clone());
            aim.dial = aim.asked.clone();
        }
        Some(aim)
    }

    /// What becomes of what was found.
    ///
    /// # Errors
    /// [`Error::Forgotten`] for a fake address that stands for nothing.
    pub(super) fn aim(self, sniffed: Sniffed) -> Result<Aim, Error> {
        let Sniffing { sniffer, to, fake, .. } = self;
        let mut aim = Aim {
            protocol: sniffed.found.as_ref().map(|found| found.kind.as_str()),
            attributes: sniffed.attributes,
            ..Aim::from(to)
        };
        let found = sniffed.found.and_then(|found| Some((found.kind, found.domain?)));
        let forgotten = || Error::Forgotten {
            address: aim.asked.address.to_string(),
        };
        match (fake, found) {
            // What our own answer said is believed more than the client.
            (Fake::Name(name), _) => aim.dial.address = Address::Domain(Domain::new(&name).map_err(|_| forgotten())?),
            (Fake::Unknown, Some((_, name))) => aim.dial.address = Address::Domain(name),
            (Fake::Unknown, None) => {
                if let Some(kept) = FORGOTTEN.pass() {
                    tracing::warn!("{}{kept}", forgotten());
                }
                return Err(forgotten());
            }
            (Fake::No, Some((kind, name)))
                if sniffer.overrides(kind) && !sniffer.excludes(&aim.asked.address, &name) =>
            {
                tracing::debug!("{} is meant for {name}", aim.asked);
                match sniffer.route_only {
                    true => aim.name = Some(name),
                    false => aim.dial.address = Address::Domain(name),
                }
            }
            (Fake::No, _) => {}
        }
        Ok(aim)
    }
}

/// What the rules ask about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// What connections carry.
    pub(super) protocol: bool,
    /// The headers of requests.
    pub(super) attributes: bool,
}

#[cfg(test)]
mod tests;
