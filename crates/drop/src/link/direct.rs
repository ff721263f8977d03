//! A direct path beside a relay: data connections between the two ends themselves, though both may be behind NATs.
//!
//! The session stands and goes on through the relay. Each end opens a port, asks the relay as what address that is seen (RFC 5128, section
//! 3.4), and tells the other end over the sealed control connection. Then both dial from these ports until they meet: what one end
//! sends opens its NAT for what the other one sends. Who meets so is nobody before it has joined the session as any data connection does.
//!
//! The initiator of the session begins an attempt and numbers it, and begins another one when the path has died. A transfer goes on
//! through the relay meanwhile, and if no attempt succeeds.

mod attempt;
mod pauses;
mod port;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sealway_session::Session;
use sealway_session::attach::WINDOW;
use sealway_session::handshake::Role;

use self::attempt::Attempt;
use self::pauses::Pauses;
use self::port::Gathered;
use super::connection::{Connection, MAX_CONNECTIONS};
use super::listen::attend;
use crate::cancel::Cancel;
use crate::dial::TICK;
use crate::{Error, lock};

/// What waits to be looked at; more is dropped, and comes again with the next attempt.
const AHEAD: usize = 64;

/// How long the other end may take to answer with its addresses.
const ANSWERING: Duration = Duration::from_secs(10);

/// How long both dial.
const DIALLING: Duration = Duration::from_secs(6);

/// Pause before the next attempt after one without success; doubled each time.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Attempts without success, one after the other, after which no more are made.
const FAILURES: u32 = 5;

/// Asks a router to lead a port of its own to one of this machine.
pub trait Mapper: Send + Sync {
    /// Where `port` of TCP can be reached then; `None` if no router does it. Takes a few seconds at most, and ends soon after `stop` says so.
    fn map(&self, port: u16, stop: &dyn Fn() -> bool) -> Option<Mapped>;
}

/// A port of a router.
pub struct Mapped {
    /// Its address.
    pub address: SocketAddr,
    /// The router is told to forget it when this is dropped, which may take a moment.
    pub lasts: Box<dyn Send>,
}

/// By what a direct path is looked for, beside dialling at the same time.
#[derive(Clone, Default)]
pub struct Ways {
    /// Routers.
    pub mapper: Option<Arc<dyn Mapper>>,
}

impl fmt::Debug for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ways").field("mapper", &self.mapper.is_some()).finish()
    }
}

/// Where an end may be reached directly.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Addresses {
    /// Number of the attempt, from 1 on.
    pub attempt: u32,
    /// The addresses, the likely ones first.
    pub addresses: Vec<SocketAddr>,
}

/// What the other end says, and what becomes of direct connections.
enum Event {
    Heard(Addresses),
    Gathered(Gathered),
    /// A router leads a port to that of this attempt.
    Mapped(u32, Mapped),
    /// Came up; the address of the other end.
    Joined(Box<Connection>, SocketAddr),
    Lost,
    Stop,
}

/// Looks for direct paths.
pub struct Direct {
    shared: Arc<Shared>,
    events: Receiver<Event>,
    tell: Notes,
    found: Mutex<Option<Sender<Result<Connection, Error>>>>,
}

/// What threads of an attempt have in common.
struct Shared {
    session: Arc<Session>,
    relay: String,
    role: Role,
    /// The number of the next connection that is dialled.
    next: AtomicU32,
    /// One above the highest number that has joined: numbers far above it are of no use.
    joined: AtomicU32,
    stopped: AtomicBool,
    tell: SyncSender<Event>,
    ways: Ways,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// A number for a connection that is dialled, if one is left.
    fn number(&self) -> Option<u32> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        (number < self.joined.load(Ordering::SeqCst) + WINDOW / 2).then_some(number)
    }

    fn tell(&self, event: Event) {
        // Fails only if many wait, or nobody looks any more.
        if let Err(TrySendError::Full(_)) = self.tell.try_send(event) {
            tracing::debug!("more about direct paths than is looked at");
        }
    }
}

/// Tells what looks for direct paths what has happened. Never waits.
#[derive(Clone)]
pub struct Notes(Arc<Shared>);

impl Notes {
    /// The other end says where it may be reached.
    pub fn heard(&self, theirs: Addresses) {
        self.0.tell(Event::Heard(theirs));
    }

    /// A direct connection is over, without all being done.
    pub fn lost(&self) {
        self.0.tell(Event::Lost);
    }

    /// No more is needed.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.tell(Event::Stop);
    }
}

impl Direct {
    /// Of ends that met at this relay.
    pub(super) fn new(session: Arc<Session>, relay: String, role: Role, ways: Ways) -> Self {
        let (tell, events) = sync_channel(AHEAD);
        let shared = Arc::new(Shared {
            session,
            relay,
            role,
            next: AtomicU32::new(MAX_CONNECTIONS + 1),
            joined: AtomicU32::new(MAX_CONNECTIONS + 1),
            stopped: AtomicBool::new(false),
            tell,
            ways,
        });
        Self {
            tell: Notes(shared.clone()),
            shared,
            events,
            found: Mutex::new(None),
        }
    }

    /// How it is told what happens, from now on.
    pub fn notes(&self) -> Notes {
        self.tell.clone()
    }

    /// Where connections go that come up.
    pub(super) fn finds_for(&self, found: &Sender<Result<Connection, Error>>) {
        *lock(&self.found) = Some(found.clone());
    }

    /// Looks until [`Notes::stop`], or `cancel`. `say` tells the other end; `told` hears of the address that is reached directly, and of
    /// `None` when content goes through the relay again.
    pub fn run(
        self,
        cancel: &Cancel,
        say: &dyn Fn(&Addresses) -> Result<(), Error>,
        told: &dyn Fn(Option<SocketAddr>),
    ) {
        let found = lock(&self.found).take().unwrap_or_else(|| channel().0);
        let begins = self.shared.role == Role::Initiator;
        let mut looking = Looking {
            shared: &self.shared,
            cancel,
            attempt: Attempt::None,
            number: 0,
            failures: 0,
            pauses: Pauses::default(),
            live: 0,
            mapped: None,
            next: begins.then(Instant::now),
        };
        while !cancel.is_set() && !self.shared.is_stopped() {
            match self.events.recv_timeout(looking.pause()) {
                Ok(Event::Heard(theirs)) => looking.hears(&theirs),
                Ok(Event::Gathered(gathered)) if looking.is_of_now(&gathered) => {
                    if say(&gathered.said).is_err() {
                        return;
                    }
                    looking.gathered(gathered);
                }
                Ok(Event::Mapped(attempt, mapped)) if looking.wants(attempt) => {
                    let addresses = vec![mapped.address];
                    if say(&Addresses { attempt, addresses }).is_err() {
                        return;
                    }
                    looking.mapped = Some(mapped);
                }
                Ok(Event::Gathered(_) | Event::Mapped(..)) => {}
                Ok(Event::Joined(connection, address)) => {
                    looking.joined();
                    told(Some(address));
                    if found.send(Ok(*connection)).is_err() {
                        return;
                    }
                }
                Ok(Event::Lost) => {
                    if looking.lost() {
                        told(None);
                    }
                }
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            looking.step();
        }
    }
}

/// Where the looking stands.
struct Looking<'a> {
    shared: &'a Arc<Shared>,
    cancel: &'a Cancel,
    attempt: Attempt,
    /// The number of the last attempt.
    number: u32,
    failures: u32,
    pauses: Pauses,
    /// Direct connections that stand.
    live: u32,
    /// What a router was asked for, for the attempt at hand or the path that came of it.
    mapped: Option<Mapped>,
    /// When this end begins another attempt.
    next: Option<Instant>,
}

impl Looking<'_> {
    /// How long nothing need be done but to listen.
    fn pause(&self) -> Duration {
        match &self.attempt {
            // The sockets are what is waited for.
            Attempt::Dialling(_) => Duration::ZERO,
            Attempt::Waiting(..) => TICK,
            Attempt::None => self
                .next
                .map_or(TICK, |at| at.saturating_duration_since(Instant::now()).min(TICK)),
        }
    }

    fn begin(&mut self, number: u32, theirs: Option<Vec<SocketAddr>>) {
        self.number = number;
        self.mapped = None;
        self.attempt = Attempt::Waiting(Instant::now() + ANSWERING, None, theirs);
        let (shared, cancel) = (self.shared.clone(), self.cancel.clone());
        attend("paths", move || {
            let stop = || cancel.is_set() || shared.is_stopped();
            match Gathered::gather(number, &shared.relay, &stop) {
                Ok(gathered) => shared.tell(Event::Gathered(gathered)),
                Err(error) => tracing::debug!(%error, "no port for a direct path"),
            }
        });
    }

    fn hears(&mut self, said: &Addresses) {
        let theirs = port::dialled(&said.addresses);
        match (self.shared.role, said.attempt) {
            (Role::Responder, number) if number > self.number => self.begin(number, Some(theirs)),
            (_, number) if number == self.number => self.attempt.adds(theirs),
            _ => {}
        }
    }

    fn is_of_now(&self, gathered: &Gathered) -> bool {
        gathered.said.attempt == self.number
    }

    /// Whether a port of a router is of use to an attempt.
    fn wants(&self, attempt: u32) -> bool {
        attempt == self.number && matches!(self.attempt, Attempt::Dialling(_))
    }

    /// Asks routers for a port, once it takes long enough that dialling alone may not do.
    fn maps(&self, port: u16) {
        let Some(mapper) = self.shared.ways.mapper.clone() else {
            return;
        };
        let (shared, cancel, attempt) = (self.shared.clone(), self.cancel.clone(), self.number);
        attend("map", move || {
            let stop = || cancel.is_set() || shared.is_stopped();
            if let Some(mapped) = mapper.map(port, &stop) {
                shared.tell(Event::Mapped(attempt, mapped));
            }
        });
    }

    fn gathered(&mut self, gathered: Gathered) {
        if let Attempt::Waiting(_, port, _) = &mut self.attempt {
            *port = Some(gathered);
        }
    }

    fn joined(&mut self) {
        self.live += 1;
        self.pauses.begun(Instant::now());
        (self.failures, self.next, self.attempt) = (0, None, Attempt::None);
    }

    /// Says whether that was the last.
    fn lost(&mut self) -> bool {
        self.live = self.live.saturating_sub(1);
        if self.live > 0 {
            return false;
        }
        let pause = self.pauses.over(Instant::now());
        self.again(pause);
        true
    }

    fn again(&mut self, pause: Duration) {
        if self.shared.role == Role::Initiator && self.failures < FAILURES {
            self.next = Some(Instant::now() + pause);
        }
    }

    fn step(&mut self) {
        let now = Instant::now();
        if matches!(self.attempt, Attempt::None) && self.next.is_some_and(|next| next <= now) {
            self.next = None;
            self.begin(self.number + 1, None);
        }
        let over = match &mut self.attempt {
            Attempt::None => false,
            Attempt::Waiting(until, port @ Some(_), theirs @ Some(_)) => {
                let _ = until;
                if let (Some(port), Some(theirs)) = (port.take(), theirs.take()) {
                    let until = now + DIALLING;
                    self.attempt = Attempt::dialling(port, theirs, until);
                }
                false
            }
            Attempt::Waiting(until, ..) => now >= *until,
            Attempt::Dialling(dialling) => {
                dialling.step(self.shared, self.cancel);
                let port = dialling.port_to_map(now);
                let over = now >= dialling.until;
                if let Some(port) = port {
                    self.maps(port);
                }
                over
            }
        };
        if over {
            self.attempt = Attempt::None;
            self.failures += 1;
            self.again(AFTER_FAILURE * 2u32.pow(self.failures.min(FAILURES)));
        }
    }
}
