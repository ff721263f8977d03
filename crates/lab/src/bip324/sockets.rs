//! Two endpoints over a real TCP connection on loopback, or over an emulated link: one thread seals and writes, another reads,
//! opens and compares.
//!
//! Read by the wall from the receiver's side: what counts is contents that it opened inside the window. CPU time is that of
//! this process without that of the link, and it has nothing else to do meanwhile: both endpoints with their system calls, and
//! the comparison, which costs all subjects the same.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sealway_bip324::batch::BatchOptions;
use sealway_bip324::{Kind, LENGTH_LEN, OVERHEAD, TAG_LEN};

use super::ciphers::Ciphers;
use super::ends::BatchEnd;
use super::links::{Link, SEED, failed};
use super::way::Way;
use crate::link::Over;
use crate::run::{CellError, Counted, Timed};
use crate::workload::bytes::noise;

/// Bytes that are read at once.
const READ: usize = 64 * 1024;

/// Longest silence of a socket.
const PATIENCE: Duration = Duration::from_secs(20);

/// Contents come from a text of so many bytes, each message from another place.
const TEXT: usize = 16 * 1024;
const STEP: usize = 61;

/// What the messages hold; the same at both ends.
pub(super) struct Messages {
    text: Vec<u8>,
    pub(super) bytes: usize,
}

impl Messages {
    pub(super) fn new(bytes: usize) -> Self {
        Messages {
            text: noise(TEXT + bytes, SEED ^ 0x50c),
            bytes,
        }
    }

    /// The contents of message `i`.
    #[inline(always)]
    pub(super) fn contents(&self, i: u64) -> &[u8] {
        let start = (i as usize).wrapping_mul(STEP) % TEXT;
        &self.text[start..start + self.bytes]
    }
}

/// Seals messages and writes them.
pub(super) trait Sender: Send {
    /// Seals messages from number `first` on and writes them at once.
    fn send(&mut self, messages: &Messages, first: u64, count: usize, to: &mut dyn Write) -> Result<(), CellError>;
}

/// Reads and opens.
pub(super) trait Receiver {
    /// Reads once and shows every message that is whole; gives how many bytes came, 0 at the end.
    fn receive(&mut self, from: &mut dyn Read, see: &mut dyn FnMut(&[u8])) -> Result<usize, CellError>;
}

/// Sets up both ends.
pub(super) type Make = Rc<dyn Fn() -> Result<(Box<dyn Sender>, Box<dyn Receiver>), CellError>>;

fn broken(error: std::io::Error) -> CellError {
    failed(format_args!("the connection broke: {error}"))
}

/// Writes, where a reader that has gone away is no failure: it has seen enough.
fn write(to: &mut dyn Write, bytes: &[u8]) -> Result<(), CellError> {
    to.write_all(bytes).map_err(broken)
}

fn read(from: &mut dyn Read, room: &mut [u8]) -> Result<usize, CellError> {
    loop {
        match from.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other.map_err(broken),
        }
    }
}

impl Sender for BatchEnd {
    fn send(&mut self, messages: &Messages, first: u64, count: usize, to: &mut dyn Write) -> Result<(), CellError> {
        for i in first..first + count as u64 {
            self.transport
                .submit(self.ids[0], Kind::Genuine, messages.contents(i))
                .map_err(failed)?;
        }
        for bytes in self.transport.seal().iter().flat_map(|output| output.slices()) {
            write(to, bytes)?;
        }
        Ok(())
    }
}

impl Receiver for BatchEnd {
    fn receive(&mut self, from: &mut dyn Read, see: &mut dyn FnMut(&[u8])) -> Result<usize, CellError> {
        let room = self.transport.receive_room(self.ids[0], READ).map_err(failed)?;
        let got = read(from, room)?;
        self.transport.receive_commit(got).map_err(failed)?;
        self.transport.open().iter().for_each(|message| see(message.contents));
        match self.transport.poll_closed() {
            None => Ok(got),
            Some((_, error)) => Err(CellError::wrong(error)),
        }
    }
}

/// Our batches at both ends.
pub(super) fn batched(link: &Link) -> Result<(Box<dyn Sender>, Box<dyn Receiver>), CellError> {
    let end = || BatchEnd::with(BatchOptions::default(), std::slice::from_ref(link));
    Ok((Box::new(end()?), Box::new(end()?)))
}

struct SingleSender<C: Ciphers> {
    sealer: C::Sealer,
    wire: Vec<u8>,
}

impl<C: Ciphers> Sender for SingleSender<C> {
    fn send(&mut self, messages: &Messages, first: u64, count: usize, to: &mut dyn Write) -> Result<(), CellError> {
        // One size in a case, so this is done once.
        self.wire.resize(count * (messages.bytes + OVERHEAD), 0);
        for (i, wire) in (first..).zip(self.wire.chunks_exact_mut(messages.bytes + OVERHEAD)) {
            if !C::seal(&mut self.sealer, false, messages.contents(i), wire) {
                return Err(failed(format_args!("{} refused message {i}", C::NAME)));
            }
        }
        write(to, &self.wire)
    }
}

struct SingleReceiver<C: Ciphers> {
    opener: C::Opener,
    wire: Vec<u8>,
    have: usize,
    /// Bytes that follow the length that was opened last.
    need: Option<usize>,
    text: Vec<u8>,
}

/// Opens the packets that are whole at the start of `wire`, into `text`, and shows their contents. `need` is how many bytes
/// follow the length that was opened last, if its packet is not whole. Gives what is left.
pub(super) fn unseal<'a, C: Ciphers>(
    opener: &mut C::Opener,
    need: &mut Option<usize>,
    wire: &'a [u8],
    text: &mut [u8],
    see: &mut dyn FnMut(&[u8]),
) -> Result<&'a [u8], CellError> {
    let wrong = |what: &str| CellError::wrong(format_args!("{}: {what}", C::NAME));
    let mut rest = wire;
    loop {
        let len = match *need {
            Some(len) => len,
            None => {
                let Some((length, after)) = rest.split_first_chunk::<LENGTH_LEN>() else {
                    return Ok(rest);
                };
                rest = after;
                let len = C::length(opener, *length).ok_or_else(|| wrong("a length is refused"))?;
                *need.insert(len)
            }
        };
        if len > text.len() || len < TAG_LEN + 1 {
            return Err(wrong("a packet is longer or shorter than any that was sent"));
        }
        let Some((sealed, after)) = rest.split_at_checked(len) else {
            return Ok(rest);
        };
        let text = &mut text[..len];
        C::open(opener, sealed, text).ok_or_else(|| wrong("a packet is not authentic"))?;
        see(&text[1..len - TAG_LEN]);
        rest = after;
        *need = None;
    }
}

impl<C: Ciphers> Receiver for SingleReceiver<C> {
    fn receive(&mut self, from: &mut dyn Read, see: &mut dyn FnMut(&[u8])) -> Result<usize, CellError> {
        let got = read(from, &mut self.wire[self.have..])?;
        let end = self.have + got;
        let rest = unseal::<C>(&mut self.opener, &mut self.need, &self.wire[..end], &mut self.text, see)?;
        self.have = rest.len();
        self.wire.copy_within(end - self.have..end, 0);
        Ok(got)
    }
}

/// One packet at a time at both ends.
pub(super) fn single<C: Ciphers>(ciphers: &C, link: &Link) -> Result<(Box<dyn Sender>, Box<dyn Receiver>), CellError> {
    let links = std::slice::from_ref(link);
    let (sealer, opener) = (ciphers.sealers(links)?.pop(), ciphers.openers(links)?.pop());
    let missing = || failed("no cipher was made");
    let sender = SingleSender::<C> {
        sealer: sealer.ok_or_else(missing)?,
        wire: Vec::new(),
    };
    let receiver = SingleReceiver::<C> {
        opener: opener.ok_or_else(missing)?,
        wire: vec![0; 2 * READ],
        have: 0,
        need: None,
        text: vec![0; READ],
    };
    Ok((Box::new(sender), Box::new(receiver)))
}

/// A case over sockets.
pub(super) struct SocketCell {
    messages: Rc<Messages>,
    /// Packets that are sealed together and written by one call.
    batch: usize,
    make: Make,
    over: Option<Over>,
    /// Windows so far.
    turns: u64,
}

impl Timed for SocketCell {
    /// Compares without a link, as all that comes before a window.
    fn prepare(&mut self) -> Result<(), CellError> {
        let way = Way::open(None, 0).map_err(broken)?;
        self.run(&way, (Duration::ZERO, Duration::from_millis(2))).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let way = Way::open(self.over, self.turns).map_err(broken)?;
        self.turns += 1;
        let settling = self.over.map_or(Duration::ZERO, |over| over.link.settling());
        let counted = self.run(&way, (warmup + settling, window));
        way.check()?;
        counted
    }
}

impl SocketCell {
    pub(super) fn new(messages: &Rc<Messages>, batch: usize, make: &Make, over: Option<Over>) -> SocketCell {
        SocketCell {
            messages: Rc::clone(messages),
            batch,
            make: Rc::clone(make),
            over,
            turns: 0,
        }
    }

    /// Opens a connection, measures and closes it.
    fn run(&self, way: &Way, times: (Duration, Duration)) -> Result<Counted, CellError> {
        let (mut sender, mut receiver) = (self.make)()?;
        let [mut to, mut from] = connected(way).map_err(broken)?;
        way.engage();
        let stop = AtomicBool::new(false);
        let (messages, batch) = (&*self.messages, self.batch);
        thread::scope(|scope| {
            let halt = &stop;
            // Moved: when it ends, for whatever reason, its socket is closed and the reader notices.
            let sending = scope.spawn(move || {
                let mut next = 0;
                while !halt.load(Ordering::Relaxed) {
                    sender.send(messages, next, batch, &mut to)?;
                    next += batch as u64;
                }
                to.shutdown(Shutdown::Write).map_err(broken)?;
                Ok(next)
            });
            let received = watch(receiver.as_mut(), &mut from, messages, &stop, (way, times));
            // Without a reader the sender's next write fails, so that it ends whatever happened here.
            stop.store(true, Ordering::Relaxed);
            if received.is_err() {
                let _ = from.shutdown(Shutdown::Both);
                way.release();
            }
            let sent = sending.join().unwrap_or_else(|_| Err(failed("the sender ended early")));
            let (counted, seen) = received?;
            match sent? {
                sent if sent == seen => Ok(counted),
                sent => Err(CellError::wrong(format_args!("{seen} messages came of {sent} sent"))),
            }
        })
    }
}

/// Both ends of a connection.
fn connected(way: &Way) -> std::io::Result<[TcpStream; 2]> {
    let ends = way.connect()?;
    for end in &ends {
        end.set_read_timeout(Some(PATIENCE))?;
        end.set_write_timeout(Some(PATIENCE))?;
    }
    Ok(ends)
}

/// What a window over sockets comes to: messages, their bytes and those on the wire, and the CPU seconds of both ends.
pub(super) fn carried([ops, bytes, wire]: [u64; 3], wall: Duration, cpu: Option<f64>) -> Counted {
    let mut figures = vec![("wire_bytes", wire as f64)];
    if let Some(cpu) = cpu.filter(|_| bytes > 0) {
        figures.push(("cpu_per_gb", cpu / (bytes as f64 / 1e9)));
        figures.push(("cpu_per_op", cpu / ops as f64));
    }
    Counted {
        ops,
        bytes,
        wall_s: wall.as_secs_f64(),
        cpu_s: cpu.unwrap_or_default(),
        figures,
        tails: Vec::new(),
    }
}

/// Reads to the end, and counts what came between the warm-up and the end of the window; gives all messages seen too. What is under
/// way after the window arrives at once.
fn watch(
    receiver: &mut dyn Receiver,
    from: &mut TcpStream,
    messages: &Messages,
    stop: &AtomicBool,
    (way, (warmup, window)): (&Way, (Duration, Duration)),
) -> Result<(Counted, u64), CellError> {
    let (mut seen, mut wrong, mut wire) = (0, None, 0);
    let mut start: Option<(Instant, Option<Duration>, u64, u64)> = None;
    let mut counted = None;
    let began = Instant::now();
    loop {
        let got = receiver.receive(from, &mut |contents| {
            if contents != messages.contents(seen) {
                wrong.get_or_insert(seen);
            }
            seen += 1;
        })?;
        if let Some(message) = wrong {
            return Err(CellError::wrong(format_args!(
                "message {message} differs from what was sent"
            )));
        }
        if got == 0 {
            break;
        }
        wire += got as u64;
        match start {
            None if began.elapsed() >= warmup => start = Some((Instant::now(), way.cpu(), seen, wire)),
            Some((clock, cpu, before, wire_before)) if counted.is_none() && clock.elapsed() >= window => {
                let wall = clock.elapsed();
                let cpu = way.spent(cpu);
                stop.store(true, Ordering::Relaxed);
                let (ops, wire) = (seen - before, wire - wire_before);
                let bytes = ops * messages.bytes as u64;
                let mut told = carried([ops, bytes, wire], wall, cpu);
                told.figures.extend(way.release());
                counted = Some(told);
            }
            _ => {}
        }
    }
    match counted {
        Some(counted) => Ok((counted, seen)),
        None => Err(failed("the connection ended before the window did")),
    }
}
