//! A cell: a stack with an engine, and streams through it.

use std::time::{Duration, Instant};

use super::figures::{Measured, Spent, steps};
use super::traffic::{Direction, Order, Sink, Traffic, Trouble};
use super::wire::{Plan, Wire};
use crate::link::Over;
use crate::result::Case;
use crate::route::{Engine, Route, Stack};
use crate::run::{Cell, CellError, Counted, Timed};
use crate::workload::advice::OURS;
use crate::workload::routes::DIRECT;

/// Bytes each way that are compared in full before any window.
pub(super) const VERIFIED: u64 = 16 << 20;

/// Bytes on the wire before the bit that is flipped: well into the payload.
pub(super) const FLIP_AFTER: u64 = 1 << 20;

/// Payload of the pass over a wire of ours.
pub(super) const FLIP_PAYLOAD: u64 = 4 << 20;

/// How often streams are started before they have to carry.
pub(super) const ATTEMPTS: usize = 3;

/// Figure of a subject that delivered wrong bytes after a bit was flipped on the wire of a stack that should notice.
pub(crate) const FORGEABLE: &str = "forgeable";

/// A parameter set.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Spec {
    pub(super) stack: Stack,
    pub(super) streams: usize,
    pub(super) direction: Direction,
}

impl Spec {
    pub(super) fn case(&self) -> Case {
        let suite = self.stack.suite().map_or("none", |suite| suite.name());
        Case::new()
            .with("stack", self.stack.name())
            .with("streams", self.streams)
            .with("direction", self.direction.name())
            .with("suite", suite)
    }
}

/// Programs with the sink behind them.
#[derive(Debug)]
struct Line {
    route: Route,
    sink: Sink,
}

/// A case with a subject.
pub(super) struct TransportCell {
    spec: Spec,
    /// `None`: no programs.
    engine: Option<Engine>,
    /// Programs stay from round to round, held while others run, instead of starting anew in each.
    keep: bool,
    kept: Option<Line>,
    /// A peer went on after a bit was flipped on its wire.
    forgeable: bool,
    over: Option<Over>,
    /// Windows so far.
    turns: u64,
}

/// The cell of a case with a subject.
pub(super) fn cell(spec: Spec, engine: Option<Engine>, keep: bool, over: Option<Over>) -> Cell {
    let subject = engine.as_ref().map_or(DIRECT, Engine::name).to_owned();
    Cell::new(spec.case(), &subject, TransportCell::new(spec, engine, keep, over))
}

/// Whether a peer delivers what was changed on the wire of a stack that seals, seen with a stream down.
///
/// # Errors
/// [`CellError`], also where our own engine does.
pub(crate) fn forgeable(stack: Stack, engine: &Engine) -> Result<bool, CellError> {
    let spec = Spec {
        stack,
        streams: 1,
        direction: Direction::Down,
    };
    TransportCell::new(spec, Some(engine.clone()), false, None).crosses_the_wire()
}

impl TransportCell {
    pub(super) fn new(spec: Spec, engine: Option<Engine>, keep: bool, over: Option<Over>) -> TransportCell {
        TransportCell {
            spec,
            engine,
            keep,
            kept: None,
            forgeable: false,
            over,
            turns: 0,
        }
    }

    /// Peers are forgiven what our own engine must do.
    fn is_ours(&self) -> bool {
        self.engine.as_ref().is_none_or(|engine| engine.name() == OURS)
    }

    /// Starts the programs.
    fn line(&self, damage: Option<&mut Option<Wire>>) -> Result<Line, CellError> {
        let sink = Sink::open().map_err(|error| CellError::failed(format_args!("cannot listen: {error}")))?;
        let after = if self.spec.stack.authenticated() {
            FLIP_AFTER
        } else {
            u64::MAX
        };
        let plan = Plan::flip(self.spec.direction, after);
        let link = self.over.map(|over| over.link);
        let route = match (&self.engine, damage) {
            (engine, None) => Route::open_linked(&self.spec.stack, engine.as_ref(), sink.address(), link)?,
            (None, Some(_)) => Route::direct(sink.address()),
            (Some(engine), Some(wire)) => Route::open_over(&self.spec.stack, engine, sink.address(), |to| {
                let opened = Wire::open(to, plan)?;
                let address = opened.address();
                *wire = Some(opened);
                Ok(address)
            })?,
        };
        Ok(Line { route, sink })
    }

    /// A pass over a wire of ours: all payload must cross it, and if the stack is authenticated, one bit of it is flipped and
    /// nothing wrong may be delivered. True if it was and was delivered by a peer, whose figures are still those of what its
    /// users have.
    fn crosses_the_wire(&self) -> Result<bool, CellError> {
        let mut wire = None;
        let line = self.line(Some(&mut wire))?;
        let wire = wire.ok_or_else(|| CellError::failed("the route was not made over the wire"))?;
        let order = Order::thorough(self.spec.direction, FLIP_PAYLOAD);
        if !self.spec.stack.authenticated() {
            flowing(&line.route, &line.sink, &[order])?.finish()?;
            return wire.carried(FLIP_PAYLOAD).map(|()| false);
        }
        let ended = Traffic::start(line.route.entry(), &line.sink, &[order])?.finish();
        if ended.is_ok() {
            wire.carried(FLIP_PAYLOAD)?;
        }
        if !wire.damaged() {
            return Err(CellError::failed(
                "the check with a flipped bit did not get as far as the bit",
            ));
        }
        match judge_flip(&ended) {
            Err(CellError::Wrong { .. }) if !self.is_ours() => Ok(true),
            noticed => noticed.map(|()| false),
        }
    }
}

/// What the end of a stream says of a route whose wire had a bit flipped.
pub(super) fn judge_flip(ended: &Result<(), Trouble>) -> Result<(), CellError> {
    match ended {
        Err(Trouble::Wrong { offset }) => Err(CellError::wrong(format_args!(
            "with one bit flipped on the wire a wrong byte was delivered, byte {offset} of the stream"
        ))),
        Ok(()) => Err(CellError::wrong(
            "one bit was flipped on the wire and the stream went on as if nothing had happened",
        )),
        Err(Trouble::Count { .. } | Trouble::Broken { .. } | Trouble::Stuck | Trouble::Endless) => Ok(()),
    }
}

/// A stream each way, whose bytes are compared in full.
pub(super) fn verification(must_end: bool) -> [Order; 2] {
    [Direction::Down, Direction::Up].map(|direction| Order {
        must_end,
        ..Order::thorough(direction, VERIFIED)
    })
}

/// Compares every byte of a stream each way at once, in writes of every size class; `must_end` says whether their ends must
/// arrive too.
pub(super) fn verify(route: &Route, sink: &Sink, must_end: bool) -> Result<(), CellError> {
    Ok(flowing(route, sink, &verification(must_end))?.finish()?)
}

/// Whether streams that failed at such an attempt are not tried again: a wrong byte is never put down to the start.
pub(super) fn is_final(trouble: &Trouble, attempt: usize, carried: bool) -> bool {
    carried || attempt == ATTEMPTS || matches!(trouble, Trouble::Wrong { .. })
}

/// Starts streams and waits until all of them carry. A peer closes a new connection now and then before it carries
/// anything: that is tried again.
fn flowing(route: &Route, sink: &Sink, orders: &[Order]) -> Result<Traffic, CellError> {
    let mut attempt = 1;
    loop {
        let mut traffic = Traffic::start(route.entry(), sink, orders)?;
        match traffic.flowing() {
            Ok(()) => return Ok(traffic),
            Err(trouble) => {
                let carried = traffic.streams.iter().all(|stream| stream.received() > 0);
                if is_final(&trouble, attempt, carried) {
                    return Err(trouble.into());
                }
                attempt += 1;
            }
        }
    }
}

impl Timed for TransportCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        let line = self.line(None)?;
        verify(&line.route, &line.sink, self.is_ours())?;
        if self.spec.stack.has_programs() {
            self.forgeable = self.crosses_the_wire()?;
        }
        if self.keep {
            line.route.pause();
            self.kept = Some(line);
        }
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let turn = self.turns;
        self.turns += 1;
        let started;
        let line = match &self.kept {
            Some(line) => {
                line.route.resume();
                line
            }
            None => {
                started = self.line(None)?;
                &started
            }
        };
        let warmup = match self.over {
            Some(over) => {
                line.route.engage(over.turn(turn));
                warmup + over.link.settling()
            }
            None => warmup,
        };
        let counted = measure(line, &self.spec, warmup, window);
        line.route.release();
        line.route.check_link()?;
        if self.kept.is_some() {
            line.route.pause();
        }
        let mut counted = counted?;
        if self.forgeable {
            counted.figures.push((FORGEABLE, 1.0));
        }
        Ok(counted)
    }
}

/// What is read at both ends of the timed part, and in it.
#[derive(Clone)]
struct Reading {
    at: Instant,
    /// Of each stream.
    received: Vec<u64>,
    /// Of each role.
    cpu: Vec<Duration>,
}

impl Reading {
    fn take(route: &Route, traffic: &Traffic) -> Result<Reading, CellError> {
        let cpu = route.cpu()?;
        let received = traffic.streams.iter().map(|stream| stream.received()).collect();
        Ok(Reading {
            at: Instant::now(),
            received,
            cpu: cpu.into_iter().map(|(_, time)| time).collect(),
        })
    }

    /// CPUs that each role has kept busy since an earlier reading.
    fn busy(&self, before: &Reading) -> impl Iterator<Item = f64> {
        let wall = (self.at - before.at).as_secs_f64();
        let spent = self.cpu.iter().zip(&before.cpu);
        spent.map(move |(now, then)| now.saturating_sub(*then).as_secs_f64() / wall)
    }
}

fn measure(line: &Line, spec: &Spec, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
    let route = &line.route;
    let orders = vec![Order::endless(spec.direction); spec.streams];
    let mut traffic = flowing(route, &line.sink, &orders)?;
    traffic.watch(warmup)?;
    route.reset_memory();
    let before = Reading::take(route, &traffic)?;
    let mut after = before.clone();
    let mut busiest = vec![0.0_f64; before.cpu.len()];
    let steps = steps(window);
    for _ in 0..steps {
        traffic.watch(window / steps)?;
        let now = Reading::take(route, &traffic)?;
        for (most, busy) in busiest.iter_mut().zip(now.busy(&after)) {
            *most = most.max(busy);
        }
        after = now;
    }
    let memory = route.memory()?;
    let late = route.link_figure();
    route.release();
    traffic.stop();
    traffic.finish()?;

    let pairs = after.received.iter().zip(&before.received);
    let memory = memory.into_iter().map(|(_, memory)| memory.peak);
    let costs = after.busy(&before).zip(busiest).zip(memory);
    let roles = route.roles().iter().zip(costs);
    let mut counted = Measured {
        wall_s: (after.at - before.at).as_secs_f64(),
        each: pairs.map(|(after, before)| after - before).collect(),
        roles: roles
            .map(|(role, ((busy, busiest), memory))| Spent {
                role: role.name(),
                busy,
                busiest,
                memory,
            })
            .collect(),
    }
    .counted();
    counted.figures.extend(late);
    Ok(counted)
}
