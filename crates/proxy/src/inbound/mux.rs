//! Mux.Cool, as the server: a connection of any inbound that carries many sessions.

mod association;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use sealway_v2ray::{Network, mux, packet_addr as wire};
use tokio::task::JoinSet;

use super::flows::Shares;
use super::packet_addr::{Datagrams, Within};
use crate::closing::LINGER;
use crate::dispatch::{Dispatcher, Origin, Request, Session, User};
use crate::error::{Error, Pending};
use crate::log::about_this;
use crate::mux::{Begun, Driver, Entry, Inbox, Link, MAX_SESSIONS, Pipe, Role, SERVER_IDLE};
use crate::stats::Traffic;
use crate::stream::Stream;

use association::Association;
pub(super) use association::Associations;

/// What a request is whose target only stands for something: a mux, or datagrams that name their own targets.
///
/// # Errors
/// [`Error::Unsupported`] for a multiplexer that we do not speak.
pub(super) fn within(request: Request, associations: &Arc<Associations>) -> Result<Request, Error> {
    Ok(match request {
        Request::Stream { near, to, user } if mux::is_mux(&to) => Request::Session(Box::new(Mux {
            stream: *near,
            user,
            associations: Arc::clone(associations),
            datagrams_only: false,
        })),
        request => without_mux(request, Shares::of_carrier)?,
    })
}

/// A mux that may carry datagrams only.
pub(super) fn of_datagrams(stream: Stream, user: Arc<User>, associations: Arc<Associations>) -> Request {
    Request::Session(Box::new(Mux {
        stream,
        user,
        associations,
        datagrams_only: true,
    }))
}

/// The same of a request within a mux, where there is no other.
fn without_mux(request: Request, shares: impl FnOnce() -> Shares) -> Result<Request, Error> {
    Ok(match request {
        Request::Stream { to, .. } if mux::is_sing_mux(&to) => {
            return Err(Error::Unsupported(
                "sing-box's multiplex (smux, yamux, h2mux): turn `multiplex` off there, or use Mux.Cool",
            ));
        }
        Request::Stream { to, .. } if mux::is_mux(&to) => {
            return Err(Error::Unsupported("a mux within a mux"));
        }
        Request::Stream { near, to, user } if wire::is_host(&to, wire::STREAM_HOST) => {
            Request::Session(Box::new(Datagrams::new(Within::stream(near), user, shares())))
        }
        Request::Datagrams { near, to, user } if wire::is_host(&to, wire::DATAGRAM_HOST) => {
            Request::Session(Box::new(Datagrams::new(Within::datagrams(near, to), user, shares())))
        }
        other => other,
    })
}

/// A carrier, as the server.
struct Mux {
    stream: Stream,
    user: Arc<User>,
    associations: Arc<Associations>,
    datagrams_only: bool,
}

impl Session for Mux {
    fn user(&self) -> &User {
        &self.user
    }

    fn serve(self: Box<Self>, dispatcher: Arc<Dispatcher>, origin: Origin) -> Pending<'static, Option<Request>> {
        let server = Server {
            dispatcher,
            origin,
            user: self.user,
            associations: self.associations,
            datagrams_only: self.datagrams_only,
            shares: Shares::of_carrier(),
            waiting: Arc::default(),
            alive: Arc::default(),
            tasks: JoinSet::new(),
        };
        let driver = Driver::new(self.stream, Link::new(), server);
        Box::pin(async move {
            let (ended, mut server) = Box::pin(driver.run()).await;
            // What was said before the end is still carried to where it goes, if that takes no long time.
            let rest = async { while server.tasks.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(LINGER, rest).await;
            ended.map(|()| None)
        })
    }
}

/// The server's end of a carrier.
struct Server {
    dispatcher: Arc<Dispatcher>,
    origin: Origin,
    user: Arc<User>,
    associations: Arc<Associations>,
    datagrams_only: bool,
    shares: Shares,
    /// Bytes of datagrams that have come and wait.
    waiting: Arc<AtomicUsize>,
    /// Held by every association that began here.
    alive: Arc<()>,
    /// Streams. They end with the carrier.
    tasks: JoinSet<()>,
}

impl Server {
    fn stream(&mut self, begun: Begun<'_>) -> Entry {
        let inbox = Arc::<Inbox>::default();
        let pipe = Pipe::theirs(Arc::clone(begun.link), Arc::clone(&inbox), begun.id, begun.serial);
        let near = Box::new(Stream::new(pipe, Traffic::default()));
        let (dispatcher, origin) = (Arc::clone(&self.dispatcher), self.origin.clone());
        let (to, user, shares) = (begun.to, Arc::clone(&self.user), self.shares.clone());
        let task = self.tasks.spawn(about_this(async move {
            match without_mux(Request::Stream { near, to, user }, || shares) {
                Ok(request) => dispatcher.serve(&origin, request).await,
                Err(error) => dispatcher.rejected(&origin, &error),
            }
        }));
        Entry::Stream(inbox, Some(task))
    }

    fn datagrams(&mut self, begun: Begun<'_>) -> Entry {
        let target = begun.to.clone();
        let attach =
            |association: &Arc<Association>| association.attach(Arc::clone(begun.link), begun.id, begun.serial);
        let known = begun
            .global
            .and_then(|global| self.associations.find(&self.user, self.origin.remote, global));
        if let Some(association) = known.filter(attach) {
            return Entry::Packets(association.inbox(), target, Some(association));
        }
        let association = Association::new(Arc::clone(&self.user), self.origin.remote, Arc::clone(&self.waiting));
        attach(&association);
        if let Some(global) = begun.global {
            self.associations.add(&association, global);
        }
        let (dispatcher, origin) = (Arc::clone(&self.dispatcher), self.origin.clone());
        let serving = association.serve(dispatcher, origin, self.shares.clone());
        let (alive, one) = (Arc::clone(&self.alive), Arc::clone(&association));
        let mut watch = self.user.watch();
        self.associations.spawn(about_this(async move {
            let serving = async { watch.unless_gone(serving).await.unwrap_or_default() };
            one.run(serving).await;
            drop(alive);
        }));
        Entry::Packets(association.inbox(), target, Some(association))
    }
}

impl Role for Server {
    fn begin(&mut self, begun: Begun<'_>) -> Option<Entry> {
        while self.tasks.try_join_next().is_some() {}
        // A client may end sessions faster than what they began here ends.
        if self.tasks.len() + Arc::strong_count(&self.alive) > MAX_SESSIONS {
            return None;
        }
        Some(match begun.to.network {
            Network::Tcp if self.datagrams_only => {
                let refused = Error::Unsupported("a stream in a mux, for an account with xtls-rprx-vision");
                self.dispatcher.rejected(&self.origin, &refused);
                return None;
            }
            Network::Tcp => self.stream(begun),
            Network::Udp => self.datagrams(begun),
        })
    }

    fn idle(&self) -> Duration {
        SERVER_IDLE
    }
}
