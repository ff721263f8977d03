//! Whoever watches what the rules decide.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use sealway_v2ray::Destination;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::Question;

/// Decisions that wait for whoever reads slowest. They are the same for all who watch.
const KEPT: usize = 1024;
/// Those who watch at once.
const MAX_WATCHERS: usize = 16;

/// What was decided of a connection, or of the flow of datagrams to a target.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decided {
    /// The tag of the inbound. Empty: none.
    pub inbound: String,
    /// What is dialled.
    pub target: Destination,
    /// A name that the target is known by besides its address.
    pub name: Option<String>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// The address that the client came to.
    pub local: Option<SocketAddr>,
    /// The user's e-mail. Empty: none.
    pub email: String,
    /// What it is found to carry.
    pub protocol: Option<String>,
    /// The HTTP request that it begins with, if rules look at that.
    pub attributes: BTreeMap<String, String>,
    /// The tag of the balancer that chose. Empty: none did.
    pub balancer: String,
    /// The tag of the outbound. Empty: it has none.
    pub outbound: String,
}

impl Decided {
    pub(crate) fn new(question: &Question<'_>, balancer: &str, outbound: &str) -> Decided {
        Decided {
            inbound: question.inbound.to_owned(),
            target: question.target.clone(),
            name: question.name.map(str::to_owned),
            source: question.source,
            local: question.local,
            email: question.email.to_owned(),
            protocol: question.protocol.map(str::to_owned),
            attributes: question.attributes.clone(),
            balancer: balancer.to_owned(),
            outbound: outbound.to_owned(),
        }
    }
}

/// Why there is no next decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Missed {
    /// So many were made before the last ones were taken.
    TooMany(u64),
    /// The server has ended.
    Ended,
}

/// Decisions from now on, in their order: from [`Control::watch_decisions`](crate::Control::watch_decisions).
///
/// At most 1,024 wait to be taken. Nothing that serves waits for that: who takes them too late misses the oldest.
#[derive(Debug)]
pub struct Decisions {
    from: Receiver<Arc<Decided>>,
    watchers: Weak<Watchers>,
}

impl Decisions {
    /// The next one, once it is made. Nothing is lost if this is not waited for to its end.
    ///
    /// # Errors
    /// [`Missed::TooMany`], after which those that are left can be taken, and [`Missed::Ended`].
    pub async fn next(&mut self) -> Result<Arc<Decided>, Missed> {
        self.from.recv().await.map_err(|error| match error {
            RecvError::Lagged(missed) => Missed::TooMany(missed),
            RecvError::Closed => Missed::Ended,
        })
    }
}

impl Drop for Decisions {
    fn drop(&mut self) {
        if let Some(watchers) = self.watchers.upgrade() {
            watchers.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Those who watch. While there is nobody, a decision costs one look at a number more.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    count: AtomicUsize,
    /// Made for the first one.
    sender: OnceLock<Sender<Arc<Decided>>>,
}

impl Watchers {
    /// Tells whoever watches, and waits for nobody.
    pub(crate) fn tell(&self, decided: impl FnOnce() -> Decided) {
        if self.count.load(Ordering::Relaxed) > 0
            && let Some(sender) = self.sender.get()
        {
            // Whoever watched may have gone meanwhile.
            let _ = sender.send(Arc::new(decided()));
        }
    }

    /// One more. `None`: there are too many.
    pub(crate) fn add(self: &Arc<Self>) -> Option<Decisions> {
        let more = |count| (count < MAX_WATCHERS).then_some(count + 1);
        self.count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Decisions {
            from: self.sender.get_or_init(|| channel(KEPT).0).subscribe(),
            watchers: Arc::downgrade(self),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::{IpAddr, Ipv4Addr};

    use sealway_v2ray::Address;

    use super::*;

    fn decided(port: u16) -> Decided {
        Decided {
            inbound: String::new(),
            target: Destination::tcp(Address::from(IpAddr::from(Ipv4Addr::LOCALHOST)), port),
            name: None,
            source: None,
            local: None,
            email: String::new(),
            protocol: None,
            attributes: BTreeMap::new(),
            balancer: String::new(),
            outbound: String::new(),
        }
    }

    #[tokio::test]
    async fn whoever_is_late_is_told_how_much_he_missed_and_nobody_waits_for_him() {
        let watchers = Arc::new(Watchers::default());
        watchers.tell(|| unreachable!("nobody watches"));
        let (mut late, mut early) = (watchers.add().unwrap(), watchers.add().unwrap());
        let all = u16::try_from(KEPT).unwrap() + 7;
        for port in 0..all {
            watchers.tell(|| decided(port));
            assert_eq!(early.next().await.unwrap().target.port, port);
        }
        assert_eq!(late.next().await, Err(Missed::TooMany(7)));
        assert_eq!(late.next().await.unwrap().target.port, 7);
        drop((late, early));
        watchers.tell(|| unreachable!("nobody watches any more"));
    }

    #[tokio::test]
    async fn so_many_watch_at_once_until_the_end() {
        let watchers = Arc::new(Watchers::default());
        let mut all: Vec<_> = std::iter::from_fn(|| watchers.add()).take(MAX_WATCHERS + 1).collect();
        assert_eq!(all.len(), MAX_WATCHERS);
        all.pop();
        all.extend(watchers.add());
        assert_eq!(all.len(), MAX_WATCHERS);
        drop(watchers);
        assert_eq!(all[0].next().await, Err(Missed::Ended));
    }
}
