//! Waiting for the other end to come.
//!
//! Whatever comes to an open port that is not the other end is let go without a word and without an end to the waiting: only
//! a wrong guess at a code ends it, because a code allows one.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use sealway_session::handshake::Role;

use super::establish::{BEGIN, Deadline, Identity, JOIN, Peered, Setup, handshake};
use super::place::MAX_CONNECTIONS;
use super::socket;
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::TICK;

/// How long a stranger may take to say what it wants, and how long for a handshake.
const PATIENCE: Duration = Duration::from_secs(10);

/// Strangers that are listened to at a time.
pub(super) const STRANGERS: usize = 16;

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
            Err(source) => {
                return Err(Error::Network {
                    doing: doing.into(),
                    source,
                });
            }
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
    use std::io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(
        error.kind(),
        WouldBlock | Interrupted | ConnectionAborted | ConnectionReset
    )
}

/// Waits until somebody brings up a session. Connections that want to join it may be here before it stands at this end; they are
/// given along.
///
/// # Errors
/// [`Error::CodeSpent`], [`Error::Cancelled`], [`Error::Network`] if the port fails.
pub(super) fn session(
    listener: &TcpListener,
    waker: &Waker,
    setup: &Setup,
    cancel: &Cancel,
) -> Result<(Peered, Vec<Early>), Error> {
    let (found, wanted) = sync_channel(1);
    let over = AtomicBool::new(false);
    let strangers = AtomicUsize::new(0);
    let turn = Mutex::new(());
    let early = Mutex::new(Vec::new());
    let peered = std::thread::scope(|scope| {
        let answer = loop {
            let stopped = || over.load(Ordering::SeqCst) || cancel.is_set();
            match accept(listener, waker, &stopped) {
                Err(error) => break Err(error),
                Ok(None) => break answer(&wanted, cancel),
                Ok(Some(stream)) if strangers.load(Ordering::SeqCst) < STRANGERS => {
                    strangers.fetch_add(1, Ordering::SeqCst);
                    let waker = waker.clone();
                    let (found, over, strangers, turn, early) = (found.clone(), &over, &strangers, &turn, &early);
                    scope.spawn(move || {
                        attempt(stream, setup, cancel, (over, turn, early), &found);
                        strangers.fetch_sub(1, Ordering::SeqCst);
                        waker.wake();
                    });
                }
                Ok(Some(_)) => {}
            }
        };
        over.store(true, Ordering::SeqCst);
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

fn attempt(
    mut stream: TcpStream,
    setup: &Setup,
    cancel: &Cancel,
    (over, turn, early): (&AtomicBool, &Mutex<()>, &Mutex<Vec<Early>>),
    found: &SyncSender<Result<Peered, Error>>,
) {
    match first_byte(&mut stream, &|| over.load(Ordering::SeqCst) || cancel.is_set()) {
        FirstByte::Came(BEGIN) => {}
        FirstByte::Came(JOIN) => return keep(early, Early { stream, joins: true }),
        FirstByte::Stopped => return keep(early, Early { stream, joins: false }),
        FirstByte::Came(_) | FirstByte::Gone => return,
    }
    // Guesses at a code must not be made side by side; keys are no guesses.
    let _turn = matches!(setup.identity, Identity::Code(_)).then(|| crate::lock(turn));
    if over.load(Ordering::SeqCst) {
        return;
    }
    let result = handshake(
        stream,
        setup,
        Role::Responder,
        Deadline::after(PATIENCE),
        cancel,
        &|_| true,
    );
    let answer = match result {
        Ok(_) | Err(Error::CodeSpent) => result,
        Err(error) => {
            tracing::warn!(%error, "a connection was turned away");
            return;
        }
    };
    match found.try_send(answer) {
        Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => over.store(true, Ordering::SeqCst),
    }
}

/// Keeps a connection for the session that is about to stand; not more than it may have.
fn keep(early: &Mutex<Vec<Early>>, one: Early) {
    let mut early = crate::lock(early);
    if early.len() < MAX_CONNECTIONS as usize {
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
