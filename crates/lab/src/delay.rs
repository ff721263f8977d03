//! A TCP forwarder with distance: what it takes in at one end it gives out at the other after a fixed delay.
//!
//! `delay` is **one way** and both directions have it: the round trip is twice as long. A connection is dialled onward one
//! delay after it was accepted, and the client's first bytes go out another delay later at the earliest, as the second and
//! third packets of a handshake over that distance would. Each direction holds at most `buffer` bytes; a sender that fills
//! it is held back by TCP as a full pipe would do. For a link of rate R the buffer must be at least R times the delay, or
//! the buffer is what limits: [`Delay::buffer_for`].
//!
//! Two threads a direction of each connection, blocking sockets, no timer finer than the system's sleep.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a read. Small enough that a piece is no burst, large enough that copying is cheap.
const PIECE: usize = 256 * 1024;

/// Least buffer: a piece each on its way in, waiting and on its way out.
const LEAST_BUFFER: usize = 4 * PIECE;

/// How the forwarder delays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Delay {
    /// One way.
    pub one_way: Duration,
    /// Bytes that each direction of a connection holds at most.
    pub buffer: usize,
}

impl Delay {
    /// A delay whose buffer is no limit below `rate` bytes a second, with half as much again for the jitter of threads.
    pub fn buffer_for(one_way: Duration, rate: u64) -> Delay {
        let bytes = rate as f64 * one_way.as_secs_f64() * 1.5;
        Delay {
            one_way,
            buffer: (bytes as usize).max(LEAST_BUFFER),
        }
    }
}

/// A running forwarder. Dropping it closes its listener and every connection.
#[derive(Debug)]
pub struct Forwarder {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    closing: AtomicBool,
    /// Bytes delivered in both directions.
    carried: AtomicU64,
    /// Both sockets of every connection, to be closed at the end.
    open: Mutex<Vec<TcpStream>>,
}

impl Forwarder {
    /// Listens at a port of 127.0.0.1 and forwards every connection to `to`.
    ///
    /// # Errors
    /// What the system says to listening, or to starting a thread.
    pub fn open(to: SocketAddr, delay: Delay) -> io::Result<Forwarder> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        named(move || {
            for near in listener.incoming() {
                if own.closing.load(Ordering::Acquire) {
                    break;
                }
                let Ok(near) = near else { continue };
                let (accepted, own) = (Instant::now(), Arc::clone(&own));
                // Where there is no thread for it the connection ends, as its own end will see.
                let _ = named(move || {
                    let _ = join(near, to, delay, accepted, &own);
                });
            }
        })?;
        Ok(Forwarder { address, shared })
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes delivered so far, both directions together.
    pub fn carried(&self) -> u64 {
        self.shared.carried.load(Ordering::Relaxed)
    }

    /// Cuts every connection that is open now, as a network that goes away; new ones are taken.
    pub fn cut(&self) {
        let open = std::mem::take(&mut *self.shared.open.lock().unwrap_or_else(PoisonError::into_inner));
        for socket in open {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn named(work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("delay".to_owned()).spawn(work)
}

/// Forwards one connection both ways.
fn join(near: TcpStream, to: SocketAddr, delay: Delay, accepted: Instant, shared: &Arc<Shared>) -> io::Result<()> {
    sleep_until(accepted + delay.one_way);
    let far = TcpStream::connect(to)?;
    for socket in [&near, &far] {
        socket.set_nodelay(true)?;
        let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(socket.try_clone()?);
    }
    if shared.closing.load(Ordering::Acquire) {
        near.shutdown(Shutdown::Both)?;
    }
    let pairs = [
        // A client's first byte comes with the third packet of the handshake.
        (near.try_clone()?, far.try_clone()?, accepted + 2 * delay.one_way),
        (far, near, accepted),
    ];
    for (from, to, first) in pairs {
        let line = Arc::new(Line::new(delay));
        let (source, carried) = (Arc::clone(&line), Arc::clone(shared));
        named(move || source.fill(from))?;
        named(move || line.drain(to, first, &carried.carried))?;
    }
    Ok(())
}

/// What is on its way in one direction.
#[derive(Debug)]
struct Line {
    delay: Delay,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Pieces and when they came, oldest first.
    held: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// Pieces that were delivered, to be used again.
    spare: Vec<Vec<u8>>,
    /// Nothing more comes: when that was, and whether the connection broke.
    ended: Option<(Instant, bool)>,
    /// The receiver is gone.
    gone: bool,
}

impl Line {
    fn new(delay: Delay) -> Line {
        Line {
            delay,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: std::sync::MutexGuard<'a, State>) -> std::sync::MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in until the end.
    fn fill(&self, mut from: TcpStream) {
        let mut broken = false;
        loop {
            let mut piece = {
                let mut state = self.state();
                while state.bytes >= self.delay.buffer && !state.gone {
                    state = self.wait(state);
                }
                if state.gone {
                    let _ = from.shutdown(Shutdown::Read);
                    break;
                }
                state.spare.pop().unwrap_or_default()
            };
            piece.resize(PIECE, 0);
            match from.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => {
                    piece.truncate(n);
                    let mut state = self.state();
                    state.bytes += n;
                    state.held.push_back((Instant::now(), piece));
                    drop(state);
                    self.changed.notify_all();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    broken = true;
                    break;
                }
            }
        }
        self.state().ended = Some((Instant::now(), broken));
        self.changed.notify_all();
    }

    /// Gives out what is due until the end, nothing before `first`.
    fn drain(&self, mut to: TcpStream, first: Instant, carried: &AtomicU64) {
        loop {
            let (due, piece) = {
                let mut state = self.state();
                loop {
                    if let Some((came, piece)) = state.held.pop_front() {
                        break (came, Ok(piece));
                    }
                    if let Some((came, broken)) = state.ended {
                        break (came, Err(broken));
                    }
                    state = self.wait(state);
                }
            };
            sleep_until((due + self.delay.one_way).max(first));
            let piece = match piece {
                Ok(piece) => piece,
                Err(broken) => {
                    let how = if broken { Shutdown::Both } else { Shutdown::Write };
                    let _ = to.shutdown(how);
                    return;
                }
            };
            let written = to.write_all(&piece);
            let mut state = self.state();
            state.bytes -= piece.len();
            if written.is_err() {
                state.gone = true;
                let _ = to.shutdown(Shutdown::Both);
            } else {
                carried.fetch_add(piece.len() as u64, Ordering::Relaxed);
                state.spare.push(piece);
            }
            let gone = state.gone;
            drop(state);
            self.changed.notify_all();
            if gone {
                return;
            }
        }
    }
}

fn sleep_until(moment: Instant) {
    let left = moment.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        thread::sleep(left);
    }
}

/// What a forwarder was seen to do, before anything is measured through it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTest {
    /// Median round trip of a byte once the connection stands.
    pub round_trip: Duration,
    /// Bytes a second that one connection carried, from the first byte to the last at the receiver.
    pub rate: f64,
}

/// Sends single bytes to and fro, then `bytes` one way, through a forwarder of its own.
///
/// # Errors
/// What the system says.
pub fn self_test(delay: Delay, bytes: u64) -> io::Result<SelfTest> {
    const ECHOES: usize = 5;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let forwarder = Forwarder::open(listener.local_addr()?, delay)?;
    let receiver = thread::Builder::new()
        .name("delay test".to_owned())
        .spawn(move || -> io::Result<f64> {
            let (mut socket, _) = listener.accept()?;
            socket.set_nodelay(true)?;
            let mut piece = vec![0; PIECE];
            for _ in 0..ECHOES {
                socket.read_exact(&mut piece[..1])?;
                socket.write_all(&piece[..1])?;
            }
            let (mut left, mut first) = (bytes, None);
            while left > 0 {
                let n = socket.read(&mut piece)?;
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                left = left.saturating_sub(n as u64);
                first.get_or_insert_with(Instant::now);
            }
            let took = first.map_or(Duration::ZERO, |first| first.elapsed());
            Ok(bytes as f64 / took.as_secs_f64().max(1e-9))
        })?;
    let mut socket = TcpStream::connect(forwarder.address())?;
    socket.set_nodelay(true)?;
    let mut trips = Vec::new();
    for _ in 0..ECHOES {
        let from = Instant::now();
        socket.write_all(b"x")?;
        socket.read_exact(&mut [0])?;
        trips.push(from.elapsed());
    }
    trips.sort_unstable();
    let piece = vec![0; PIECE];
    let mut left = bytes;
    while left > 0 {
        let take = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        socket.write_all(&piece[..take])?;
        left -= take as u64;
    }
    let rate = receiver
        .join()
        .map_err(|_| io::Error::other("the receiver of the test has panicked"))??;
    Ok(SelfTest {
        round_trip: trips[ECHOES / 2],
        rate,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn pair(delay: Delay) -> (Forwarder, TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let forwarder = Forwarder::open(listener.local_addr().unwrap(), delay).unwrap();
        let near = TcpStream::connect(forwarder.address()).unwrap();
        let (far, _) = listener.accept().unwrap();
        (forwarder, near, far)
    }

    fn short() -> Delay {
        Delay::buffer_for(Duration::from_millis(20), 0)
    }

    #[test]
    fn nothing_arrives_before_its_time() {
        let (_forwarder, mut near, mut far) = pair(short());
        for _ in 0..3 {
            let from = Instant::now();
            near.write_all(b"a").unwrap();
            far.read_exact(&mut [0]).unwrap();
            assert!(from.elapsed() >= short().one_way);
            let from = Instant::now();
            far.write_all(b"b").unwrap();
            near.read_exact(&mut [0]).unwrap();
            assert!(from.elapsed() >= short().one_way);
        }
    }

    #[test]
    fn bytes_keep_their_order_through_a_small_buffer() {
        let (forwarder, mut near, mut far) = pair(short());
        let sent: Vec<u8> = (0..6_000_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let copy = sent.clone();
        let writer = thread::spawn(move || {
            near.write_all(&copy).unwrap();
            near.shutdown(Shutdown::Write).unwrap();
            near
        });
        let mut got = Vec::new();
        far.read_to_end(&mut got).unwrap();
        assert!(got == sent);
        // The other direction still works after the end of the first.
        far.write_all(b"end").unwrap();
        drop(far);
        let mut rest = Vec::new();
        writer.join().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"end");
        assert_eq!(forwarder.carried(), 6_000_003);
    }

    #[test]
    fn the_buffer_is_a_bound() {
        let (_forwarder, mut near, far) = pair(short());
        near.set_nonblocking(true).unwrap();
        // Nobody reads: what is taken is what the forwarder and the sockets hold.
        let piece = vec![0; 64 * 1024];
        let (mut taken, mut refused) = (0, 0);
        while refused < 30 {
            match near.write(&piece) {
                Ok(n) => {
                    taken += n;
                    refused = 0;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    refused += 1;
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{error}"),
            }
            assert!(taken < 64 << 20, "{taken} bytes were taken");
        }
        drop(far);
    }

    #[test]
    fn a_cut_ends_both_sides_and_another_connection_works() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let forwarder = Forwarder::open(listener.local_addr().unwrap(), short()).unwrap();
        for _ in 0..2 {
            let mut near = TcpStream::connect(forwarder.address()).unwrap();
            let (mut far, _) = listener.accept().unwrap();
            near.write_all(b"x").unwrap();
            far.read_exact(&mut [0]).unwrap();
            forwarder.cut();
            let mut rest = Vec::new();
            // An end or a reset, as the system likes.
            let _ = near.read_to_end(&mut rest);
            let _ = far.read_to_end(&mut rest);
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn the_self_test_sees_the_delay() {
        let found = self_test(Delay::buffer_for(Duration::from_millis(10), 100_000_000), 4 << 20).unwrap();
        assert!(found.round_trip >= Duration::from_millis(20));
        assert!(found.rate > 0.0);
    }
}
