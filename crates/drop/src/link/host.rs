//! A port at which several sessions come up, one after the other and beside each other, and at which ends come back.

use std::collections::HashMap;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sealway_session::Session;
use sealway_session::handshake::Role;

use super::admission::{Admission, Admitted, NAMED, Named, Stage};
use super::again::{Again, NAME_LEN};
use super::connect::{Connected, DataConnections, Origin};
use super::connection::Connection;
use super::establish::{AGAIN, BEGIN, Deadline, Identity, JOIN, PATIENCE, Peered, Setup};
use super::join;
use super::listen::{FirstByte, Waker, accept, attend, first_byte, respond};
use crate::cancel::Cancel;
use crate::dial::TICK;
use crate::{Error, lock};

/// How long a connection waits for the session that it joins: the other end may know a moment before this one that it stands.
const ABOUT_TO_STAND: Duration = Duration::from_secs(2);

/// Listens until it is dropped.
pub struct Host(
    Arc<Inner>,
    Mutex<Receiver<Result<Connected, Error>>>,
    Mutex<Receiver<Error>>,
);

struct Inner {
    waker: Waker,
    setup: Setup,
    cancel: Cancel,
    stopped: AtomicBool,
    /// Whether sessions with ends that were not there before are made.
    open: AtomicBool,
    admission: Arc<Admission>,
    /// Takes all that are named without anybody looking.
    turned_away: SyncSender<Error>,
    named: Named,
    turn: Mutex<()>,
    sessions: Arc<Sessions>,
    returning: Arc<Mutex<HashMap<[u8; NAME_LEN], Expected>>>,
    found: Sender<Result<Connected, Error>>,
}

/// Sessions whose further connections are still to come.
#[derive(Default)]
struct Sessions {
    here: Mutex<Here>,
    /// Told when there is one more.
    more: Condvar,
}

#[derive(Default)]
struct Here {
    next: u64,
    all: HashMap<u64, Joining>,
}

type Joining = (Arc<Session>, Sender<Result<Connection, Error>>);

impl Sessions {
    fn add(&self, joining: Joining) -> u64 {
        let mut here = lock(&self.here);
        let number = here.next;
        here.next += 1;
        here.all.insert(number, joining);
        drop(here);
        self.more.notify_all();
        number
    }

    /// The session of this token; waits for one that is about to stand as long as `go_on` says yes.
    fn find(&self, token: &[u8; 32], go_on: &dyn Fn() -> bool) -> Option<Joining> {
        let (mut here, mut seen) = (lock(&self.here), 0);
        while go_on() {
            let mut new = here.all.iter().filter(|(number, _)| **number >= seen);
            if let Some((_, found)) = new.find(|(_, (session, _))| session.index_of(token).is_some()) {
                return Some(found.clone());
            }
            seen = here.next;
            let woken = self.more.wait_timeout(here, TICK);
            here = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// An end that may come back.
struct Expected {
    again: Again,
    back: Sender<Connected>,
    /// The control connection of the session that it had.
    line: Option<TcpStream>,
}

/// Says that nobody listens any more if that is because a thread failed: whoever waits for the next session would wait for ever.
struct Fails(Sender<Result<Connected, Error>>);

impl Drop for Fails {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Err(Error::Protocol("a thread of this end failed")));
        }
    }
}

/// Keeps a session's further connections coming until it is dropped.
struct Hosted {
    sessions: Arc<Sessions>,
    number: u64,
}

impl Drop for Hosted {
    fn drop(&mut self) {
        lock(&self.sessions.here).all.remove(&self.number);
    }
}

/// Keeps an end expected until it is dropped.
pub struct Returns {
    name: [u8; NAME_LEN],
    of: Arc<Mutex<HashMap<[u8; NAME_LEN], Expected>>>,
    came: Receiver<Connected>,
}

impl Host {
    /// Begins to listen. With a code it is one session that comes up, and then only its other end comes back.
    ///
    /// # Errors
    /// [`Error::Network`] if the system does not let it wait.
    pub fn start(listener: TcpListener, setup: Setup, cancel: &Cancel) -> Result<Self, Error> {
        let ((found, next), (turned_away, mismatches)) = (channel(), sync_channel(NAMED));
        let inner = Arc::new(Inner {
            waker: Waker::new()?,
            setup,
            cancel: cancel.clone(),
            stopped: AtomicBool::new(false),
            open: AtomicBool::new(true),
            admission: Arc::default(),
            turned_away,
            named: Named::default(),
            turn: Mutex::new(()),
            sessions: Arc::default(),
            returning: Arc::default(),
            found,
        });
        let listening = inner.clone();
        let thread = std::thread::Builder::new().name("host".into());
        let spawned = thread.spawn(move || {
            let _fails = Fails(listening.found.clone());
            listening.listen(&listener);
        });
        spawned.map_err(Error::network("starting threads"))?;
        Ok(Self(inner, Mutex::new(next), Mutex::new(mismatches)))
    }

    /// The next session that comes up, `None` if there is none within `time`.
    ///
    /// # Errors
    /// [`Error::CodeSpent`], [`Error::Network`] if the port fails, [`Error::Cancelled`].
    pub fn next(&self, time: Duration) -> Result<Option<Connected>, Error> {
        if self.0.cancel.is_set() {
            return Err(Error::Cancelled);
        }
        match lock(&self.1).recv_timeout(time) {
            Ok(came) => came.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Error::Protocol("a thread of this end failed")),
        }
    }

    /// Why an end was turned away that speaks the protocol, if one was; a few are told, and not all that strangers make of it.
    pub fn turned_away(&self) -> Option<Error> {
        lock(&self.2).try_recv().ok()
    }

    /// Whether ends that were not there before are let in from now on; those that are not get no word.
    pub fn let_in(&self, open: bool) {
        self.0.open.store(open, Ordering::SeqCst);
    }

    /// From now on this end may come back.
    pub fn expect(&self, again: Again) -> Returns {
        let (back, came) = channel();
        let name = *again.name();
        let expected = Expected {
            again,
            back,
            line: None,
        };
        lock(&self.0.returning).insert(name, expected);
        Returns {
            name,
            of: self.0.returning.clone(),
            came,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        self.0.waker.wake();
    }
}

impl Returns {
    /// The control connection of the session as it stands now: it is ended when the end comes back, which has lost it.
    pub fn stands(&self, line: TcpStream) {
        if let Some(expected) = lock(&self.of).get_mut(&self.name) {
            expected.line = Some(line);
        }
    }

    /// Waits until the end is back; `None` if it is not within `time`.
    pub fn wait(&self, time: Duration) -> Option<Connected> {
        let mut came = self.came.recv_timeout(time).ok()?;
        // Only the last one is alive at the other end.
        while let Ok(later) = self.came.try_recv() {
            came = later;
        }
        Some(came)
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        lock(&self.of).remove(&self.name);
    }
}

impl Inner {
    fn over(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.cancel.is_set()
    }

    fn listen(self: Arc<Self>, listener: &TcpListener) {
        loop {
            let stream = match accept(listener, &self.waker, &|| self.over()) {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(error) => {
                    let _ = self.found.send(Err(error));
                    return;
                }
            };
            let Some(admitted) = self.admission.admit(&stream) else {
                continue;
            };
            let inner = self.clone();
            attend("host-guest", move || inner.attend(stream, &admitted));
        }
    }

    fn attend(&self, mut stream: TcpStream, admitted: &Admitted) {
        let FirstByte::Came(byte @ (BEGIN | JOIN | AGAIN)) = first_byte(&mut stream, &|| self.over()) else {
            return;
        };
        admitted.is_at(Stage::Begins);
        let came = match byte {
            BEGIN => self.begin(stream, admitted),
            JOIN => self.join(stream, admitted),
            _ => self.again(stream, admitted),
        };
        match came {
            // What does not speak the protocol is not worth a word.
            Err(error) if error.is_mismatch() && self.named.one_more() => drop(self.turned_away.try_send(error)),
            Err(error) => tracing::debug!(%error, "a connection was turned away"),
            Ok(()) => {}
        }
    }

    /// An end that was not there before.
    fn begin(&self, stream: TcpStream, admitted: &Admitted) -> Result<(), Error> {
        if !self.open.load(Ordering::SeqCst) {
            return Ok(());
        }
        let is_open = || self.open.load(Ordering::SeqCst);
        let how = (&self.setup, Deadline::after(PATIENCE));
        let (result, _turn) = respond(stream, how, &self.cancel, admitted, &self.turn, &is_open);
        match result {
            Ok(peered) => {
                admitted.is_at(Stage::Stays);
                if matches!(self.setup.identity, Identity::Code(_)) {
                    self.open.store(false, Ordering::SeqCst);
                }
                let _ = self.found.send(Ok(self.connected(peered)));
                Ok(())
            }
            Err(Error::CodeSpent) => {
                self.open.store(false, Ordering::SeqCst);
                let _ = self.found.send(Err(Error::CodeSpent));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// An end that was there before.
    fn again(&self, mut stream: TcpStream, admitted: &Admitted) -> Result<(), Error> {
        let mut name = [0; NAME_LEN];
        join::fill(&mut stream, Deadline::after(PATIENCE), &mut name, "the handshake")?;
        let again = lock(&self.returning).get(&name).map(|expected| expected.again.clone());
        // Nobody of that name: it may be one of an earlier run.
        let Some(again) = again else { return Ok(()) };
        admitted.is_at(Stage::Asks);
        let peered = again.shake(stream, Role::Responder, &self.cancel)?;
        admitted.is_at(Stage::Stays);
        let connected = self.connected(peered);
        if let Some(expected) = lock(&self.returning).get_mut(&name) {
            let _ = expected.back.send(connected);
            // It would not have come if it still had that.
            if let Some(line) = expected.line.take() {
                let _ = line.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }

    fn connected(&self, peered: Peered) -> Connected {
        // Whoever talks on it says why it ends.
        peered.connection.release();
        let (joins, joined) = channel();
        let number = self.sessions.add((peered.session.clone(), joins));
        let sessions = self.sessions.clone();
        let hosted = Hosted { sessions, number };
        let origin = Origin::Hosted(Mutex::new(joined), Box::new(hosted));
        let data = DataConnections::new(peered.session.clone(), origin, 1);
        Connected { peered, data }
    }

    /// A further connection of a session, which may be about to stand.
    fn join(&self, stream: TcpStream, admitted: &Admitted) -> Result<(), Error> {
        let find = |token: &[u8; 32]| {
            let until = Instant::now() + ABOUT_TO_STAND;
            let go_on = || admitted.is_here() && !self.over() && Instant::now() < until;
            self.sessions.find(token, &go_on)
        };
        if let Some((connection, joins)) = join::respond_to(stream, find, &self.cancel)? {
            // A session that is over takes none.
            let _ = joins.send(Ok(connection));
        }
        Ok(())
    }
}
