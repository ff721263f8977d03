//! The end of a transfer: what is noticed first decides, the other end is told why, and nothing of the session stays blocked.
//!
//! One thread hears what the other end says, from the beginning to the end, whatever the others wait for: a person, a disk, or a
//! data connection whose other end takes nothing more. Another has the last words. When it is over, however that was noticed, the
//! switch of the transfer is thrown: it shuts down every data connection both ways, so that threads that are blocked in them return.

use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::cancel::{Cancel, Watch};
use crate::link::{Connection, Reader, Writer};
use crate::wire::control::Body;
use crate::wire::talk::{hear, last_word, say};
use crate::{Error, lock};

/// How long the last words of this end may wait for what is being said, and then to be taken.
const WORDS: Duration = Duration::from_millis(700);

/// How long the other end may take to say its own last words, or to show that it has heard those of this one.
const LINGER: Duration = Duration::from_secs(1);

/// The same after a transfer that went well.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often somebody who waits for a lock looks.
const TICK: Duration = Duration::from_millis(5);

/// Messages of the other end that were heard and are not looked at; it waits for room for more.
pub const AHEAD: usize = 16;

/// What the other end says next.
///
/// # Errors
/// [`Error::Cancelled`] when it is over, which was noted elsewhere.
pub fn next(heard: &Receiver<Body>) -> Result<Body, Error> {
    heard.recv().map_err(|_| Error::Cancelled)
}

/// How a transfer ends.
pub struct Ending {
    shared: Arc<Shared>,
    line: TcpStream,
    cancel: Cancel,
    _told: Watch,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
    /// Why it is over, until somebody takes it.
    why: Option<Error>,
    /// All is in place: nothing that happens from here on is a reason.
    settled: bool,
    /// Nothing more is to be said.
    finished: bool,
    /// The other end says nothing more.
    silent: bool,
}

impl Shared {
    /// It is over. Waits for nobody.
    fn note(&self, error: Error) {
        let mut state = lock(&self.state);
        state.over = true;
        let better = match &state.why {
            None => true,
            // What the other end says explains why its connections broke.
            Some(Error::Network { .. }) => error.is_said(),
            Some(_) => false,
        };
        if better && !state.settled {
            state.why = Some(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }

    fn wait(&self, time: Option<Duration>, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let (state, time) = (lock(&self.state), time.unwrap_or(Duration::MAX));
        let waited = self.changed.wait_timeout_while(state, time, |state| !done(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Ending {
    /// Of the transfer whose control connection this is.
    ///
    /// # Errors
    /// [`Error::Network`].
    pub fn new(control: &Connection, cancel: &Cancel) -> Result<Self, Error> {
        let shared: Arc<Shared> = Arc::default();
        let line = control.stream()?;
        let told = shared.clone();
        let told = cancel.on_cancel(move || told.note(Error::Cancelled));
        Ok(Self {
            shared,
            line,
            cancel: cancel.clone(),
            _told: told,
        })
    }

    /// Ends the transfer, for this reason if for no earlier one. Waits for nobody.
    pub fn end(&self, error: Error) {
        let stopped = self.cancel.is_set() && !error.is_said();
        self.shared.note(if stopped { Error::Cancelled } else { error });
        self.cancel.cancel();
    }

    /// All is in place, so that nothing can fail any more.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if it is over already; the reason is kept.
    pub fn settle(&self) -> Result<(), Error> {
        let mut state = lock(&self.shared.state);
        state.settled = !state.over;
        if state.over { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Ends the transfer after all: this end cannot do what it settled on.
    pub fn fail(&self, error: Error) {
        self.shared.set(|state| {
            (state.settled, state.over) = (false, true);
            state.why = Some(error);
        });
    }

    /// Whether it is.
    pub fn is_over(&self) -> bool {
        lock(&self.shared.state).over
    }

    /// The reason, once.
    pub fn why(&self) -> Option<Error> {
        lock(&self.shared.state).why.take()
    }

    /// Hears the other end until it says nothing more, and passes on what is no end.
    pub fn hears(&self, reader: &mut Reader, tell: &SyncSender<Body>) {
        self.hears_by(reader, &|body| {
            // Nobody wants to know any more; the end of the connection is still to be heard.
            let _ = tell.send(body);
        });
    }

    /// The same; `tell` is called with what is no end, by the thread that hears.
    pub fn hears_by(&self, reader: &mut Reader, tell: &dyn Fn(Body)) {
        let _silent = AtEnd(&self.shared, |state| state.silent = true);
        let mut last = false;
        loop {
            match hear(reader) {
                Ok(Some(body)) => {
                    last |= matches!(body, Body::Done(_));
                    tell(body);
                }
                Ok(None) if last => return,
                Err(Error::Network { .. }) if last => return,
                Ok(None) if self.is_over() => return,
                Ok(None) => return self.end(Error::Remote("it closed the connection".into())),
                Err(error) => {
                    let said = error.is_said();
                    self.end(error);
                    if !said {
                        return;
                    }
                    last = true;
                }
            }
        }
    }

    /// Waits until it is over or went well. Says why, if that is this end's to say, and lets the other one hear it before the connection
    /// is shut down.
    pub fn last_words(&self, control: &Mutex<Writer>) {
        let broken = |state: &State| state.over && !state.settled;
        let state = self.shared.wait(None, |state| broken(state) || state.finished);
        let broke = broken(&state);
        let words = state.why.as_ref().and_then(last_word);
        drop(state);
        if broke {
            // Who talks holds the lock for as long as the other end takes nothing.
            let _ = self.line.set_write_timeout(Some(WORDS));
            if let Some(mut control) = try_lock_for(control, WORDS) {
                if let Some(words) = words {
                    let _ = say(&mut control, words);
                }
                let _ = control.close();
            }
            drop(self.shared.wait(Some(LINGER), |state| state.silent));
        } else {
            drop(self.shared.wait(Some(FAREWELL), |state| state.silent || state.over));
            drop(self.shared.wait(Some(LINGER), |state| state.silent));
        }
        let _ = self.line.shutdown(Shutdown::Both);
    }

    /// Nothing more is to be said when what this returns is dropped.
    pub fn finish_at_end(&self) -> impl Drop + '_ {
        AtEnd(&self.shared, |state| state.finished = true)
    }
}

struct AtEnd<'a>(&'a Shared, fn(&mut State));

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// The lock, if it is to be had within `time`.
pub fn try_lock_for<T>(mutex: &Mutex<T>, time: Duration) -> Option<MutexGuard<'_, T>> {
    let until = Instant::now() + time;
    loop {
        match mutex.try_lock() {
            Ok(held) => return Some(held),
            Err(TryLockError::Poisoned(held)) => return Some(held.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(TICK),
        }
    }
}
