//! The thread that carries bytes over an emulated link.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Link;
use super::flow::{Item, PIECE};
use super::line::Line;
use super::pair::{DOWN, Pair, Taken, UP, buffer};
use crate::measure::cpu::thread_cpu_of;
use crate::service::{Door, Event, Service};
use crate::stats::SplitMix64;

/// What is seen to no later than this is in time.
const LATE_NS: u64 = 1_000_000;

/// Pieces that a direction takes in, and deadlines that are seen to, before others have their turn.
const TURN: usize = 16;
const TURNS: usize = 256;

/// A running relay to one address. Dropping it breaks its connections.
///
/// It begins as an open door, and passes bytes on as fast as it can; between [`Relay::engage`] and [`Relay::release`] it is the
/// link. Its CPU time is that of a thread of this process.
#[derive(Debug)]
pub struct Relay {
    service: Service,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    engaged: AtomicBool,
    seed: AtomicU64,
    /// Deadlines since the link was engaged, and those that were seen to too late.
    deadlines: AtomicU64,
    late: AtomicU64,
    thread: OnceLock<rustix::thread::Pid>,
    /// Why the thread has ended.
    fault: Mutex<Option<String>>,
}

impl Relay {
    /// Listens at a port of 127.0.0.1 and carries every connection over `link` to `to`.
    ///
    /// # Errors
    /// What the system says to listening, or to starting a thread.
    pub fn open(to: SocketAddr, link: Link) -> io::Result<Relay> {
        let shared = Arc::new(Shared::default());
        let told = Arc::clone(&shared);
        let service = Service::start("link", Door::open(Some(buffer(&link)))?, move |door| {
            Carrier::new(door, to, link, told).run();
        })?;
        Ok(Relay { service, shared })
    }

    /// Where to connect to.
    pub const fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// Losses of connections that are opened from now on come from `seed`, also where that is before the link is engaged.
    pub(crate) fn seed(&self, seed: u64) {
        self.shared.seed.store(seed, Ordering::Relaxed);
    }

    /// From now on bytes take as long as over the link. Losses of connections that are opened from now on come from `seed`.
    pub fn engage(&self, seed: u64) {
        for counter in [&self.shared.deadlines, &self.shared.late] {
            counter.store(0, Ordering::Relaxed);
        }
        self.seed(seed);
        self.shared.engaged.store(true, Ordering::Release);
        self.service.wake();
    }

    /// From now on bytes pass at once, also those that are under way.
    pub fn release(&self) {
        self.shared.engaged.store(false, Ordering::Release);
        self.service.wake();
    }

    /// Whether over a tenth of what was due since the link was engaged was done more than a millisecond, and more than 5 % of the
    /// round trip, late: the machine could not keep the link.
    pub fn is_late(&self) -> bool {
        self.shared.late.load(Ordering::Relaxed) * 10 > self.shared.deadlines.load(Ordering::Relaxed)
    }

    /// The figure that marks a window in which the machine could not keep the link; nothing of one in which it could.
    pub(crate) fn mark(&self) -> Option<(&'static str, f64)> {
        self.is_late().then_some(("link-late", 1.0))
    }

    /// CPU time that the relay has used so far; `None` where the system does not tell.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.shared.thread.get().copied().and_then(thread_cpu_of)
    }

    /// Why nothing passes any more, if the system has refused what it takes.
    pub fn fault(&self) -> Option<String> {
        self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the thread has.
struct Carrier {
    door: Door,
    to: SocketAddr,
    link: Link,
    origin: Instant,
    /// Each with the number of those that had its place before, so that an event for one of them is not taken for its own.
    places: Vec<(u32, Option<Pair>)>,
    free: Vec<u32>,
    accepted: u64,
    /// When to look at which place again. One too many does no harm.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    lines: [Line; 2],
    /// Places that wait for room in the queue of a direction, in turn.
    waiting: [VecDeque<u32>; 2],
    input: Box<[u8]>,
    engaged: bool,
    shared: Arc<Shared>,
}

impl Carrier {
    fn new(door: Door, to: SocketAddr, link: Link, shared: Arc<Shared>) -> Carrier {
        Carrier {
            door,
            to,
            link,
            origin: Instant::now(),
            places: Vec::new(),
            free: Vec::new(),
            accepted: 0,
            timers: BinaryHeap::new(),
            lines: [Line::new(&link), Line::new(&link)],
            waiting: Default::default(),
            input: vec![0; PIECE].into_boxed_slice(),
            engaged: false,
            shared,
        }
    }

    fn run(mut self) {
        let _ = self.shared.thread.set(rustix::thread::gettid());
        while self.door.is_open() {
            if let Err(error) = self.step() {
                let mut fault = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner);
                *fault = Some(error.to_string());
                break;
            }
        }
        for pair in self.places.iter_mut().filter_map(|(_, pair)| pair.as_mut()) {
            pair.cut();
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Waits for what happens next, and sees to it.
    fn step(&mut self) -> io::Result<()> {
        let until = self.next().map_or(u64::MAX, |(at, _)| at);
        let left = Duration::from_nanos(until.saturating_sub(self.now()));
        let count = self.door.wait(left)?;
        if self.engaged != self.shared.engaged.load(Ordering::Acquire) {
            self.switch()?;
        }
        let now = self.now();
        // Deadlines come first: they lie before now, and what has just come does not.
        for _ in 0..TURNS {
            match self.next() {
                Some((at, Next::Room(direction))) if at <= now => self.admit(direction, at),
                Some((at, Next::Place(place))) if at <= now => {
                    self.timers.pop();
                    self.note(now - at);
                    self.serve(place, at)?;
                }
                _ => break,
            }
        }
        for index in 0..count {
            match self.door.event(index) {
                Some(Event::Arrival) => self.accept()?,
                Some(Event::Socket(ready)) => {
                    let token = ready.token;
                    let (generation, place, end) = ((token >> 32) as u32, (token >> 1) as u32 & PLACES, token & 1);
                    if let Some((known, Some(pair))) = self.places.get_mut(place as usize)
                        && *known == generation
                    {
                        pair.wake(end as usize);
                        self.serve(place, now)?;
                    }
                }
                Some(Event::Woken) | None => {}
            }
        }
        Ok(())
    }

    /// A deadline was seen to so late.
    fn note(&self, late: u64) {
        if self.engaged {
            self.shared.deadlines.fetch_add(1, Ordering::Relaxed);
            let allowed = LATE_NS.max(self.link.round_trip().as_nanos() as u64 / 20);
            self.shared.late.fetch_add(u64::from(late > allowed), Ordering::Relaxed);
        }
    }

    /// What is next, and when.
    fn next(&self) -> Option<(u64, Next)> {
        let place = self
            .timers
            .peek()
            .map(|Reverse((at, place))| (*at, Next::Place(*place)));
        let room = [UP, DOWN].into_iter().filter_map(|direction| {
            let waits = !self.waiting[direction].is_empty();
            waits.then(|| (self.lines[direction].room_at(), Next::Room(direction)))
        });
        room.chain(place).min_by_key(|(at, _)| *at)
    }

    /// Turns from open door to link, or back. Each time the link is engaged it is empty, and connections count from the first:
    /// their losses are the same for all that is measured with one seed.
    fn switch(&mut self) -> io::Result<()> {
        self.engaged = !self.engaged;
        let now = self.now();
        self.lines = [Line::new(&self.link), Line::new(&self.link)];
        self.accepted = 0;
        for waiting in &mut self.waiting {
            waiting.clear();
        }
        for place in 0..self.places.len() {
            if let Some(pair) = &mut self.places[place].1 {
                pair.queued = [false; 2];
                for flow in &mut pair.flows {
                    flow.settle(now);
                }
                self.serve(place as u32, now)?;
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(near) = self.door.accept()? {
            let place = self.free.pop().unwrap_or_else(|| {
                self.places.push((0, None));
                (self.places.len() - 1) as u32
            });
            let now = self.now();
            let seed = self.shared.seed.load(Ordering::Relaxed);
            let random = [UP, DOWN].map(|way| SplitMix64::stream(seed, 2 * self.accepted + way as u64));
            self.accepted += 1;
            let entry = &mut self.places[place as usize];
            entry.0 = entry.0.wrapping_add(1) & GENERATIONS;
            let token = token(entry.0, place, UP);
            near.set_nodelay(true)?;
            self.door.watch(&near, token)?;
            let pair = Pair::new(near, &self.link, now, self.engaged, random);
            let [up, down] = pair.open_at;
            self.timers
                .extend([pair.dial_at, up, down].map(|at| Reverse((at, place))));
            entry.1 = Some(pair);
        }
        Ok(())
    }

    /// Does what there is to do for a connection at `now`.
    ///
    /// # Errors
    /// What the system refuses to this process; what the other end does is no error.
    fn serve(&mut self, place: u32, now: u64) -> io::Result<()> {
        let Some((generation, taken)) = self.places.get_mut(place as usize) else {
            return Ok(());
        };
        let (generation, Some(mut pair)) = (*generation, taken.take()) else {
            return Ok(());
        };
        if !pair.is_dialled() && (now >= pair.dial_at || !self.engaged) {
            let dialled = pair.dial(self.to, buffer(&self.link));
            let watched = dialled.and_then(|far| self.door.watch(far, token(generation, place, DOWN)));
            match watched {
                Ok(()) => {}
                Err(error) if is_theirs(&error) => pair.cut(),
                Err(error) => {
                    self.put_back(place, pair);
                    return Err(error);
                }
            }
        }
        for direction in [UP, DOWN] {
            self.carry(&mut pair, place, direction, now, false);
        }
        self.put_back(place, pair);
        Ok(())
    }

    /// Lets those in whom the queue of `direction` has room for at `now`.
    fn admit(&mut self, direction: usize, now: u64) {
        let Some(place) = self.waiting[direction].pop_front() else {
            return;
        };
        if let Some(mut pair) = self.places.get_mut(place as usize).and_then(|entry| entry.1.take()) {
            pair.queued[direction] = false;
            self.carry(&mut pair, place, direction, now, true);
            self.put_back(place, pair);
        }
    }

    fn put_back(&mut self, place: u32, pair: Pair) {
        if pair.is_over() {
            for direction in [UP, DOWN] {
                self.waiting[direction].retain(|waits| *waits != place || !pair.queued[direction]);
            }
            self.free.push(place);
        } else {
            self.places[place as usize].1 = Some(pair);
        }
    }

    /// Moves one direction of a connection on; with `turn` it is first in the queue.
    fn carry(&mut self, pair: &mut Pair, place: u32, direction: usize, now: u64, turn: bool) {
        let due = if self.engaged { now } else { u64::MAX };
        pair.flows[direction].learn(due);
        self.deliver(pair, place, direction, due, now);
        self.take(pair, place, direction, now, turn);
        self.deliver(pair, place, direction, due, now);
        // Whoever has more, or room again, comes again once others had their turn.
        if pair.wants(direction, now, self.engaged) {
            self.timers.push(Reverse((now, place)));
        }
    }

    fn deliver(&mut self, pair: &mut Pair, place: u32, direction: usize, due: u64, now: u64) {
        let back = 1 - direction;
        if !pair.deliver(direction, due) && !pair.flows[back].has_ended() {
            let at = self.over(pair, back, now, Item::Broken);
            self.timers.push(Reverse((at, place)));
        }
    }

    /// Takes in what there is and may be.
    fn take(&mut self, pair: &mut Pair, place: u32, direction: usize, now: u64, mut turn: bool) {
        for _ in 0..TURN {
            if !pair.wants(direction, now, self.engaged) {
                return;
            }
            let first = turn || self.waiting[direction].is_empty();
            if self.engaged && (!first || self.lines[direction].room_at() > now) {
                pair.queued[direction] = true;
                self.waiting[direction].push_back(place);
                return;
            }
            turn = false;
            let at = match pair.take(direction, self.engaged, &mut self.input) {
                Taken::Nothing => return,
                Taken::Over(item) => self.over(pair, direction, now, item),
                Taken::Data(data) if self.engaged => {
                    let (at, known) = pair.flows[direction].enter(&mut self.lines[direction], now, data);
                    self.timers.push(Reverse((known, place)));
                    at
                }
                Taken::Data(data) => {
                    pair.flows[direction].pass(now, Item::Data(data));
                    continue;
                }
            };
            self.timers.push(Reverse((at, place)));
        }
    }

    /// A source has ended or broken; when its receiver hears of it.
    fn over(&mut self, pair: &mut Pair, direction: usize, now: u64, item: Item) -> u64 {
        if self.engaged {
            pair.flows[direction].end(&mut self.lines[direction], now, item)
        } else {
            pair.flows[direction].pass(now, item);
            now
        }
    }
}

/// True if whoever is dialled has caused this, and not a want of this process: files, ports or memory.
fn is_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable, TimedOut};
    let theirs = [
        ConnectionRefused,
        ConnectionReset,
        HostUnreachable,
        NetworkUnreachable,
        TimedOut,
    ];
    theirs.contains(&error.kind())
}

/// Something that comes due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// A place has something to do.
    Place(u32),
    /// The queue of a direction has room.
    Room(usize),
}

/// Numbers that fit into a token beside each other, without those of listener and wake-up.
const PLACES: u32 = 0x7fff_ffff;
const GENERATIONS: u32 = 0x7fff_ffff;

fn token(generation: u32, place: u32, end: usize) -> u64 {
    u64::from(generation) << 32 | u64::from(place) << 1 | end as u64
}

#[cfg(test)]
mod tests;
