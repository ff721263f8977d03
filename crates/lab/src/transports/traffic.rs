//! The two ends of a path inside this process: the generator connects to its entry, the sink accepts at its end.
//!
//! Two threads a stream, one for each end, with blocking reads and writes of 128 KiB and TCP_NODELAY: the same for every
//! subject. What counts is what the receiver has been given.

mod half;
mod sink;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::pattern::Pattern;
use crate::connections::Connections;
use crate::run::CellError;
use half::Here;
pub(super) use half::{Planned, State};
pub(super) use sink::Sink;

/// Bytes of a read or a write.
pub(super) const PIECE: usize = 128 * 1024;

/// How long nothing may move before a stream is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// How long the end of a stream of which every byte has arrived may take. Some programs never pass it on.
pub(super) const END: Duration = Duration::from_millis(100);

/// The same where it must come: over what cannot say the end of one direction, it comes after the time that the other has.
const MUST_END: Duration = Duration::from_secs(8);

/// How often a sender that waits for the end looks whether its stream has arrived.
const STEP: Duration = Duration::from_millis(10);

/// What a connection begins with.
const MAGIC: [u8; 8] = *b"swlab\0t1";

/// Sizes of writes that go round where every size class is to be seen.
const SIZES: [usize; 14] = [
    1, 131_072, 2, 16, 17, 255, 1024, 1399, 4096, 8192, 16_383, 16_385, 65_535, 65_537,
];

/// Which way the payload goes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    /// To the generator, as a download.
    Down,
    /// To the sink.
    Up,
}

impl Direction {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

/// What a stream does.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub(super) direction: Direction,
    /// Bytes to send; until told to stop if absent.
    pub(super) limit: Option<u64>,
    /// Write pieces of all sizes.
    pub(super) thorough: bool,
    /// It is an error that the end of the stream is not passed on.
    pub(super) must_end: bool,
}

impl Order {
    /// Until told to stop.
    pub(super) const fn endless(direction: Direction) -> Order {
        Order {
            direction,
            limit: None,
            thorough: false,
            must_end: false,
        }
    }

    /// So many bytes in pieces of all sizes.
    pub(super) const fn thorough(direction: Direction, bytes: u64) -> Order {
        Order {
            limit: Some(bytes),
            thorough: true,
            ..Order::endless(direction)
        }
    }
}

/// Why a stream did not do what it should.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Trouble {
    /// A byte arrived that was not sent at this place.
    Wrong { offset: u64 },
    /// A stream ended before all that was to be sent had arrived.
    Count { sent: u64, received: u64 },
    /// A connection failed.
    Broken { side: String, what: String },
    /// Nothing moved.
    Stuck,
    /// Everything arrived, but not the end.
    Endless,
}

impl From<Trouble> for CellError {
    fn from(trouble: Trouble) -> CellError {
        match trouble {
            Trouble::Wrong { offset } => {
                CellError::wrong(format_args!("byte {offset} of a stream is not what was sent there"))
            }
            Trouble::Count { sent, received } => CellError::wrong(format_args!(
                "a stream ended too soon: {received} bytes arrived, {sent} were sent so far"
            )),
            Trouble::Broken { side, what } => CellError::failed(format_args!("{side}: {what}")),
            Trouble::Endless => CellError::wrong("every byte of a stream arrived, but its end was not passed on"),
            Trouble::Stuck => CellError::failed(format_args!("nothing moved for {} s", PATIENCE.as_secs())),
        }
    }
}

/// One stream, known to both its ends.
#[derive(Debug)]
pub(super) struct Stream {
    key: u64,
    order: Order,
    stop: Arc<AtomicBool>,
    /// The sink has accepted it.
    accepted: AtomicBool,
    sent: AtomicU64,
    /// Nothing more is sent.
    ended: AtomicBool,
    received: AtomicU64,
    /// The receiver has ended: nothing more is to come.
    arrived: AtomicBool,
    here: Here,
    /// The connections of all streams that were begun with it.
    connections: Arc<Connections>,
    /// The sender has ended, well or not.
    over: AtomicBool,
    done: Sender<Result<(), Trouble>>,
}

impl Stream {
    /// Bytes that the receiver was given.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    /// Sends until the limit or until told to stop, then ends the stream and waits for the other end's.
    fn send(&self, socket: &TcpStream) -> Result<(), Trouble> {
        let sent = self.send_all(socket);
        self.over.store(true, Ordering::Release);
        sent
    }

    fn send_all(&self, mut socket: &TcpStream) -> Result<(), Trouble> {
        let mut pattern = Pattern::new(self.key);
        let mut piece = vec![0; PIECE];
        pattern.fill(0, &mut piece);
        let mut offset = 0;
        for turn in 0.. {
            if self.stop.load(Ordering::Acquire) {
                break;
            }
            let size = if self.order.thorough {
                SIZES[turn % SIZES.len()]
            } else {
                PIECE
            };
            let left = self.order.limit.map_or(u64::MAX, |limit| limit - offset);
            let size = size.min(usize::try_from(left).unwrap_or(usize::MAX));
            if size == 0 {
                break;
            }
            if self.order.thorough {
                pattern.fill(offset, &mut piece[..size]);
            } else {
                pattern.move_to(offset, &mut piece);
            }
            // Counted before, so that what arrives is never ahead of what was sent.
            self.sent.fetch_add(size as u64, Ordering::AcqRel);
            socket.write_all(&piece[..size]).map_err(broken("sender"))?;
            offset += size as u64;
        }
        self.ended.store(true, Ordering::Release);
        socket.shutdown(Shutdown::Write).map_err(broken("sender"))?;
        // What the other end still says, or how it ends, is no matter of this stream: once all has arrived nobody waits for it.
        socket.set_read_timeout(Some(STEP)).map_err(broken("sender"))?;
        let since = Instant::now();
        while !self.arrived.load(Ordering::Acquire) && since.elapsed() < PATIENCE {
            match socket.read(&mut piece) {
                Ok(1..) => {}
                Err(error) if is_timeout(&error) => {}
                Ok(0) | Err(_) => break,
            }
        }
        Ok(())
    }

    /// Receives to the end.
    fn receive(&self, socket: &TcpStream) -> Result<(), Trouble> {
        let received = self.receive_all(socket);
        self.arrived.store(true, Ordering::Release);
        received
    }

    fn receive_all(&self, mut socket: &TcpStream) -> Result<(), Trouble> {
        let mut pattern = Pattern::new(self.key);
        let mut piece = vec![0; PIECE];
        let (mut offset, mut since) = (0, Instant::now());
        socket.set_read_timeout(Some(END)).map_err(broken("receiver"))?;
        loop {
            let n = match socket.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if is_timeout(&error) && since.elapsed() < PATIENCE => {
                    if self.ended.load(Ordering::Acquire) && self.sent.load(Ordering::Acquire) == offset {
                        match self.order.must_end {
                            false => break,
                            true if since.elapsed() >= MUST_END => return Err(Trouble::Endless),
                            true => {}
                        }
                    }
                    continue;
                }
                Err(error) => return Err(broken("receiver")(error)),
            };
            if let Some(at) = pattern.first_wrong(offset, &piece[..n]) {
                return Err(Trouble::Wrong {
                    offset: offset + at as u64,
                });
            }
            offset += n as u64;
            since = Instant::now();
            self.received.store(offset, Ordering::Release);
        }
        if self.here != Here::Both {
            self.hear_of_the_end();
        }
        let sent = self.sent.load(Ordering::Acquire);
        let wanted = match self.order.limit {
            Some(limit) => offset == limit,
            None => self.stop.load(Ordering::Acquire),
        };
        if offset != sent || !wanted {
            return Err(Trouble::Count { sent, received: offset });
        }
        Ok(())
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn broken(side: &'static str) -> impl Fn(io::Error) -> Trouble {
    move |error| match is_timeout(&error) {
        true => Trouble::Stuck,
        false => Trouble::Broken {
            side: side.to_owned(),
            what: error.to_string(),
        },
    }
}

fn set_up(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))
}

/// Connects and does the generator's end.
fn generate(stream: &Stream, entry: SocketAddr) -> Result<(), Trouble> {
    let socket = TcpStream::connect(entry).map_err(broken("generator"))?;
    set_up(&socket).map_err(broken("generator"))?;
    let _held = stream.connections.hold(&socket).map_err(broken("generator"))?;
    let hello = [MAGIC, stream.key.to_le_bytes()].concat();
    (&socket).write_all(&hello).map_err(broken("generator"))?;
    match stream.order.direction {
        Direction::Down => stream.receive(&socket),
        Direction::Up => {
            // What comes before the path is open is not what is measured, and some programs cannot hold much of it.
            opened(stream, &socket)?;
            stream.send(&socket)
        }
    }
}

/// Waits until the sink has heard of the stream, unless the path ends before that.
fn opened(stream: &Stream, socket: &TcpStream) -> Result<(), Trouble> {
    let until = Instant::now() + PATIENCE;
    socket.set_nonblocking(true).map_err(broken("generator"))?;
    while !stream.accepted.load(Ordering::Acquire) {
        match socket.peek(&mut [0]) {
            // Nothing else is said on it.
            Ok(0) => return Err(broken("generator")(ErrorKind::UnexpectedEof.into())),
            Err(error) if !is_timeout(&error) => return Err(broken("generator")(error)),
            _ if Instant::now() >= until => return Err(Trouble::Stuck),
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    }
    socket.set_nonblocking(false).map_err(broken("generator"))
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok(())
}

/// Streams that run. Their connections end with it.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) streams: Vec<Arc<Stream>>,
    stop: Arc<AtomicBool>,
    done: Receiver<Result<(), Trouble>>,
    connections: Arc<Connections>,
    /// Ends of streams that are still to come.
    open: usize,
}

impl Traffic {
    /// Starts a stream for each order, from `entry` to `sink`.
    pub(super) fn start(entry: SocketAddr, sink: &Sink, orders: &[Order]) -> Result<Traffic, CellError> {
        let planned = Planned::of(orders)?;
        let mut traffic = Traffic::new(&planned, Here::Both);
        traffic.open *= 2;
        sink.expect(&traffic.streams);
        traffic.generate(entry)?;
        Ok(traffic)
    }

    /// Streams of which nothing runs yet.
    fn new(planned: &[Planned], here: Here) -> Traffic {
        let (tell, done) = channel();
        // Each of them has two at most.
        let connections = Connections::new(2 * planned.len());
        let stop: Arc<AtomicBool> = Arc::default();
        let stream = |planned: &Planned| {
            Arc::new(Stream {
                key: planned.key,
                order: planned.order,
                stop: Arc::clone(&stop),
                accepted: AtomicBool::new(false),
                sent: AtomicU64::new(0),
                ended: AtomicBool::new(false),
                received: AtomicU64::new(0),
                arrived: AtomicBool::new(false),
                here,
                connections: Arc::clone(&connections),
                over: AtomicBool::new(false),
                done: tell.clone(),
            })
        };
        Traffic {
            streams: planned.iter().map(stream).collect(),
            stop,
            done,
            connections,
            open: planned.len(),
        }
    }

    /// Starts the generator's ends of the streams.
    fn generate(&self, entry: SocketAddr) -> Result<(), CellError> {
        for stream in &self.streams {
            let stream = Arc::clone(stream);
            thread("generator", move || {
                let ended = generate(&stream, entry);
                let _ = stream.done.send(ended);
            })
            .map_err(|error| CellError::failed(format_args!("cannot start a thread: {error}")))?;
        }
        Ok(())
    }

    /// Waits until every stream has delivered something.
    pub(super) fn flowing(&mut self) -> Result<(), Trouble> {
        let until = Instant::now() + PATIENCE;
        while self.streams.iter().any(|stream| stream.received() == 0) {
            if Instant::now() >= until {
                return Err(Trouble::Stuck);
            }
            self.watch(Duration::from_millis(1))?;
        }
        Ok(())
    }

    /// Lets time pass; fails at once if a stream does.
    pub(super) fn watch(&mut self, time: Duration) -> Result<(), Trouble> {
        let until = Instant::now() + time;
        loop {
            match self.done.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => self.open -= 1,
                Ok(Err(trouble)) => return Err(trouble),
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()))
                }
            }
        }
    }

    /// Tells the senders to stop.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for the end of all streams; every byte sent must have arrived.
    pub(super) fn finish(mut self) -> Result<(), Trouble> {
        let mut first = Ok(());
        while self.open > 0 {
            let patience = if first.is_ok() {
                2 * PATIENCE
            } else {
                Duration::from_millis(200)
            };
            match self.done.recv_timeout(patience) {
                Ok(ended) => {
                    self.open -= 1;
                    first = weigh(first, ended);
                }
                Err(_) if first.is_ok() => return Err(Trouble::Stuck),
                Err(_) => break,
            }
        }
        first
    }
}

/// Of what two ends say, what tells more: what the receiver says, and not that its sender broke off.
pub(super) fn weigh(first: Result<(), Trouble>, next: Result<(), Trouble>) -> Result<(), Trouble> {
    match &next {
        Err(Trouble::Wrong { .. } | Trouble::Count { .. }) => next,
        _ => first.and(next),
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop();
        self.connections.end();
    }
}
