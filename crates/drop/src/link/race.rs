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
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use sealway_session::handshake::Role;

use super::establish::{BEGIN, Deadline, Identity, Moment, Peered, Setup, handshake};
use super::place::{PATIENCE, send_byte};
use super::socket;
use crate::Error;
use crate::cancel::Cancel;
use crate::dial::{STAGGER, alternate};

/// Addresses of one host that are tried at most.
const ADDRESSES: usize = 8;

/// Longer than the last of them can take.
const LAST: Duration = Duration::from_secs(30);

/// Longest pause before addresses at which nobody listens are tried again.
const PAUSE: Duration = Duration::from_millis(250);

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
    let mut pause = Duration::from_millis(5);
    loop {
        match race(&addresses, STAGGER, setup, cancel) {
            Err(lost) if lost.may_come() && Instant::now() + pause < until && !cancel.is_set() => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(PAUSE);
            }
            result => return result.map_err(|lost| lost.error),
        }
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
        self.refused |= says(&error) == REFUSED;
        if says(&error) >= says(&self.error) {
            self.error = error;
        }
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

/// One handshake among others.
struct Candidate<'a> {
    setup: &'a Setup,
    cancel: &'a Cancel,
    /// Ends those that have not won.
    losers: &'a Cancel,
    won: &'a AtomicBool,
}

impl Candidate<'_> {
    /// What came of it, and whether it is the one that counts.
    fn run(&self, address: SocketAddr) -> (Result<Peered, Error>, bool) {
        let wins = Cell::new(false);
        (self.attempt(address, &wins), wins.get())
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

/// Tries each address `stagger` after the one before, or at once if nothing else is being tried.
fn race(
    addresses: &[SocketAddr],
    stagger: Duration,
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
        let mut lost = Lost::nothing();
        let mut left = addresses.iter().copied();
        let (mut trying, mut next_at) = (0, Instant::now());
        loop {
            let wait = next_at.saturating_duration_since(Instant::now());
            if (wait.is_zero() || trying == 0)
                && !losers.is_set()
                && let Some(address) = left.next()
            {
                let ended = ended.clone();
                scope.spawn(move || drop(ended.send((candidate.run(address), address))));
                trying += 1;
                next_at = Instant::now() + stagger;
                continue;
            }
            if trying == 0 {
                return Err(lost);
            }
            let more = left.len() > 0 && !losers.is_set();
            match ends.recv_timeout(if more { wait } else { LAST }) {
                Ok(((Ok(peered), _), address)) => return Ok((peered, address)),
                Ok(((Err(error), true), _)) => return Err(Lost { error, refused: false }),
                Ok(((Err(error), false), _)) => {
                    lost.add(error);
                    trying -= 1;
                    next_at = Instant::now();
                }
                Err(RecvTimeoutError::Timeout) if more => {}
                Err(_) => {
                    losers.cancel();
                    lost.add(Error::Protocol("a thread of this end failed"));
                    return Err(lost);
                }
            }
        }
    })
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
