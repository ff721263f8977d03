//! Waiting for the other end to come.
//!
//! Whatever comes to an open port that is not the other end is let go without an end to the waiting: only a wrong guess at a code ends
//! it, because a code allows one, and a guess is a whole first flight that was answered. `admission` bounds how many are let in.

use std::cell::Cell;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use sealway_net::listen::is_of_one_connection;
use sealway_session::handshake::Role;

use super::admission::{self, Admission, Admitted, Named, Stage};
use super::establish::{BEGIN, Deadline, Identity, JOIN, Moment, PATIENCE, Peered, Setup, handshake};
use super::socket;
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::TICK;

/// Ends a wait for connections at once, to look whether there is anything left to wait for.
#[derive(Clone)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn new() -> Result<Self, Error> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Ok(Self(Arc::new(
            event.map_err(|errno| Error::network("waiting")(errno.into()))?,
        )))
    }

    pub(super) fn wake(&self) {
        // Fails only if it was woken 2^64 times already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn rest(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

/// The next connection; `None` once `stop` says so.
pub(super) fn accept(
    listener: &TcpListener,
    waker: &Waker,
    stop: &dyn Fn() -> bool,
) -> Result<Option<TcpStream>, Error> {
    let doing = "waiting for a connection";
    listener.set_nonblocking(true).map_err(Error::network(doing))?;
    loop {
        if stop() {
            return Ok(None);
        }
        let timeout = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: TICK.as_nanos() as i64,
        };
        let mut waited = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(&*waker.0, PollFlags::IN),
        ];
        let _ = poll(&mut waited, Some(&timeout));
        waker.rest();
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(Error::network(doing))?;
                socket::prepare(&stream).map_err(Error::network(doing))?;
                return Ok(Some(stream));
            }
            // Whoever came has gone again, or nobody came.
            Err(error) if is_passing(&error) => {}
            // Too many are here: it passes when some of them go.
            Err(error) if is_shortage(&error) => std::thread::sleep(TICK),
            Err(source) => return Err(Error::network(doing)(source)),
        }
    }
}

fn is_shortage(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::PROTO];
    error
        .raw_os_error()
        .is_some_and(|code| shortages.iter().any(|errno| errno.raw_os_error() == code))
}

fn is_passing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock || is_of_one_connection(error)
}

/// Looks after somebody who came, in a thread of its own. Where the system has none left it is as if there were no room: what `work`
/// holds is dropped, and with it the connection.
pub(super) fn attend(name: &str, work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(work).map_or_else(no_thread, drop);
}

fn no_thread(error: std::io::Error) {
    tracing::debug!(%error, "no thread for a connection, which is let go");
}

/// Waits until somebody brings up a session. Connections that want to join it may be here before it stands at this end; they are
/// given along. `told` hears why an end was turned away that speaks the protocol.
///
/// # Errors
/// [`Error::CodeSpent`], [`Error::Cancelled`], [`Error::Network`] if the port fails.
pub(super) fn session(
    listener: &TcpListener,
    waker: &Waker,
    setup: &Setup,
    cancel: &Cancel,
    told: &(dyn Fn(&Error) + Sync),
) -> Result<(Peered, Vec<Early>), Error> {
    let (found, wanted) = sync_channel(1);
    let over = AtomicBool::new(false);
    let admission: Arc<Admission> = Arc::default();
    let turn = Mutex::new(());
    let early = Mutex::new(Vec::new());
    let named = Named::default();
    let peered = std::thread::scope(|scope| {
        let answer = loop {
            let stopped = || over.load(Ordering::SeqCst) || cancel.is_set();
            match accept(listener, waker, &stopped) {
                Err(error) => break Err(error),
                Ok(None) => break answer(&wanted, cancel),
                Ok(Some(stream)) => {
                    let Some(admitted) = admission.admit(&stream) else {
                        continue;
                    };
                    let waker = waker.clone();
                    let host = Host {
                        setup,
                        cancel,
                        told,
                        named: &named,
                        over: &over,
                        turn: &turn,
                        early: &early,
                    };
                    let found = found.clone();
                    let attempt = move || {
                        host.attempt(stream, &admitted, &found);
                        waker.wake();
                    };
                    let thread = std::thread::Builder::new().name("guest".into());
                    thread.spawn_scoped(scope, attempt).map_or_else(no_thread, drop);
                }
            }
        };
        over.store(true, Ordering::SeqCst);
        // Nobody waits for those that say no more.
        admission.send_home();
        answer
    })?;
    Ok((peered, early.into_inner().unwrap_or_default()))
}

fn answer(wanted: &Receiver<Result<Peered, Error>>, cancel: &Cancel) -> Result<Peered, Error> {
    match wanted.recv_timeout(TICK) {
        Ok(answer) => answer,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) if cancel.is_set() => Err(Error::Cancelled),
        Err(_) => Err(Error::Protocol("a thread of this end failed")),
    }
}

/// What those who are let in have in common.
#[derive(Clone, Copy)]
struct Host<'a> {
    setup: &'a Setup,
    cancel: &'a Cancel,
    told: &'a (dyn Fn(&Error) + Sync),
    named: &'a Named,
    over: &'a AtomicBool,
    /// Held from the first look at what an end with a code says.
    turn: &'a Mutex<()>,
    early: &'a Mutex<Vec<Early>>,
}

impl Host<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn attempt(&self, mut stream: TcpStream, admitted: &Admitted, found: &SyncSender<Result<Peered, Error>>) {
        let deadline = Deadline::after(PATIENCE);
        match first_byte(&mut stream, &|| self.is_over() || self.cancel.is_set()) {
            FirstByte::Came(BEGIN) if admitted.is_at(Stage::Begins) => {}
            FirstByte::Came(JOIN) => {
                admitted.is_at(Stage::Stays);
                return keep(self.early, Early { stream, joins: true });
            }
            FirstByte::Stopped => {
                admitted.is_at(Stage::Stays);
                return keep(self.early, Early { stream, joins: false });
            }
            FirstByte::Came(_) | FirstByte::Gone => return,
        }
        let is_open = || !self.is_over();
        let (result, turn) = respond(
            stream,
            (self.setup, deadline),
            self.cancel,
            admitted,
            self.turn,
            &is_open,
        );
        let answer = match result {
            Ok(_) | Err(Error::CodeSpent) => result,
            Err(error) => {
                drop(turn);
                return self.turn_away(&error);
            }
        };
        admitted.is_at(Stage::Stays);
        // Another one may have been first.
        let _ = found.try_send(answer);
        self.over.store(true, Ordering::SeqCst);
    }

    /// What does not speak the protocol is not worth a word; of the others no more are named than somebody reads.
    fn turn_away(&self, error: &Error) {
        let speaks = error.is_mismatch();
        if speaks && !self.is_over() && self.named.one_more() {
            (self.told)(error);
        } else {
            tracing::debug!(%error, "a connection was turned away");
        }
    }
}

/// The handshake of an end that was let in, while `is_open`; with the turn, if it has that, which others get when it is dropped.
///
/// Guesses at a code must not be made side by side; keys are no guesses. Who has not said all it has to say first is not in the way of
/// others.
pub(super) fn respond<'a>(
    stream: TcpStream,
    (setup, deadline): (&Setup, Deadline),
    cancel: &Cancel,
    admitted: &Admitted,
    turn: &'a Mutex<()>,
    is_open: &dyn Fn() -> bool,
) -> (Result<Peered, Error>, Option<MutexGuard<'a, ()>>) {
    let held = Cell::new(None);
    let go_on = |moment| {
        match moment {
            Moment::Asked if matches!(setup.identity, Identity::Code(_)) => {
                admitted.is_at(Stage::Turn);
                held.set(Some(crate::lock(turn)));
            }
            Moment::Asked => drop(admitted.is_at(Stage::Asks)),
            Moment::Refused => {
                held.set(None);
                admitted.is_at(Stage::Begins);
            }
            Moment::Answered | Moment::Accepted => {}
        }
        // Whoever was sent away in the meantime must not spend the code.
        is_open() && admitted.is_here()
    };
    let result = handshake(stream, setup, Role::Responder, deadline, cancel, &go_on);
    (result, held.take())
}

/// Keeps a connection for the session that is about to stand. Strangers that have said nothing are among them.
fn keep(early: &Mutex<Vec<Early>>, one: Early) {
    let mut early = crate::lock(early);
    if early.len() < admission::ALL {
        early.push(one);
    }
}

/// A connection that came before the session stood at this end.
pub(super) struct Early {
    pub(super) stream: TcpStream,
    /// Whether it has said that it joins; else it has said nothing yet.
    pub(super) joins: bool,
}

/// What a new connection wants.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum FirstByte {
    /// This.
    Came(u8),
    /// It did not say so before nobody wanted to know any more.
    Stopped,
    /// It went away, or took too long.
    Gone,
}

/// Waits for what a new connection wants, until `stop` says that nobody wants to know.
pub(super) fn first_byte(stream: &mut TcpStream, stop: &dyn Fn() -> bool) -> FirstByte {
    let mut byte = [0];
    let until = Instant::now() + PATIENCE;
    if stream.set_read_timeout(Some(TICK)).is_err() {
        return FirstByte::Gone;
    }
    while Instant::now() < until {
        match stream.read(&mut byte) {
            Ok(0) => return FirstByte::Gone,
            Ok(_) => return FirstByte::Came(byte[0]),
            Err(error) if is_passing(&error) || error.kind() == std::io::ErrorKind::TimedOut => {}
            Err(_) => return FirstByte::Gone,
        }
        if stop() {
            return FirstByte::Stopped;
        }
    }
    FirstByte::Gone
}
