//! Reaching the other end at any of its addresses.
//!
//! Addresses are tried beside each other, each up to a session, so that neither a dead address nor something that accepts
//! connections and says nothing holds the others up (RFC 8305). One handshake at most goes on past the point where it counts.
//! With a code that is the first answer: to look at two would give whoever is in between two guesses. With keys it is
//! what tells the other end that it was accepted, since it may be the same end at two addresses, and must not be left with two sessions.

use std::cell::Cell;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use sealway_session::handshake::Role;

use super::establish::{BEGIN, Deadline, Identity, Moment, PATIENCE, Peered, Setup, handshake, send_byte};
use super::socket;
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::{STAGGER, alternate};

/// Addresses of one host that are tried at most.
const ADDRESSES: usize = 8;

/// Pause before addresses at which nobody listens are tried again; twice as long each time.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(250);

/// Times that a connection is closed before it was answered, after which no more are tried.
const CLOSED: u32 = 12;

/// A session at one of these addresses, and which one that is. They are tried again until `until` while one of them refuses: the
/// other end may not be listening yet.
pub(super) fn reach(
    addresses: &[SocketAddr],
    until: Instant,
    setup: &Setup,
    cancel: &Cancel,
) -> Result<(Peered, SocketAddr), Error> {
    let mut addresses = alternate(addresses);
    addresses.truncate(ADDRESSES);
    let (mut pause, mut closed) = (SHORTEST, 0);
    loop {
        match race(&addresses, (STAGGER, until), setup, cancel) {
            // A port that is full of strangers closes too, and has room again soon; a program of another kind closes always.
            Err(lost) if lost.was_closed() && closed < CLOSED && !cancel.is_set() => closed += 1,
            Err(lost) if lost.may_come() && Instant::now() + pause < until && !cancel.is_set() => {}
            result => return result.map_err(|lost| lost.error),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST);
    }
}

/// Why there is no session at any address.
#[derive(Debug)]
struct Lost {
    /// The one error that says most.
    error: Error,
    /// Nobody listened at one of them.
    refused: bool,
}

impl Lost {
    fn nothing() -> Self {
        let none = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
        Self {
            error: Error::network("connecting")(none),
            refused: false,
        }
    }

    fn add(&mut self, error: Error) {
        self.refused |= is_refusal(&error);
        if says(&error) >= says(&self.error) {
            self.error = error;
        }
    }

    /// It was closed before anything was answered, so no guess was made.
    fn was_closed(&self) -> bool {
        matches!(&self.error, Error::Network { source, .. } if source.kind() == ErrorKind::ConnectionAborted)
    }

    fn may_come(&self) -> bool {
        self.refused && says(&self.error) < OTHER
    }
}

const REFUSED: u8 = 1;
const OTHER: u8 = 3;

/// How much an error says of why there is no session.
fn says(error: &Error) -> u8 {
    match error {
        Error::Network { source, .. } => match source.kind() {
            // There is no way to such an address.
            ErrorKind::NotFound
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::AddrNotAvailable => 0,
            ErrorKind::ConnectionRefused => REFUSED,
            _ => 2,
        },
        _ => OTHER,
    }
}

fn is_refusal(error: &Error) -> bool {
    says(error) == REFUSED
}

/// An address, and what to wait after it refused.
#[derive(Clone, Copy)]
struct Turn {
    address: SocketAddr,
    pause: Duration,
}

/// What came of a turn: a session or not, and whether it is the one that counts.
struct Outcome {
    turn: Turn,
    result: Result<Peered, Error>,
    counts: bool,
}

/// Tells what came of a turn, in any case: whoever waits for it has no clock.
struct Telling {
    ended: Sender<Outcome>,
    outcome: Option<Outcome>,
}

impl Telling {
    fn of(turn: Turn, ended: Sender<Outcome>) -> Self {
        let result = Err(Error::Protocol("a thread of this end failed"));
        let counts = true;
        let outcome = Some(Outcome { turn, result, counts });
        Self { ended, outcome }
    }

    fn tell(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(outcome) = self.outcome.take() {
            let _ = self.ended.send(outcome);
        }
    }
}

/// One handshake among others.
struct Candidate<'a> {
    setup: &'a Setup,
    cancel: &'a Cancel,
    /// Ends those that have not won.
    losers: &'a Cancel,
    won: &'a AtomicBool,
}

impl Candidate<'_> {
    fn run(&self, turn: Turn) -> Outcome {
        let wins = Cell::new(false);
        let result = self.attempt(turn.address, &wins);
        let counts = wins.get();
        Outcome { turn, result, counts }
    }

    fn attempt(&self, address: SocketAddr, wins: &Cell<bool>) -> Result<Peered, Error> {
        let mut stream = socket::dial(address, &|| self.losers.is_set())?;
        let loses = self.losers.watch(&stream);
        send_byte(&mut stream, BEGIN)?;
        let counts = match self.setup.identity {
            Identity::Code(_) => Moment::Answered,
            Identity::Keys { .. } => Moment::Accepted,
        };
        let go_on = |moment| {
            if moment != counts {
                return true;
            }
            if self.won.swap(true, Ordering::SeqCst) {
                return false;
            }
            wins.set(true);
            loses.release();
            self.losers.cancel();
            true
        };
        let deadline = Deadline::after(PATIENCE);
        handshake(stream, self.setup, Role::Initiator, deadline, self.cancel, &go_on)
    }
}

/// Tries each address `stagger` after the one before, or at once if nothing else is being tried. One that refuses is tried again
/// until `until`, as long as others are being tried: they may take their time and come to nothing.
fn race(
    addresses: &[SocketAddr],
    (stagger, until): (Duration, Instant),
    setup: &Setup,
    cancel: &Cancel,
) -> Result<(Peered, SocketAddr), Lost> {
    let (losers, won) = (Cancel::new(), AtomicBool::new(false));
    let of_losers = losers.clone();
    let _told = cancel.on_cancel(move || of_losers.cancel());
    let candidate = &Candidate {
        setup,
        cancel,
        losers: &losers,
        won: &won,
    };
    let (ended, ends) = channel();
    std::thread::scope(|scope| {
        let begin = |turn: Turn| {
            let telling = Telling::of(turn, ended.clone());
            scope.spawn(move || telling.tell(candidate.run(turn)));
        };
        let mut lost = Lost::nothing();
        let mut left = addresses.iter().copied();
        // Those that refused, and when it is their turn again.
        let mut again: Vec<(Instant, Turn)> = Vec::new();
        let (mut trying, mut next_at) = (0, Instant::now());
        loop {
            let now = Instant::now();
            if losers.is_set() {
                (left, again) = ([].iter().copied(), Vec::new());
            }
            if let Some(due) = again.iter().position(|&(at, _)| at <= now) {
                begin(again.swap_remove(due).1);
                trying += 1;
                continue;
            }
            if (trying == 0 || next_at <= now)
                && let Some(address) = left.next()
            {
                let pause = SHORTEST;
                begin(Turn { address, pause });
                trying += 1;
                next_at = now + stagger;
                continue;
            }
            if trying == 0 {
                return Err(lost);
            }
            let new = (left.len() > 0).then_some(next_at);
            let next = again.iter().map(|&(at, _)| at).chain(new).min();
            // Each turn ends by itself, so the wait for the last of them needs no limit.
            let came = match next {
                Some(at) => ends.recv_timeout(at.saturating_duration_since(now)),
                None => ends.recv().map_err(RecvTimeoutError::from),
            };
            let Ok(Outcome { turn, result, counts }) = came else {
                continue;
            };
            trying -= 1;
            match result {
                Ok(peered) => return Ok((peered, turn.address)),
                Err(error) if counts => {
                    losers.cancel();
                    return Err(Lost { error, refused: false });
                }
                Err(error) => {
                    let (now, first) = (Instant::now(), turn.pause == SHORTEST);
                    let at = now + turn.pause;
                    if is_refusal(&error) && at < until {
                        let pause = (turn.pause * 2).min(LONGEST);
                        again.push((at, Turn { pause, ..turn }));
                    }
                    lost.add(error);
                    // It makes room for another one once.
                    if first {
                        next_at = now;
                    }
                }
            }
        }
    })
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
