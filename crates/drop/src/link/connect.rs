//! Where the other end is, and the connections to it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sealway_session::Session;
use sealway_session::handshake::Role;

use super::admission::Admission;
use super::connection::{Connection, MAX_CONNECTIONS};
use super::direct::{Direct, Notes, Ways};
use super::establish::{Deadline, JOIN, PATIENCE, Peered, Setup, handshake, send_byte};
use super::listen::Waker;
use super::{join, listen, race, socket};
use crate::cancel::Cancel;
use crate::dial::TICK;
use crate::relay::{self, Meeting};
use crate::{Error, lock};

/// How long the connections of a session may take to come up where all of them are needed before anything goes on.
pub const GATHER: Duration = Duration::from_secs(30);

/// Strangers that may come to the nameplates that an end opens at a relay, one after the other.
const RELAY_STRANGERS: u32 = 8;

/// Where the other end is.
pub enum Place {
    /// It listens at one of these addresses. They are tried beside each other, each a little after the one before.
    Dial {
        /// The addresses of one host, the likely ones first; eight at most are tried.
        addresses: Vec<SocketAddr>,
        /// How long to try again while nobody listens there.
        patience: Duration,
    },
    /// It comes to this port of ours.
    Listen(TcpListener),
    /// Both come to a relay.
    Relay {
        /// `host:port` of the relay.
        address: String,
        /// How they find each other there.
        meeting: Meeting,
    },
}

/// A session that stands, and how it gets more connections.
pub struct Connected {
    /// The session and its first connection.
    pub peered: Peered,
    /// The others.
    pub data: DataConnections,
}

/// Brings up a session with the end at `place`, which may use up to `connections` further connections. From then on `cancel` does not
/// shut its first connection down: whoever talks on it tells the other end why it ends.
///
/// # Errors
/// [`Error::Network`], [`Error::CodeSpent`], [`Error::Cancelled`], and what the session refuses.
pub fn connect(place: Place, setup: &Setup, connections: u32, cancel: &Cancel) -> Result<Connected, Error> {
    connect_telling(place, setup, connections, cancel, &|error| {
        tracing::warn!(%error, "a connection was turned away");
    })
}

/// The same; `told` hears why an end was turned away that speaks the protocol, while the waiting goes on.
///
/// # Errors
/// As [`connect`].
pub fn connect_telling(
    place: Place,
    setup: &Setup,
    connections: u32,
    cancel: &Cancel,
    told: &(dyn Fn(&Error) + Sync),
) -> Result<Connected, Error> {
    let stopped = |error| if cancel.is_set() { Error::Cancelled } else { error };
    try_to(place, setup, connections, cancel, told).map_err(stopped)
}

fn try_to(
    place: Place,
    setup: &Setup,
    connections: u32,
    cancel: &Cancel,
    told: &(dyn Fn(&Error) + Sync),
) -> Result<Connected, Error> {
    let (peered, origin) = match place {
        Place::Dial { addresses, patience } => {
            let (peered, address) = race::reach(&addresses, Instant::now() + patience, setup, cancel)?;
            (peered, Origin::Dial(address))
        }
        Place::Listen(listener) => {
            let waker = Waker::new()?;
            let (peered, early) = listen::session(&listener, &waker, setup, cancel, told)?;
            (peered, Origin::Listen(listener, early, waker))
        }
        Place::Relay { address, meeting } => {
            let (peered, role) = meet(&address, &meeting, setup, cancel, told)?;
            (peered, Origin::Relay(address, role))
        }
    };
    // Whoever talks on it says why it ends.
    peered.connection.release();
    let data = DataConnections::new(peered.session.clone(), origin, connections);
    Ok(Connected { peered, data })
}

/// A session with whoever comes to a relay. Who opened a nameplate opens another one if a stranger came: numbers are small, and anybody
/// can claim one.
fn meet(
    address: &str,
    meeting: &Meeting,
    setup: &Setup,
    cancel: &Cancel,
    told: &(dyn Fn(&Error) + Sync),
) -> Result<(Peered, Role), Error> {
    let mut strangers = 0;
    loop {
        let (stream, role) = relay::meet(address, meeting, cancel)?;
        socket::prepare(&stream).map_err(Error::network("the relay"))?;
        match handshake(stream, setup, role, Deadline::after(PATIENCE), cancel, &|_| true) {
            Ok(peered) => return Ok((peered, role)),
            Err(error @ (Error::CodeSpent | Error::Cancelled)) => return Err(error),
            Err(error) if role == Role::Initiator || strangers == RELAY_STRANGERS => return Err(error),
            Err(error) => {
                strangers += 1;
                told(&error);
            }
        }
    }
}

/// Something that lasts as long as whoever has it.
pub(super) type Kept = Box<dyn Send + Sync>;

pub(super) enum Origin {
    /// To the address at which the session came up.
    Dial(SocketAddr),
    /// With connections that came before the session stood at this end.
    Listen(TcpListener, Vec<listen::Early>, Waker),
    Relay(String, Role),
    /// From a port with several sessions, which hands them on.
    Hosted(Mutex<Receiver<Result<Connection, Error>>>, Kept),
}

/// How a session gets further connections.
pub struct DataConnections {
    session: Arc<Session>,
    origin: Origin,
    count: u32,
}

impl DataConnections {
    pub(super) fn new(session: Arc<Session>, origin: Origin, connections: u32) -> Self {
        Self {
            session,
            origin,
            count: connections.clamp(1, MAX_CONNECTIONS),
        }
    }

    /// What looks for a direct path, where the ends have met at a relay.
    pub fn direct(&self, ways: Ways) -> Option<Direct> {
        match &self.origin {
            Origin::Relay(address, role) => Some(Direct::new(self.session.clone(), address.clone(), *role, ways)),
            _ => None,
        }
    }

    /// Begins to bring them up, in threads of its own.
    pub fn open(self, cancel: &Cancel) -> Connections {
        self.open_beside(None, cancel)
    }

    /// The same; those that `direct` finds come too, which must run then.
    pub fn open_beside(self, direct: Option<&Direct>, cancel: &Cancel) -> Connections {
        let indexes: Vec<u32> = (1..=self.count).collect();
        self.open_only_beside(&indexes, direct, cancel)
    }

    /// The same for connections of these numbers.
    pub fn open_only(self, indexes: &[u32], cancel: &Cancel) -> Connections {
        self.open_only_beside(indexes, None, cancel)
    }

    /// The same; those that `direct` finds come too, which must run then.
    pub fn open_only_beside(self, indexes: &[u32], direct: Option<&Direct>, cancel: &Cancel) -> Connections {
        let (found, wanted) = channel();
        if let Some(direct) = direct {
            direct.finds_for(&found);
        }
        let stopped = Arc::new(AtomicBool::new(false));
        let Self { session, origin, .. } = self;
        let count = u32::try_from(indexes.len()).unwrap_or(MAX_CONNECTIONS);
        let (mut waker, mut wanted, mut hosted) = (None, wanted, None);
        match origin {
            Origin::Hosted(joined, of) => {
                wanted = joined.into_inner().unwrap_or_else(PoisonError::into_inner);
                hosted = Some(of);
            }
            Origin::Listen(listener, early, waiting) => {
                waker = Some(waiting.clone());
                let joins = Joins {
                    waker: waiting,
                    session,
                    joined: Arc::default(),
                    stopped: stopped.clone(),
                    cancel: cancel.clone(),
                    found,
                };
                listen::attend("joins", move || joins.wait(&listener, early, count));
            }
            origin => {
                let origin = Arc::new(origin);
                for &index in indexes {
                    let (origin, session, found) = (origin.clone(), session.clone(), found.clone());
                    let (stopped, cancel) = (stopped.clone(), cancel.clone());
                    listen::attend("join", move || {
                        let _ = found.send(go(&origin, &session, index, &stopped, &cancel));
                    });
                }
            }
        }
        Connections {
            wanted: Mutex::new(wanted),
            stopped,
            waker,
            direct: direct.map(Direct::notes),
            first: Mutex::new(First::None),
            _hosted: hosted,
        }
    }
}

/// One connection to an address or by a relay.
fn go(
    origin: &Origin,
    session: &Session,
    index: u32,
    stopped: &AtomicBool,
    cancel: &Cancel,
) -> Result<Connection, Error> {
    let stop = || stopped.load(Ordering::SeqCst) || cancel.is_set();
    match origin {
        Origin::Dial(address) => {
            let mut stream = socket::dial(*address, &|| cancel.is_set())?;
            send_byte(&mut stream, JOIN)?;
            join::initiate(stream, session, index, cancel)
        }
        Origin::Relay(address, role) => {
            let token = session.token(index)?;
            let stream = relay::pair(address, &token, *role, &stop)?;
            socket::prepare(&stream).map_err(Error::network("the relay"))?;
            match role {
                Role::Initiator => join::initiate(stream, session, index, cancel),
                Role::Responder => join::respond(stream, session, cancel),
            }
        }
        Origin::Listen(..) | Origin::Hosted(..) => Err(Error::Protocol("a listening end does not dial")),
    }
}

/// Connections that come to a listening end to join its session.
#[derive(Clone)]
struct Joins {
    session: Arc<Session>,
    joined: Arc<AtomicU32>,
    stopped: Arc<AtomicBool>,
    waker: Waker,
    cancel: Cancel,
    found: Sender<Result<Connection, Error>>,
}

impl Joins {
    fn wait(&self, listener: &TcpListener, early: Vec<listen::Early>, count: u32) {
        for early in early {
            let joins = self.clone();
            listen::attend("join", move || match early.joins {
                true => joins.join(early.stream),
                false => joins.ask(early.stream),
            });
        }
        let admission: Arc<Admission> = Arc::default();
        let enough = || self.stop() || self.joined.load(Ordering::SeqCst) >= count;
        loop {
            match listen::accept(listener, &self.waker, &enough) {
                Ok(Some(stream)) => {
                    // Who joins keeps its place until it has.
                    if let Some(admitted) = admission.admit(&stream) {
                        let joins = self.clone();
                        listen::attend("join", move || {
                            let _place = admitted;
                            joins.ask(stream);
                        });
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    let _ = self.found.send(Err(error));
                    return;
                }
            }
        }
    }

    fn stop(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.cancel.is_set()
    }

    fn ask(&self, mut stream: TcpStream) {
        if listen::first_byte(&mut stream, &|| self.stop()) == listen::FirstByte::Came(JOIN) {
            self.join(stream);
        }
    }

    fn join(&self, stream: TcpStream) {
        match join::respond(stream, &self.session, &self.cancel) {
            Ok(connection) => {
                self.joined.fetch_add(1, Ordering::SeqCst);
                self.waker.wake();
                let _ = self.found.send(Ok(connection));
            }
            Err(error) => tracing::debug!(%error, "a connection that did not join"),
        }
    }
}

enum First {
    None,
    Error(Error),
    Came,
}

/// Connections as they come up.
pub struct Connections {
    wanted: Mutex<Receiver<Result<Connection, Error>>>,
    stopped: Arc<AtomicBool>,
    waker: Option<Waker>,
    direct: Option<Notes>,
    first: Mutex<First>,
    _hosted: Option<Kept>,
}

impl Connections {
    /// The next one; `None` when no more will come. An error only if there was not a single one.
    pub fn next(&self) -> Option<Result<Connection, Error>> {
        let wanted = lock(&self.wanted);
        loop {
            if let ControlFlow::Break(next) = self.sort(wanted.recv().ok()) {
                return next;
            }
        }
    }

    /// As [`Connections::next`], but [`Error::Network`] with [`TimedOut`](std::io::ErrorKind::TimedOut) once it is `until`, if that is
    /// given, and
    /// [`Error::Cancelled`] soon after `stop` says so.
    pub fn next_until(&self, until: Option<Instant>, stop: &dyn Fn() -> bool) -> Option<Result<Connection, Error>> {
        let wanted = lock(&self.wanted);
        loop {
            let left = until.map_or(TICK, |until| until.saturating_duration_since(Instant::now()));
            let came = match wanted.recv_timeout(left.min(TICK)) {
                Ok(came) => Some(came),
                Err(RecvTimeoutError::Disconnected) => None,
                Err(RecvTimeoutError::Timeout) if stop() => return Some(Err(Error::Cancelled)),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    let late = Error::network("waiting for the connections of the other end");
                    return Some(Err(late(std::io::ErrorKind::TimedOut.into())));
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            if let ControlFlow::Break(next) = self.sort(came) {
                return next;
            }
        }
    }

    /// What to say of one that came, or of the end of all.
    fn sort(&self, came: Option<Result<Connection, Error>>) -> ControlFlow<Option<Result<Connection, Error>>> {
        match came {
            Some(Ok(connection)) => {
                *lock(&self.first) = First::Came;
                ControlFlow::Break(Some(Ok(connection)))
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a data connection did not come up");
                let mut first = lock(&self.first);
                if matches!(*first, First::None) {
                    *first = First::Error(error);
                }
                ControlFlow::Continue(())
            }
            None => {
                let first = std::mem::replace(&mut *lock(&self.first), First::Came);
                ControlFlow::Break(match first {
                    First::Error(error) if !self.stopped.load(Ordering::SeqCst) => Some(Err(error)),
                    _ => None,
                })
            }
        }
    }

    /// No more are needed. Those that are about to come up still do, so that both ends agree which there were.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        if let Some(waker) = &self.waker {
            waker.wake();
        }
        if let Some(direct) = &self.direct {
            direct.stop();
        }
    }
}

impl Drop for Connections {
    /// Nobody takes them any more: the port is not kept for them.
    fn drop(&mut self) {
        self.stop();
    }
}
