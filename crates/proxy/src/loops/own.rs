//! Connections of this process that the firewall may lead back to it.
//!
//! A transparent inbound is handed whatever a rule fits. If that is the connection of an outbound, its target is asked for
//! again, by another connection, and so on until no descriptors are left.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sealway_net::sock::unmapped;

use super::is_here;

/// How long a connection is remembered. One that comes back does so in milliseconds.
const REMEMBERED: Duration = Duration::from_secs(10);
/// Connections that a part of the memory remembers at most; beyond it the oldest is forgotten.
const MAX_BEGUN: usize = 1024;
/// Parts of the memory, by targets, each with a lock of its own.
const PARTS: usize = 64;

/// The mark of a socket, as its options ask for it.
pub(crate) type Mark = Option<u32>;

/// True once there is an inbound that the firewall leads connections to.
static WATCHED: AtomicBool = AtomicBool::new(false);
static BEGUN: LazyLock<Begun> = LazyLock::new(Begun::new);
/// Ports of sockets for datagrams: how many have each, and the mark of the last.
static PORTS: LazyLock<Mutex<HashMap<u16, (usize, Mark)>>> = LazyLock::new(Mutex::default);

/// Begins to remember what this process connects to.
pub(crate) fn watch() {
    WATCHED.store(true, Ordering::Relaxed);
}

/// Connects by `connect`, which must not wait, and remembers the address it returns: the one that the connection comes from.
pub(crate) fn connecting(
    to: SocketAddr,
    mark: Mark,
    connect: impl FnOnce() -> io::Result<SocketAddr>,
) -> io::Result<()> {
    if WATCHED.load(Ordering::Relaxed) {
        BEGUN.connecting(to, mark, connect)
    } else {
        connect().map(drop)
    }
}

/// The mark of the connection of this process that comes from here and goes there, if there is one.
pub(crate) fn stream(from: SocketAddr, to: SocketAddr) -> Option<Mark> {
    BEGUN.find(from, to)
}

/// The mark of the socket of this process that datagrams from here come from, if there is one.
pub(crate) fn datagram(from: SocketAddr) -> Option<Mark> {
    let found = lock(&PORTS).get(&from.port()).map(|(_, mark)| *mark);
    found.filter(|_| is_here(from))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections begun of late.
struct Begun {
    parts: Vec<Mutex<Part>>,
    by: RandomState,
}

#[derive(Default)]
struct Part {
    marks: HashMap<(SocketAddr, SocketAddr), (Mark, Instant)>,
    order: VecDeque<(SocketAddr, SocketAddr)>,
}

impl Begun {
    fn new() -> Self {
        Begun {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            by: RandomState::new(),
        }
    }

    /// Who looks for a connection knows where it goes.
    fn part(&self, to: SocketAddr) -> MutexGuard<'_, Part> {
        let at = self.by.hash_one(to) % PARTS as u64;
        lock(&self.parts[at as usize])
    }

    fn connecting(
        &self,
        to: SocketAddr,
        mark: Mark,
        connect: impl FnOnce() -> io::Result<SocketAddr>,
    ) -> io::Result<()> {
        let to = unmapped(to);
        // The connection may have come back before the system call has. Whoever looks for it waits here.
        let mut part = self.part(to);
        let from = unmapped(connect()?);
        if part.order.len() >= MAX_BEGUN
            && let Some(oldest) = part.order.pop_front()
        {
            part.marks.remove(&oldest);
        }
        if part.marks.insert((from, to), (mark, Instant::now())).is_none() {
            part.order.push_back((from, to));
        }
        Ok(())
    }

    fn find(&self, from: SocketAddr, to: SocketAddr) -> Option<Mark> {
        let (from, to) = (unmapped(from), unmapped(to));
        let part = self.part(to);
        let (mark, at) = part.marks.get(&(from, to))?;
        (at.elapsed() < REMEMBERED).then_some(*mark)
    }
}

/// The port of a socket for datagrams of this process. It is forgotten when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnPort(u16);

impl OwnPort {
    /// Remembers the port that a socket is bound to.
    pub(crate) fn of(bound: SocketAddr, mark: Mark) -> Self {
        let port = bound.port();
        let mut ports = lock(&PORTS);
        let entry = ports.entry(port).or_default();
        *entry = (entry.0 + 1, mark);
        OwnPort(port)
    }
}

impl Drop for OwnPort {
    fn drop(&mut self) {
        let mut ports = lock(&PORTS);
        if let Some((count, _)) = ports.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                ports.remove(&self.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_connection_is_known_by_both_of_its_ends() {
        let begun = Begun::new();
        let (from, to) = (at("192.0.2.1:40000"), at("198.51.100.1:443"));
        begun
            .connecting(at("[::ffff:198.51.100.1]:443"), Some(255), || Ok(from))
            .unwrap();
        assert_eq!(begun.find(at("[::ffff:192.0.2.1]:40000"), to), Some(Some(255)));
        for (other_from, other_to) in [
            (at("192.0.2.1:40001"), to),
            (at("192.0.2.2:40000"), to),
            (from, at("198.51.100.1:80")),
            (from, at("198.51.100.2:443")),
        ] {
            assert_eq!(begun.find(other_from, other_to), None, "{other_from} {other_to}");
        }
        let failed = begun.connecting(to, None, || Err(io::ErrorKind::ConnectionRefused.into()));
        assert!(failed.is_err());
    }

    #[test]
    fn whoever_looks_waits_for_a_connection_that_is_being_made() {
        let begun = Begun::new();
        let (from, to) = (at("192.0.2.1:40000"), at("198.51.100.1:443"));
        std::thread::scope(|scope| {
            let (connecting, waits) = std::sync::mpsc::channel();
            scope.spawn({
                let begun = &begun;
                move || {
                    begun.connecting(to, None, || {
                        connecting.send(()).unwrap();
                        std::thread::sleep(Duration::from_millis(100));
                        Ok(from)
                    })
                }
            });
            waits.recv().unwrap();
            assert_eq!(begun.find(from, to), Some(None));
        });
    }

    #[test]
    fn the_oldest_connections_are_forgotten() {
        let begun = Begun::new();
        let to = at("198.51.100.1:443");
        let from = |n: usize| SocketAddr::from(([192, 0, 2, 1], 10_000 + n as u16));
        for n in 0..MAX_BEGUN + 10 {
            begun.connecting(to, None, || Ok(from(n))).unwrap();
        }
        let kept = (0..MAX_BEGUN + 10).filter(|n| begun.find(from(*n), to).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), (10..MAX_BEGUN + 10).collect::<Vec<_>>());
        assert_eq!(begun.part(to).order.len(), MAX_BEGUN);
    }

    #[test]
    fn a_port_is_known_while_a_socket_has_it() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let bound = socket.local_addr().unwrap();
        assert_eq!(datagram(bound), None);
        let (one, two) = (OwnPort::of(bound, None), OwnPort::of(bound, Some(7)));
        assert_eq!(datagram(bound), Some(Some(7)));
        let elsewhere = SocketAddr::new([192, 0, 2, 1].into(), bound.port());
        assert_eq!(datagram(elsewhere), None, "of another machine");
        drop(one);
        assert!(datagram(bound).is_some());
        drop(two);
        assert_eq!(datagram(bound), None);
    }
}
