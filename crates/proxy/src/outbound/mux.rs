//! Many connections in one: carriers that an outbound keeps and shares out.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sealway_v2ray::mux::{self, BaseKey, GlobalId};
use sealway_v2ray::{Destination, Network};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Caller, Far, Protocol, REACH};
use crate::error::{Error, Pending};
use crate::mux::{Begun, CLIENT_IDLE, Driver, Entry, Inbox, Link, PacketInbox, Packets, Pipe, Role};
use crate::random;
use crate::roads::inherit;
use crate::settings::{MuxDatagrams, MuxOut, MuxPort443, Outbound, OutboundProtocol};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::PacketEnd;

/// Makes the ids by which servers find the associations of programs again.
#[derive(Clone)]
pub(super) struct Programs(BaseKey);

impl Programs {
    pub(super) fn new(settings: &MuxOut) -> Result<Programs, Error> {
        Ok(Programs(match &settings.base_key {
            Some(key) => key.clone(),
            None => BaseKey::from_bytes(random::bytes()?),
        }))
    }

    /// The id of the program that asks, if that is known.
    pub(super) fn id(&self, caller: &Caller) -> Option<GlobalId> {
        let source = caller.source.filter(|_| caller.is_program)?;
        Some(GlobalId::new(&self.0, source))
    }
}

/// The protocol with a mux around it, if the settings ask for one.
pub(super) fn around(inner: Box<dyn Protocol>, settings: &Outbound) -> Result<Box<dyn Protocol>, Error> {
    let asked = &settings.mux;
    if matches!(
        settings.protocol,
        OutboundProtocol::Freedom(_) | OutboundProtocol::Blackhole { .. }
    ) {
        return Ok(inner);
    }
    let inner: Arc<dyn Protocol> = inner.into();
    let pool = |most: u16| Arc::new(Pool::new(Arc::clone(&inner), usize::from(most)));
    let streams = asked.streams.map(pool);
    Ok(Box::new(Muxed {
        datagrams: match asked.datagrams {
            MuxDatagrams::Native => None,
            MuxDatagrams::Shared => streams.clone(),
            MuxDatagrams::Own(most) => Some(pool(most)),
        },
        streams,
        port_443: asked.port_443,
        programs: Programs::new(asked)?,
        inner,
    }))
}

/// An outbound some of whose connections share carriers.
struct Muxed {
    inner: Arc<dyn Protocol>,
    streams: Option<Arc<Pool>>,
    datagrams: Option<Arc<Pool>>,
    port_443: MuxPort443,
    programs: Programs,
}

impl Muxed {
    /// The carriers for datagrams to this target, if they go through any.
    fn datagrams_to(&self, to: &Destination) -> Option<&Arc<Pool>> {
        let skips = to.port == 443 && self.port_443 == MuxPort443::Skip;
        self.datagrams.as_ref().filter(|_| !skips)
    }
}

impl Protocol for Muxed {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        let Some(pool) = &self.streams else {
            return self.inner.connect(to, caller);
        };
        Box::pin(async move {
            let inbox = Arc::<Inbox>::default();
            let (link, id, ready) = pool.begin(Some(to), &|_| Entry::Stream(Arc::clone(&inbox), None))?;
            let stream = Stream::new(Pipe::ours(link, inbox, id), Traffic::default());
            connected(ready).await?;
            Ok(Far::Stream(Box::new(stream)))
        })
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        if to.port == 443 && self.port_443 == MuxPort443::Reject {
            let refused = Error::forbidden(&to, "xudpProxyUDP443 of the outbound's mux");
            return Box::pin(async { Err(refused) });
        }
        let Some(pool) = self.datagrams_to(to) else {
            return self.inner.associate(to, caller);
        };
        Box::pin(async move {
            let target = Destination {
                network: Network::Udp,
                ..to.clone()
            };
            let (packets, ready) = {
                let inbox = OnceCell::new();
                let entry = |link: &Link| {
                    let inbox = inbox.get_or_init(|| PacketInbox::new(Arc::clone(&link.datagrams)));
                    Entry::Packets(Arc::clone(inbox), target.clone(), None)
                };
                let (link, id, ready) = pool.begin(None, &entry)?;
                let inbox = inbox.into_inner().unwrap_or_default();
                (Packets::new(link, inbox, id, self.programs.id(caller)), ready)
            };
            connected(ready).await?;
            Ok(packets as Box<dyn PacketEnd>)
        })
    }

    fn is_open_to_all(&self, to: &Destination) -> bool {
        match self.datagrams_to(to) {
            // Those to port 443 may be refused, which others are not.
            Some(_) => to.port != 443 || self.port_443 == MuxPort443::Allow,
            None => self.inner.is_open_to_all(to),
        }
    }
}

/// Whether a carrier is connected, and why not.
type Ready = watch::Receiver<Option<Result<(), String>>>;

/// The carriers of an outbound. They end with it.
struct Pool {
    inner: Arc<dyn Protocol>,
    /// Sessions in one carrier at once.
    most: usize,
    carriers: Mutex<Carriers>,
}

#[derive(Default)]
struct Carriers {
    known: Vec<(Arc<Link>, Ready)>,
    tasks: JoinSet<()>,
}

impl Pool {
    fn new(inner: Arc<dyn Protocol>, most: usize) -> Pool {
        Pool {
            inner,
            most,
            carriers: Mutex::default(),
        }
    }

    /// Begins a session in the first carrier that has room, or in a new one.
    fn begin(
        &self,
        to: Option<&Destination>,
        entry: &dyn Fn(&Link) -> Entry,
    ) -> Result<(Arc<Link>, u16, Ready), Error> {
        // Nothing that is done under this lock can panic half way.
        let mut carriers = self.carriers.lock().unwrap_or_else(PoisonError::into_inner);
        while carriers.tasks.try_join_next().is_some() {}
        carriers.known.retain(|(link, _)| !link.is_spent());
        for (link, ready) in &carriers.known {
            if let Some(id) = link.begin(self.most, to, entry) {
                return Ok((Arc::clone(link), id, ready.clone()));
            }
        }
        let link = Link::new();
        let (tell, ready) = watch::channel(None);
        let Some(id) = link.begin(self.most, to, entry) else {
            return Err(Error::protocol("Mux.Cool", "a new carrier takes no session"));
        };
        let (inner, driven) = (Arc::clone(&self.inner), Arc::clone(&link));
        let carrying = async move { carry(&*inner, driven, tell).await };
        carriers.tasks.spawn(inherit(carrying));
        carriers.known.push((Arc::clone(&link), ready.clone()));
        Ok((link, id, ready))
    }
}

/// Waits until a carrier is connected.
async fn connected(mut ready: Ready) -> Result<(), Error> {
    let connected = match ready.wait_for(Option::is_some).await {
        Ok(state) => state.clone().unwrap_or(Ok(())),
        // The carrier's task is gone.
        Err(_) => Err("the carrier was closed".to_owned()),
    };
    connected.map_err(|why| Error::Connect {
        to: "the server of a mux".to_owned(),
        source: std::io::Error::other(why),
    })
}

/// Dials a carrier and drives it to its end.
async fn carry(inner: &dyn Protocol, link: Arc<Link>, tell: watch::Sender<Option<Result<(), String>>>) {
    // Whoever asked first is one of many: the carrier is nobody's in particular.
    let caller = Caller::default();
    let dialled = async {
        let to = mux::target()?;
        let reached = tokio::time::timeout(REACH, inner.connect(&to, &caller)).await;
        reached.map_err(|_| Error::TimedOut("answer of the next server"))?
    };
    let stream = match dialled.await {
        Ok(Far::Stream(stream)) => stream,
        Ok(Far::Nowhere(_)) => {
            link.fail();
            let _ = tell.send(Some(Err("the outbound leads nowhere".to_owned())));
            return;
        }
        Err(error) => {
            link.fail();
            let _ = tell.send(Some(Err(error.to_string())));
            return;
        }
    };
    let _ = tell.send(Some(Ok(())));
    let (ended, _) = Driver::new(*stream, link, Client).run().await;
    if let Err(error) = ended {
        tracing::debug!("a carrier of a mux broke off: {error}");
    }
}

/// The client's end of a carrier.
struct Client;

impl Role for Client {
    /// Servers begin nothing.
    fn begin(&mut self, _: Begun<'_>) -> Option<Entry> {
        None
    }

    fn idle(&self) -> Duration {
        CLIENT_IDLE
    }
}
