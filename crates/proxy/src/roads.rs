//! Ways out for those who stand below the outbounds: a chain of outbounds, a question to a DNS server, a probe.
//!
//! The engine makes [`Roads`] first and says where they lead when everything stands. They hold nothing alive: when the engine
//! is gone, they lead nowhere.
//!
//! One way may need another: an outbound dials through a second one, whose server has a name that a third one asks for. What
//! stands in a configuration does not show every circle, so each way knows those that it is needed for. One that needs itself
//! ends with an error, and so does one that is needed by [`MAX_DEPTH`] others. Whoever dials in a task of its own takes that
//! knowledge along with [`inherit`].

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};

use sealway_v2ray::{Destination, Network};

use crate::dns;
use crate::error::{Error, Pending};
use crate::policy::Exempt;
use crate::settings;
use crate::stream::Stream;
use crate::udp::PacketEnd;

/// Ways that may need each other, one after another. A chain of outbounds and the names of their servers need a few.
const MAX_DEPTH: usize = 8;

/// Who wants to go out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The client's address.
    pub(crate) source: Option<SocketAddr>,
    /// The address it came to.
    pub(crate) local: Option<SocketAddr>,
    /// It came from outside.
    pub(crate) remote: bool,
    /// The firewall has led it here.
    pub(crate) captured: bool,
    /// It is of a private network, and the firewall has led it here.
    pub(crate) neighbour: bool,
    /// The client's address is that of the program that sends datagrams.
    pub(crate) is_program: bool,
    /// Private addresses that it may reach all the same.
    pub(crate) exempt: Option<Exempt>,
    /// It is the object `dns`, which asks one of its servers.
    pub(crate) asks_names: bool,
}

impl Caller {
    /// The one for whom an outbound asks another: the server it goes to is not what the client has asked for.
    pub(crate) fn onward(&self) -> Caller {
        Caller {
            source: self.source,
            local: self.local,
            ..Caller::default()
        }
    }
}

/// What chooses the outbound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// It is the one with this tag.
    Through(Arc<str>),
    /// The rules, for what came in by an inbound of this tag.
    Routed(Arc<str>),
}

/// What the engine leads ways to: the outbounds and the rules.
pub(crate) trait Ways: Send + Sync {
    /// Opens a stream to the target.
    fn connect<'a>(&'a self, way: &'a Way, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Stream>;

    /// Opens an association for datagrams to the target.
    fn associate<'a>(
        &'a self,
        way: &'a Way,
        to: &'a Destination,
        caller: &'a Caller,
    ) -> Pending<'a, Box<dyn PacketEnd>>;
}

/// Leads out by an outbound or by the rules.
pub(crate) struct Roads {
    tags: Vec<String>,
    ways: Arc<OnceLock<Weak<dyn Ways>>>,
}

impl Roads {
    /// Roads to outbounds with these tags, which lead nowhere before [`Roads::set`].
    pub(crate) fn new(tags: Vec<String>) -> Arc<Roads> {
        let ways = Arc::default();
        Arc::new(Roads { tags, ways })
    }

    /// The same roads, where there are outbounds with these tags.
    pub(crate) fn to(&self, tags: Vec<String>) -> Arc<Roads> {
        let ways = Arc::clone(&self.ways);
        Arc::new(Roads { tags, ways })
    }

    /// Says where they lead. That is known only after all has been built that may want to go out.
    pub(crate) fn set(&self, ways: Weak<dyn Ways>) {
        // They are built once.
        let _ = self.ways.set(ways);
    }

    /// The tag of an outbound that there is.
    ///
    /// # Errors
    /// [`Error::Config`] at this place of the configuration if no outbound has the tag.
    pub(crate) fn find(&self, place: &str, tag: &str) -> Result<Arc<str>, Error> {
        let found = self.tags.iter().find(|one| !one.is_empty() && *one == tag);
        let found = found.map(|tag| tag.as_str().into());
        found.ok_or_else(|| Error::config(place, format!("there is no outbound with the tag {tag:?}")))
    }

    /// A stream to the target by one outbound.
    ///
    /// # Errors
    /// Those of the outbound, [`Error::Forbidden`] if it leads nowhere, [`Error::Circle`] and, without an engine,
    /// [`Error::Closed`].
    pub(crate) async fn through(
        &self,
        outbound: &Arc<str>,
        to: &Destination,
        caller: &Caller,
    ) -> Result<Stream, Error> {
        self.connect(Way::Through(Arc::clone(outbound)), to, caller).await
    }

    /// An association for datagrams to the target by one outbound.
    ///
    /// # Errors
    /// As [`Roads::through`].
    pub(crate) async fn packets_through(
        &self,
        outbound: &Arc<str>,
        to: &Destination,
        caller: &Caller,
    ) -> Result<Box<dyn PacketEnd>, Error> {
        self.associate(Way::Through(Arc::clone(outbound)), to, caller).await
    }

    /// A stream to the target by the outbound that the rules choose, as if it were asked for by a client of the inbound.
    ///
    /// # Errors
    /// As [`Roads::through`].
    pub(crate) async fn routed(&self, inbound: &Arc<str>, to: &Destination) -> Result<Stream, Error> {
        self.connect(Way::Routed(Arc::clone(inbound)), to, &Caller::default())
            .await
    }

    /// An association for datagrams to the target by the outbound that the rules choose.
    ///
    /// # Errors
    /// As [`Roads::through`].
    pub(crate) async fn packets_routed(
        &self,
        inbound: &Arc<str>,
        to: &Destination,
    ) -> Result<Box<dyn PacketEnd>, Error> {
        self.associate(Way::Routed(Arc::clone(inbound)), to, &Caller::default())
            .await
    }

    fn ways(&self) -> Result<Arc<dyn Ways>, Error> {
        self.ways.get().and_then(Weak::upgrade).ok_or(Error::Closed)
    }

    async fn connect(&self, way: Way, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let to = Destination {
            network: Network::Tcp,
            ..to.clone()
        };
        let (ways, step) = (self.ways()?, self.step(way, to)?);
        let connecting = async { ways.connect(&step.way, &step.to, caller).await };
        STEP.scope(Some(Arc::clone(&step)), connecting).await
    }

    async fn associate(&self, way: Way, to: &Destination, caller: &Caller) -> Result<Box<dyn PacketEnd>, Error> {
        let to = Destination {
            network: Network::Udp,
            ..to.clone()
        };
        let (ways, step) = (self.ways()?, self.step(way, to)?);
        let associating = async { ways.associate(&step.way, &step.to, caller).await };
        STEP.scope(Some(Arc::clone(&step)), associating).await
    }

    /// A step further on the way of this task.
    fn step(&self, way: Way, to: Destination) -> Result<Arc<Step>, Error> {
        let from = current();
        let (mut depth, mut before) = (1, &from);
        while let Some(step) = before {
            depth += 1;
            if depth > MAX_DEPTH || step.way == way && step.to == to {
                return Err(Error::Circle {
                    way: match &way {
                        Way::Through(tag) => format!("outbound {tag:?}"),
                        Way::Routed(tag) => format!("the rules for what came in by {tag:?}"),
                    },
                    to: to.to_string(),
                });
            }
            before = &step.from;
        }
        Ok(Arc::new(Step { way, to, from }))
    }
}

/// Another outbound that an outbound dials through.
pub(crate) struct Through {
    roads: Arc<Roads>,
    outbound: Arc<str>,
    /// Names are resolved here, and not at the other end.
    pub(crate) resolves: bool,
}

impl Through {
    /// The other outbound, as the settings name it.
    ///
    /// # Errors
    /// [`Error::Config`] at `place` if there is none.
    pub(crate) fn new(place: &str, settings: &settings::Through, roads: &Arc<Roads>) -> Result<Through, Error> {
        Ok(Through {
            outbound: roads.find(place, &settings.outbound)?,
            resolves: settings.resolves,
            roads: Arc::clone(roads),
        })
    }

    /// A stream to the target.
    ///
    /// # Errors
    /// Those of [`Roads::through`].
    pub(crate) async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        self.roads.through(&self.outbound, to, caller).await
    }

    /// An association for datagrams to the target.
    ///
    /// # Errors
    /// Those of [`Roads::through`].
    pub(crate) async fn packets(&self, to: &Destination, caller: &Caller) -> Result<Box<dyn PacketEnd>, Error> {
        self.roads.packets_through(&self.outbound, to, caller).await
    }
}

/// A way, and the one that it is needed for.
struct Step {
    way: Way,
    to: Destination,
    from: Option<Arc<Step>>,
}

tokio::task_local! {
    static STEP: Option<Arc<Step>>;
}

fn current() -> Option<Arc<Step>> {
    STEP.try_with(Clone::clone).unwrap_or_default()
}

/// Whether some way needs what this task does.
pub(crate) fn is_needed() -> bool {
    current().is_some()
}

/// The future for a task of its own, which is still needed for what needs this one: ways, and answers of the object `dns`.
pub(crate) fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    STEP.scope(current(), dns::inherit(future))
}

#[cfg(test)]
mod tests;
