//! The client of every route: one thread that keeps many connections busy, checks every byte, and takes the time.
//!
//! A *closed loop* begins the next exchange when the last is over: it finds the ceiling. An *open loop* follows a schedule
//! made before the start, and takes latencies from when an exchange was meant to begin: it sees what a rate suffers.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use super::pacer::{Counts, Pacer};
use super::script::{Ending, Script, Talk};
use super::sources::{Sources, our_own};
use super::wire::{Buffers, Pumped, pump};
use crate::measure::clock::thread_cpu;
use crate::poller::{Poller, Ready};
use crate::run::CellError;
use crate::stats::SplitMix64;
use crate::stats::latency::Latency;

/// How long an exchange may take.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// How often exchanges that take too long are looked for.
const TICK_NS: u64 = 50_000_000;

/// Failures without an answer between them, over one for each connection, after which there is no point in going on.
const HOPELESS: u64 = 100;

/// When exchanges begin.
#[derive(Debug)]
enum Pace {
    /// No more.
    Stopped,
    /// As soon as a connection is free.
    Closed,
    /// By a schedule.
    Open(Pacer),
}

/// What a window saw.
#[derive(Debug)]
pub(crate) struct Window {
    /// Its length in seconds.
    pub(crate) wall_s: f64,
    /// Exchanges that ended in it, and their bytes.
    pub(crate) done: u64,
    pub(crate) bytes: u64,
    /// Share of the window in which this thread had a CPU; `None` without a clock for it.
    pub(crate) busy: Option<f64>,
    /// What became of the schedule, of an open loop.
    pub(crate) counts: Option<Counts>,
}

/// The edges of a window, for whoever reads meters there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Edge {
    Start,
    End,
}

/// One connection and what goes on in it.
#[derive(Debug)]
struct Slot {
    /// The number of connections it had, so that an event for an old one is not taken for the present one's.
    generation: u32,
    stream: Option<TcpStream>,
    talk: Talk,
    busy: bool,
    /// When the exchange was meant to begin, began, and was answered for the first time.
    intended: u64,
    began: u64,
    first: Option<u64>,
}

/// A generator for one route.
#[derive(Debug)]
pub(crate) struct Generator {
    script: &'static Script,
    sources: Sources,
    poller: Poller,
    slots: Vec<Slot>,
    idle: VecDeque<u32>,
    buffers: Buffers,
    keys: SplitMix64,
    origin: Instant,
    timeout: u64,
    next_tick: u64,
    pace: Pace,
    /// What counts: exchanges meant to begin in this time, and those that end in it.
    window: Range<u64>,
    failures_in_a_row: u64,
    last_failure: String,
    opened: u64,
    done: u64,
    /// From when an exchange was meant to begin to its last byte; failures are infinite.
    pub(crate) latency: Latency,
    /// The same to the first byte of the answer.
    pub(crate) first_byte: Latency,
    /// From when it did begin to its last byte.
    pub(crate) service: Latency,
}

impl Generator {
    /// A generator with `connections` connections to `target`, none of them open yet. Keys come from `seed`.
    ///
    /// # Errors
    /// [`CellError::Failed`] if the system does not give what it takes.
    pub(crate) fn new(
        script: &'static Script,
        target: SocketAddr,
        connections: usize,
        seed: u64,
    ) -> Result<Generator, CellError> {
        let poller = Poller::new().map_err(lacks("wait for sockets"))?;
        let slot = |_| Slot {
            generation: 0,
            stream: None,
            talk: Talk::client(0),
            busy: false,
            intended: 0,
            began: 0,
            first: None,
        };
        let count = u32::try_from(connections).unwrap_or(u32::MAX);
        Ok(Generator {
            script,
            sources: Sources::new(target),
            poller,
            slots: (0..count).map(slot).collect(),
            idle: (0..count).collect(),
            buffers: Buffers::new(),
            keys: SplitMix64::new(seed),
            origin: Instant::now(),
            timeout: nanos(TIMEOUT),
            next_tick: TICK_NS,
            pace: Pace::Stopped,
            window: 0..0,
            failures_in_a_row: 0,
            last_failure: String::new(),
            opened: 0,
            done: 0,
            latency: Latency::new(),
            first_byte: Latency::new(),
            service: Latency::new(),
        })
    }

    /// Gives exchanges another time than [`TIMEOUT`].
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Generator {
        self.timeout = nanos(timeout);
        self
    }

    /// One exchange on every connection, `at_once` of them together; connections stay open where the script lets them.
    ///
    /// # Errors
    /// [`CellError`], also if a single one fails.
    pub(crate) fn once(&mut self, at_once: usize) -> Result<(), CellError> {
        let all = self.slots.len();
        let (mut begun, mut over) = (0, 0);
        let was = self.done;
        self.window = 0..u64::MAX;
        self.clear();
        while over < all {
            while begun < all && begun - over < at_once.max(1) {
                self.idle.retain(|slot| *slot as usize != begun);
                self.begin(begun, self.now())?;
                begun += 1;
            }
            self.step(self.now() + TICK_NS)?;
            if self.latency.failed() > 0 {
                return Err(CellError::failed(format_args!(
                    "an exchange failed before the window: {}",
                    self.last_failure
                )));
            }
            over = usize::try_from(self.done - was).unwrap_or(usize::MAX);
        }
        Ok(())
    }

    /// Connections opened so far.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// A closed loop: works for `warmup`, then counts for `window`, then lets what is under way come to its end. `edge` is
    /// called at both ends of the window.
    ///
    /// # Errors
    /// [`CellError`]. Single failures are none: they count as infinitely slow.
    pub(crate) fn closed(
        &mut self,
        warmup: Duration,
        window: Duration,
        edge: &mut dyn FnMut(Edge),
    ) -> Result<Window, CellError> {
        self.pace = Pace::Closed;
        self.run_until(self.now() + nanos(warmup))?;
        self.window(window, edge)
    }

    /// An open loop at `rate` exchanges a second, in the same parts.
    ///
    /// # Errors
    /// [`CellError`]. A subject that does not keep up is none: [`Window::counts`] says so.
    pub(crate) fn open(
        &mut self,
        rate: f64,
        warmup: Duration,
        window: Duration,
        edge: &mut dyn FnMut(Edge),
    ) -> Result<Window, CellError> {
        let now = self.now();
        self.pace = Pace::Open(Pacer::new(rate, now, nanos(warmup)));
        self.run_until(now + nanos(warmup))?;
        self.pace = Pace::Open(Pacer::new(rate, self.now(), nanos(window)));
        self.window(window, edge)
    }

    fn window(&mut self, length: Duration, edge: &mut dyn FnMut(Edge)) -> Result<Window, CellError> {
        self.clear();
        edge(Edge::Start);
        // The schedule begins once the meters have been read, or what came due meanwhile would be late from the start.
        let now = self.now();
        if let Pace::Open(pacer) = &mut self.pace {
            pacer.start_at(now);
        }
        let (cpu, done) = (thread_cpu(), self.done);
        let start = match &self.pace {
            Pace::Open(pacer) => pacer.next_due().unwrap_or_else(|| self.now()),
            Pace::Closed | Pace::Stopped => self.now(),
        };
        self.window = start..start + nanos(length);
        self.run_until(self.window.end)?;
        let wall_s = (self.now() - start) as f64 / 1e9;
        let done = self.done - done;
        let busy = cpu
            .zip(thread_cpu())
            .map(|(before, after)| after.saturating_sub(before).as_secs_f64() / wall_s);
        edge(Edge::End);
        let counts = self.finish()?;
        Ok(Window {
            wall_s,
            done,
            bytes: done * self.script.bytes(),
            busy,
            counts,
        })
    }

    /// Begins nothing new but what a schedule still has waiting, and lets what is under way come to its end, for as long as
    /// one exchange may take. What is left then has failed.
    fn finish(&mut self) -> Result<Option<Counts>, CellError> {
        let until = self.now() + self.timeout;
        if matches!(self.pace, Pace::Closed) {
            self.pace = Pace::Stopped;
        }
        while self.now() < until && (self.waits() || self.slots.iter().any(|slot| slot.busy)) {
            self.issue()?;
            self.step(until.min(self.now() + TICK_NS))?;
        }
        for place in 0..self.slots.len() {
            if self.slots[place].busy {
                self.fail(place, "an exchange was not answered in time")?;
            }
        }
        let pace = std::mem::replace(&mut self.pace, Pace::Stopped);
        let Pace::Open(mut pacer) = pace else { return Ok(None) };
        let lost = pacer.abandon() + pacer.counts.dropped;
        for _ in 0..lost {
            self.latency.fail();
            self.first_byte.fail();
        }
        Ok(Some(pacer.counts))
    }

    fn waits(&self) -> bool {
        matches!(&self.pace, Pace::Open(pacer) if pacer.waits() || pacer.next_due().is_some())
    }

    fn clear(&mut self) {
        self.latency.clear();
        self.first_byte.clear();
        self.service.clear();
    }

    fn now(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    fn run_until(&mut self, end: u64) -> Result<(), CellError> {
        while self.now() < end {
            self.issue()?;
            self.step(end)?;
        }
        Ok(())
    }

    /// Waits for what happens before `end` or before something comes due, and deals with it.
    fn step(&mut self, end: u64) -> Result<(), CellError> {
        let now = self.now();
        let due = match &self.pace {
            Pace::Open(pacer) if !self.idle.is_empty() => pacer.next_due(),
            _ => None,
        };
        let until = due.unwrap_or(u64::MAX).min(end).min(self.next_tick);
        let count = self
            .poller
            .wait(Duration::from_nanos(until.saturating_sub(now)))
            .map_err(lacks("wait for sockets"))?;
        for index in 0..count {
            let Some(ready) = self.poller.event(index) else { break };
            self.handle(ready)?;
            self.issue()?;
        }
        let now = self.now();
        if now >= self.next_tick {
            self.next_tick = now + TICK_NS;
            self.expire(now)?;
        }
        Ok(())
    }

    /// Begins what can begin now.
    fn issue(&mut self) -> Result<(), CellError> {
        match &mut self.pace {
            Pace::Stopped => Ok(()),
            Pace::Closed => {
                // As many as there are now: one that fails at once has its turn after the others.
                for _ in 0..self.idle.len() {
                    let Some(place) = self.idle.pop_front() else { break };
                    self.begin(place as usize, self.now())?;
                }
                Ok(())
            }
            Pace::Open(_) => self.issue_due(),
        }
    }

    fn issue_due(&mut self) -> Result<(), CellError> {
        for _ in 0..self.slots.len() {
            let now = self.now();
            let Pace::Open(pacer) = &mut self.pace else { break };
            pacer.advance(now, self.slots.len() - self.idle.len());
            let Some(&place) = self.idle.front() else { break };
            let Some(intended) = pacer.take(now) else { break };
            self.idle.pop_front();
            self.begin(place as usize, intended)?;
        }
        Ok(())
    }

    /// Begins an exchange on a connection that is free, or that is not open yet.
    fn begin(&mut self, place: usize, intended: u64) -> Result<(), CellError> {
        let began = self.now();
        let key = self.keys.next_u64();
        let slot = &mut self.slots[place];
        slot.talk = Talk::client(key);
        (slot.busy, slot.intended, slot.began, slot.first) = (true, intended, began, None);
        if slot.stream.is_none() {
            let stream = match self.sources.connect() {
                Ok(stream) => stream,
                Err(error) if our_own(&error) => return Err(lacks("open a connection")(error)),
                Err(error) => return self.fail(place, &error.to_string()),
            };
            slot.generation = slot.generation.wrapping_add(1);
            let token = u64::from(slot.generation) << 32 | place as u64;
            self.poller.add(&stream, token).map_err(lacks("watch a connection"))?;
            slot.stream = Some(stream);
            self.opened += 1;
        }
        self.advance(place, false, false)
    }

    fn handle(&mut self, ready: Ready) -> Result<(), CellError> {
        let (place, generation) = (ready.token as u32 as usize, (ready.token >> 32) as u32);
        let Some(slot) = self.slots.get_mut(place) else {
            return Ok(());
        };
        if slot.generation != generation || slot.stream.is_none() {
            return Ok(());
        }
        if slot.busy {
            return self.advance(place, true, ready.closing);
        }
        if ready.closing {
            // Closed between two exchanges: the next opens another.
            slot.stream = None;
        }
        Ok(())
    }

    fn advance(&mut self, place: usize, readable: bool, closing: bool) -> Result<(), CellError> {
        let slot = &mut self.slots[place];
        let Some(stream) = &slot.stream else { return Ok(()) };
        let pumped = pump(
            stream,
            self.script,
            &mut slot.talk,
            &mut self.buffers,
            readable,
            closing,
        );
        if slot.first.is_none() && slot.talk.heard() {
            slot.first = Some(nanos(self.origin.elapsed()));
        }
        match pumped {
            Pumped::Waits => Ok(()),
            Pumped::Done => {
                self.done(place);
                Ok(())
            }
            Pumped::Closed => self.fail(place, "the connection was closed before the answer was over"),
            Pumped::Broken(error) if our_own(&error) => Err(lacks("open a connection")(error)),
            Pumped::Broken(error) => self.fail(place, &error.to_string()),
            Pumped::Wrong(mismatch) => Err(CellError::wrong(format_args!("to the generator: {mismatch}"))),
        }
    }

    fn done(&mut self, place: usize) {
        let now = self.now();
        let slot = &mut self.slots[place];
        slot.busy = false;
        if self.script.ending != Ending::Stays {
            slot.stream = None;
        }
        self.failures_in_a_row = 0;
        self.done += 1;
        if self.window.contains(&slot.intended) {
            self.latency.record(now - slot.intended);
            self.first_byte.record(slot.first.unwrap_or(now) - slot.intended);
            self.service.record(now - slot.began);
            if let Pace::Open(pacer) = &mut self.pace {
                pacer.counts.done += 1;
            }
        }
        self.idle.push_back(place as u32);
    }

    fn fail(&mut self, place: usize, why: &str) -> Result<(), CellError> {
        let slot = &mut self.slots[place];
        slot.busy = false;
        slot.stream = None;
        if self.window.contains(&slot.intended) {
            self.latency.fail();
            self.first_byte.fail();
            self.service.fail();
            if let Pace::Open(pacer) = &mut self.pace {
                pacer.counts.failed += 1;
            }
        }
        self.idle.push_back(place as u32);
        self.failures_in_a_row += 1;
        self.last_failure.clear();
        self.last_failure.push_str(why);
        if self.failures_in_a_row > HOPELESS + self.slots.len() as u64 {
            return Err(CellError::failed(format_args!(
                "{} exchanges failed one after the other, the last because: {why}",
                self.failures_in_a_row
            )));
        }
        Ok(())
    }

    /// Ends exchanges that take too long.
    fn expire(&mut self, now: u64) -> Result<(), CellError> {
        for place in 0..self.slots.len() {
            let slot = &self.slots[place];
            if slot.busy && now.saturating_sub(slot.began) > self.timeout {
                self.fail(place, "an exchange was not answered in time")?;
            }
        }
        Ok(())
    }
}

/// What the system does not give to this end.
fn lacks(doing: &'static str) -> impl FnOnce(io::Error) -> CellError {
    move |error| CellError::failed(format_args!("the generator cannot {doing}: {error}"))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
