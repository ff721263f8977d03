//! Answers to clients, each in the name of whoever it comes from.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sealway_v2ray::Destination;
use socket2::Socket;

use crate::Error;
use crate::inbound::local::Answer;
use crate::loops::is_here;
use crate::policy::is_private;
use crate::transparent::in_the_name_of;

/// Sockets for answers that an inbound holds at once. Beyond it the one goes that was not needed for longest.
const MAX_SOCKETS: usize = 1024;
/// Targets of a client that are remembered, the latest ones.
const MAX_ASKED: usize = 64;
/// How long one stays that nobody needs.
const IDLE: Duration = Duration::from_secs(60);

/// Sockets that are bound to addresses of others, by these addresses. All clients share them.
pub(super) struct Answers<S = Socket> {
    sockets: Mutex<HashMap<SocketAddr, Held<S>>>,
    mark: Option<u32>,
}

struct Held<S> {
    socket: Arc<S>,
    used: Instant,
}

impl<S> Answers<S> {
    pub(super) fn new(mark: Option<u32>) -> Self {
        Answers {
            sockets: Mutex::default(),
            mark,
        }
    }

    fn sockets(&self) -> MutexGuard<'_, HashMap<SocketAddr, Held<S>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes those that nobody has needed for a while.
    pub(super) fn sweep(&self, now: Instant) {
        self.sockets()
            .retain(|_, held| now.saturating_duration_since(held.used) < IDLE);
    }

    /// The socket for this address, if there is one.
    fn kept(&self, from: SocketAddr, now: Instant) -> Option<Arc<S>> {
        let mut sockets = self.sockets();
        let held = sockets.get_mut(&from)?;
        held.used = now;
        Some(Arc::clone(&held.socket))
    }

    /// The socket for this address, or the one that `make` returns.
    fn get(
        &self,
        from: SocketAddr,
        now: Instant,
        make: impl FnOnce(Option<u32>) -> io::Result<S>,
    ) -> io::Result<Arc<S>> {
        if let Some(socket) = self.kept(from, now) {
            return Ok(socket);
        }
        let socket = Arc::new(make(self.mark)?);
        let mut sockets = self.sockets();
        if sockets.len() >= MAX_SOCKETS {
            let oldest = sockets.iter().min_by_key(|(_, held)| held.used).map(|(from, _)| *from);
            if let Some(oldest) = oldest {
                sockets.remove(&oldest);
            }
        }
        let held = Held {
            socket: Arc::clone(&socket),
            used: now,
        };
        sockets.insert(from, held);
        Ok(socket)
    }
}

/// Where a client has sent to.
#[derive(Default)]
pub(super) struct Asked(Mutex<VecDeque<SocketAddr>>);

impl Asked {
    fn lock(&self) -> MutexGuard<'_, VecDeque<SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a target, in place of the one that was not used for longest if there are [`MAX_ASKED`].
    pub(super) fn note(&self, to: &Destination) {
        let Some(to) = to.socket_addr() else { return };
        let mut asked = self.lock();
        if asked.front() == Some(&to) {
            return;
        }
        asked.retain(|one| *one != to);
        asked.truncate(MAX_ASKED - 1);
        asked.push_front(to);
    }

    fn has(&self, to: SocketAddr) -> bool {
        self.lock().contains(&to)
    }
}

pub(super) struct ToClient {
    answers: Arc<Answers>,
    client: SocketAddr,
    /// Where it sent to first.
    first: Option<SocketAddr>,
    asked: Arc<Asked>,
}

impl ToClient {
    pub(super) fn new(answers: Arc<Answers>, client: SocketAddr, first: &Destination, asked: Arc<Asked>) -> Self {
        asked.note(first);
        ToClient {
            answers,
            client,
            first: first.socket_addr(),
            asked,
        }
    }

    /// The socket that an answer goes out by.
    fn socket(&self, from: SocketAddr) -> io::Result<Arc<Socket>> {
        // A next server says what an answer's source is, and it is not in the site.
        if (is_private(from.ip()) || is_here(from)) && !self.asked.has(from) {
            return Err(io::Error::other(
                "an answer in the name of this machine or of a local host, which was not asked",
            ));
        }
        if is_here(from) {
            // Kept, or open to all, it would take the datagrams of a service that has the address.
            let socket = in_the_name_of(from, self.answers.mark)?;
            socket.connect(&self.client.into())?;
            return Ok(Arc::new(socket));
        }
        self.answers
            .get(from, Instant::now(), |mark| in_the_name_of(from, mark))
    }
}

impl Answer for ToClient {
    fn send(&self, bytes: &[u8], peer: &Destination) -> Result<usize, Error> {
        // A next server may name a host where the client knows an address only.
        let from = peer.socket_addr().or(self.first);
        let from = from.filter(|from| from.is_ipv4() == self.client.is_ipv4());
        let from = from.ok_or(Error::Unsupported("an answer from another family of addresses"))?;
        // What is kept was public, and not of this machine.
        let kept = self
            .answers
            .kept(from, Instant::now())
            .filter(|_| !is_private(from.ip()));
        let socket = match kept {
            Some(socket) => socket,
            None => self.socket(from)?,
        };
        Ok(socket.send_to(bytes, &self.client.into())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_shared_and_bounded_and_close_when_idle() {
        let answers: Answers<usize> = Answers::new(Some(9));
        let began = Instant::now();
        let from = |n: usize| SocketAddr::from(([192, 0, 2, 1], n as u16));
        let get = |n: usize, now| *answers.get(from(n), now, |_| Ok(n)).unwrap();
        let at = |seconds| began + Duration::from_secs(seconds);
        for n in 0..MAX_SOCKETS {
            assert_eq!(get(n, at(0)), n);
        }
        let made = |n: usize, now| {
            let mut made = false;
            answers
                .get(from(n), now, |mark| {
                    assert_eq!(mark, Some(9));
                    made = true;
                    Ok(n)
                })
                .unwrap();
            made
        };
        assert!(!made(7, at(1)), "there is one already");
        for n in MAX_SOCKETS..2 * MAX_SOCKETS - 1 {
            assert!(made(n, at(2)));
        }
        assert_eq!(answers.sockets().len(), MAX_SOCKETS);
        assert!(!made(7, at(3)), "it was needed later than the others that have gone");
        answers.sweep(at(2) + IDLE);
        assert_eq!(answers.sockets().len(), 1);
        assert!(
            answers
                .get(from(1), at(4), |_| Err(io::ErrorKind::PermissionDenied.into()))
                .is_err()
        );
    }

    #[test]
    fn nothing_answers_in_the_name_of_this_machine_unasked() {
        let at = |text: &str| {
            let address: SocketAddr = text.parse().unwrap();
            Destination::udp(address.ip(), address.port())
        };
        let answers = Arc::new(Answers::new(None));
        let client = "192.0.2.7:5000".parse().unwrap();
        let asked = Arc::new(Asked::default());
        let to = ToClient::new(answers, client, &at("192.0.2.1:53"), Arc::clone(&asked));
        let refused = |peer: &str| to.send(b"x", &at(peer)).unwrap_err().to_string();
        for unasked in ["127.0.0.1:53", "192.168.1.9:53", "224.0.0.1:53", "255.255.255.255:53"] {
            assert!(refused(unasked).contains("which was not asked"), "{unasked}");
        }
        assert!(refused("[2001:db8::1]:53").contains("another family"));
        // Whom it has asked may answer, if only later; here it takes rights that a test may lack.
        asked.note(&at("127.0.0.1:53"));
        if let Err(error) = to.send(b"x", &at("127.0.0.1:53")) {
            assert!(!error.to_string().contains("not asked"), "{error}");
        }
        assert!(refused("127.0.0.1:54").contains("not asked"));
        assert!(
            to.answers.sockets().is_empty(),
            "sockets at its own addresses are not kept"
        );
    }

    #[test]
    fn the_latest_targets_are_remembered() {
        let asked = Asked::default();
        let at = |n: usize| SocketAddr::from(([192, 0, 2, 1], 1000 + n as u16));
        let note = |n| asked.note(&Destination::udp(at(n).ip(), at(n).port()));
        (0..MAX_ASKED).for_each(note);
        note(0);
        note(MAX_ASKED);
        assert_eq!(asked.lock().len(), MAX_ASKED);
        assert!(asked.has(at(0)) && asked.has(at(MAX_ASKED)) && !asked.has(at(1)) && asked.has(at(2)));
    }
}
