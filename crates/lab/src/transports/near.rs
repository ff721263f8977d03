//! The near host of a run on two: generator and clients, with servers and sink at the other end of a [`Link`].
//!
//! No two clocks are compared. A rate is made of the bytes and of the clock of whoever receives, and what a program keeps busy of the
//! clock of its own host; CPU time for each byte is the quotient of the two.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cells::{FLIP_AFTER, FLIP_PAYLOAD, Spec, is_final, judge_flip, verification};
use super::figures::{Measured, Spent, steps};
use super::talk::{Answer, Ask, Look, Opened, Seen};
use super::traffic::{Direction, Order, PATIENCE, Planned, Traffic, Trouble, weigh};
use super::wire::{Plan, Wire};
use crate::remote::Link;
use crate::route::{Engine, Route};
use crate::run::{Cell, CellError, Counted, Timed};
use crate::workload::routes::DIRECT;

/// How often the other host is asked where nothing is timed.
const STEP: Duration = Duration::from_millis(2);

/// How long what else went wrong is waited for.
const PARTING: Duration = Duration::from_millis(200);

/// A case with a subject.
struct NearCell {
    spec: Spec,
    /// `None`: no programs.
    engine: Option<Engine>,
    link: Arc<Link>,
}

/// The cell of a case with a subject.
pub(super) fn cell(spec: Spec, engine: Option<Engine>, link: &Arc<Link>) -> Cell {
    let subject = engine.as_ref().map_or(DIRECT, Engine::name).to_owned();
    let near = NearCell {
        spec,
        engine,
        link: Arc::clone(link),
    };
    Cell::new(spec.case(), &subject, near)
}

/// This host's programs of a path; the other's end with it.
struct Line<'a> {
    route: Route,
    link: &'a Link,
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        // Clients must not outlive what they speak to.
        self.route = Route::direct(self.route.entry());
        // A host that is lost ends its own.
        let _ = ask(self.link, &Ask::Close);
    }
}

fn ask(link: &Link, question: &Ask) -> Result<Answer, CellError> {
    match link.ask(question).map_err(CellError::failed)? {
        Answer::Refused {
            what,
            unavailable: true,
        } => Err(CellError::unavailable(format_args!("the other host: {what}"))),
        Answer::Refused { what, .. } => Err(CellError::failed(format_args!("the other host: {what}"))),
        answer => Ok(answer),
    }
}

fn unexpected() -> CellError {
    CellError::failed("the other host answered what it was not asked")
}

impl NearCell {
    /// Starts the programs; with a wire that does damage in between, if there is a place for one.
    fn line(&self, wire: &mut Option<Wire>, damaged: bool) -> Result<Line<'_>, CellError> {
        let stack = self.spec.stack;
        let question = Ask::Open {
            stack: stack.name().to_owned(),
        };
        let Answer::Opened(Opened { sink, server }) = ask(&self.link, &question)? else {
            return Err(unexpected());
        };
        // From here on the other host has something to close.
        let mut line = Line {
            route: Route::direct(SocketAddr::new(self.link.peer(), sink)),
            link: &self.link,
        };
        let plan = Plan::flip(self.spec.direction, FLIP_AFTER);
        let between = |to| match damaged {
            false => Ok(to),
            true => Wire::open(to, plan).map(|opened| wire.insert(opened).address()),
        };
        match (&self.engine, server) {
            (None, None) => {}
            (Some(engine), None) if !stack.has_wire() => {
                line.route = Route::open(&stack, engine, line.route.entry())?;
            }
            (Some(engine), Some(served)) if stack.has_wire() => {
                let server = SocketAddr::new(self.link.peer(), served.port);
                let sink = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), sink);
                line.route = Route::reach(&stack, engine, &served, (server, sink), between)?;
            }
            _ => return Err(unexpected()),
        }
        Ok(line)
    }

    /// One bit of the wire is flipped: nothing wrong may be delivered.
    fn notices_a_flipped_bit(&self) -> Result<(), CellError> {
        let mut wire = None;
        let line = self.line(&mut wire, true)?;
        let order = Order::thorough(self.spec.direction, FLIP_PAYLOAD);
        let ended = Pair::start(&line, &[order])?.finish()?;
        if !wire.is_some_and(|wire| wire.damaged()) {
            return Err(CellError::failed(
                "the check with a flipped bit did not get as far as the bit",
            ));
        }
        judge_flip(&ended)
    }
}

impl Timed for NearCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        let line = self.line(&mut None, false)?;
        flowing(&line, &verification(true))?.finish()??;
        drop(line);
        if self.spec.stack.authenticated() {
            self.notices_a_flipped_bit()?;
        }
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let line = self.line(&mut None, false)?;
        let mut pair = flowing(&line, &vec![Order::endless(self.spec.direction); self.spec.streams])?;
        pair.watch(warmup)?;
        line.route.reset_memory();
        pair.look.reset = true;
        let before = pair.reading(&line.route)?;
        pair.look.reset = false;
        let mut after = before.clone();
        let mut busiest = [0.0_f64; 2];
        let steps = steps(window);
        for _ in 0..steps {
            pair.watch(window / steps)?;
            let now = pair.reading(&line.route)?;
            for (most, busy) in busiest.iter_mut().zip(now.busy(&after)) {
                *most = most.max(busy);
            }
            after = now;
        }
        let memory = line.route.memory()?;
        pair.stop();
        pair.finish()??;
        let client = memory.first().map(|(role, memory)| (*role, memory.peak));
        let server = after.far.server.map(|server| ("server", server.memory));
        let costs = after.busy(&before).into_iter().zip(busiest).zip([client, server]);
        let spent = |((busy, busiest), program): ((f64, f64), Option<(&'static str, u64)>)| {
            let (role, memory) = program?;
            Some(Spent {
                role,
                busy,
                busiest,
                memory,
            })
        };
        Ok(Measured {
            wall_s: after.received_in(&before, self.spec.direction).as_secs_f64(),
            each: after.received_since(&before, self.spec.direction),
            roles: costs.filter_map(spent).collect(),
        }
        .counted())
    }
}

/// What both hosts read at one moment, each by its own clock.
#[derive(Clone)]
struct Reading {
    at: Instant,
    /// Of each stream, here.
    received: Vec<u64>,
    client: Duration,
    far: Seen,
}

impl Reading {
    /// What client and server have kept busy since an earlier reading.
    fn busy(&self, before: &Reading) -> [f64; 2] {
        let share = |spent: Duration, wall: Duration| match wall.is_zero() {
            true => 0.0,
            false => spent.as_secs_f64() / wall.as_secs_f64(),
        };
        let server = |seen: &Seen| Duration::from_nanos(seen.server.unwrap_or_default().cpu_ns);
        [
            share(self.client.saturating_sub(before.client), self.at - before.at),
            share(
                server(&self.far).saturating_sub(server(&before.far)),
                self.far_time(before),
            ),
        ]
    }

    fn far_time(&self, before: &Reading) -> Duration {
        Duration::from_nanos(self.far.at_ns.saturating_sub(before.far.at_ns))
    }

    /// The time since an earlier reading, by the receiver's clock.
    fn received_in(&self, before: &Reading, direction: Direction) -> Duration {
        match direction {
            Direction::Down => self.at - before.at,
            Direction::Up => self.far_time(before),
        }
    }

    /// Bytes of each stream since an earlier reading, as the receiver counts them.
    fn received_since(&self, before: &Reading, direction: Direction) -> Vec<u64> {
        let of = |reading: &Reading| match direction {
            Direction::Down => reading.received.clone(),
            Direction::Up => reading.far.states.iter().map(|state| state.received).collect(),
        };
        let pairs = of(self).into_iter().zip(of(before));
        pairs.map(|(after, before)| after.saturating_sub(before)).collect()
    }
}

/// Refuses what cannot be seen of so many streams.
fn check(seen: &Seen, streams: usize) -> Result<(), CellError> {
    match seen.states.len() == streams && seen.open <= streams {
        true => Ok(()),
        false => Err(unexpected()),
    }
}

/// Streams with an end on each host.
struct Pair<'a> {
    near: Traffic,
    link: &'a Link,
    look: Look,
    /// Ends that are still to come, here and there.
    open: usize,
}

/// Starts streams and waits until all of them carry. A new connection that is closed before it carries anything is tried again.
fn flowing<'a>(line: &Line<'a>, orders: &[Order]) -> Result<Pair<'a>, CellError> {
    let mut attempt = 1;
    loop {
        let mut pair = Pair::start(line, orders)?;
        match pair.flowing()? {
            Ok(()) => return Ok(pair),
            Err(trouble) if is_final(&trouble, attempt, pair.carries()) => return Err(trouble.into()),
            Err(_) => attempt += 1,
        }
    }
}

impl<'a> Pair<'a> {
    fn start(line: &Line<'a>, orders: &[Order]) -> Result<Pair<'a>, CellError> {
        let planned = Planned::of(orders)?;
        let question = Ask::Begin {
            streams: planned.clone(),
        };
        if ask(line.link, &question)? != Answer::Done {
            return Err(unexpected());
        }
        Ok(Pair {
            near: Traffic::near(line.route.entry(), &planned)?,
            link: line.link,
            look: Look::default(),
            open: 2 * planned.len(),
        })
    }

    fn carries(&self) -> bool {
        self.near.streams.iter().all(|stream| stream.received() > 0)
    }

    fn received(&self) -> u64 {
        let each = self.near.streams.iter().map(|stream| stream.received());
        each.fold(0, u64::saturating_add)
    }

    /// Tells the other host what is known here, and takes up what it knows; what went wrong at either.
    fn exchange(&mut self) -> Result<(Seen, Result<(), Trouble>), CellError> {
        let question = Ask::Look(Look {
            states: self.near.states(),
            ..self.look
        });
        let Answer::Seen(mut seen) = ask(self.link, &question)? else {
            return Err(unexpected());
        };
        check(&seen, self.near.streams.len())?;
        self.near.learn(&seen.states);
        let (open, ended) = self.near.ends();
        self.open = open + seen.open;
        let there = seen.trouble.take().map_or(Ok(()), Err);
        Ok((seen, weigh(ended, there)))
    }

    /// Waits until every stream has delivered something; what went wrong before.
    fn flowing(&mut self) -> Result<Result<(), Trouble>, CellError> {
        let until = Instant::now() + PATIENCE;
        loop {
            let (_, ended) = self.exchange()?;
            if ended.is_err() || self.carries() {
                return Ok(ended);
            }
            if Instant::now() >= until {
                return Ok(Err(Trouble::Stuck));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Lets time pass; fails if a stream does.
    fn watch(&mut self, time: Duration) -> Result<(), CellError> {
        self.near.watch(time).map_err(CellError::from)
    }

    /// What both hosts read now.
    fn reading(&mut self, route: &Route) -> Result<Reading, CellError> {
        let (far, ended) = self.exchange()?;
        ended?;
        let cpu = route.cpu()?;
        Ok(Reading {
            at: Instant::now(),
            received: self.near.streams.iter().map(|stream| stream.received()).collect(),
            client: cpu.first().map_or(Duration::ZERO, |(_, time)| *time),
            far,
        })
    }

    /// Tells the senders to stop.
    fn stop(&mut self) {
        self.look.stop = true;
        self.near.stop();
    }

    /// Waits for the end of all streams, as long as something moves; every byte sent must have arrived.
    fn finish(mut self) -> Result<Result<(), Trouble>, CellError> {
        let mut first = Ok(());
        let (mut received, mut since) = (self.received(), Instant::now());
        loop {
            let (_, ended) = self.exchange()?;
            let now = self.received();
            if first.is_ok() && (ended.is_err() || now > received) {
                (received, since) = (now, Instant::now());
            }
            first = weigh(first, ended);
            if self.open == 0 {
                return Ok(first);
            }
            let patience = if first.is_ok() { 2 * PATIENCE } else { PARTING };
            if since.elapsed() >= patience {
                return Ok(first.and(Err(Trouble::Stuck)));
            }
            std::thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests;
