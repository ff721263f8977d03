//! Cells of workloads that put load on a route: each window has a route, a generator and connections of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::generator::{Edge, Generator, TIMEOUT, Window};
use super::memory::of_sockets;
use super::metrics::{FIRST_BYTE, LATENCY, SERVICE};
use super::script::Script;
use super::sink::Sink;
use crate::lens::OURS;
use crate::link::Over;
use crate::peer::proc::raise_files;
use crate::result::Case;
use crate::route::{Engine, Route, RouteError, Stack};
use crate::run::{Cell, CellError, Counted, Timed};
use crate::stats::latency::Tail;
use crate::transports::{FORGEABLE, Wire, forgeable};
use crate::workload::routes::DIRECT;

/// Share of a window above which the generator's thread, and not the subject, may be what limits it.
const MOST_BUSY: f64 = 0.85;

/// Connections that are opened at once, and checked, before a window.
pub(super) const AT_ONCE: usize = 32;

/// Connections before the idle ones, so that what a program makes once is there before its memory is read.
const BEFORE_IDLE: usize = 8;

/// Files that are open besides connections.
const OTHER_FILES: u64 = 200;

/// How a window is driven.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Drive {
    /// The next exchange when the last is over.
    Closed,
    /// A schedule, at this many hundredths of the slowest subject's ceiling.
    Open(u32),
    /// Nothing happens: connections are held.
    Idle,
}

impl Drive {
    /// The case's word for it.
    pub(crate) fn name(self) -> String {
        match self {
            Drive::Closed => "closed".to_owned(),
            Drive::Open(percent) => format!("open-{percent}"),
            Drive::Idle => "idle".to_owned(),
        }
    }
}

/// A parameter set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) stack: Stack,
    /// What is done, as the case names it.
    pub(crate) mode: &'static str,
    pub(crate) script: &'static Script,
    pub(crate) connections: usize,
    pub(crate) drive: Drive,
}

impl Spec {
    pub(crate) const fn new(
        stack: Stack,
        mode: &'static str,
        script: &'static Script,
        connections: usize,
        drive: Drive,
    ) -> Spec {
        Spec {
            stack,
            mode,
            script,
            connections,
            drive,
        }
    }

    /// Connections that are opened before a window.
    pub(super) const fn opened(&self) -> usize {
        match self.drive {
            Drive::Idle => BEFORE_IDLE + self.connections,
            Drive::Closed | Drive::Open(_) => self.connections,
        }
    }

    pub(crate) fn case(&self) -> Case {
        Case::new()
            .with("stack", self.stack.name())
            .with("mode", self.mode)
            .with("load", self.drive.name().as_str())
            .with("connections", self.connections)
    }
}

/// What each subject of a closed loop reached, by stack and mode: ours and the peers, and user-supplied programs, which are not to
/// set the rate of the others, only where there is no peer. The first window of each subject counts, so that
/// all rounds of an open loop have one rate.
#[derive(Debug, Default)]
pub(crate) struct Ceilings(BTreeMap<(&'static str, &'static str), BTreeMap<String, f64>>);

impl Ceilings {
    fn note(&mut self, spec: &Spec, subject: &str, rate: f64) {
        let of_case = self.0.entry((spec.stack.name(), spec.mode)).or_default();
        of_case.entry(subject.to_owned()).or_insert(rate);
    }

    fn lowest(&self, spec: &Spec) -> Option<f64> {
        let of_case = self.0.get(&(spec.stack.name(), spec.mode))?;
        of_case.values().copied().min_by(f64::total_cmp)
    }
}

/// What all cells of a run share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    ceilings: Rc<RefCell<Ceilings>>,
    /// Who lets pass what was changed on the wire of which stack.
    forgeable: Rc<RefCell<BTreeMap<(&'static str, String), bool>>>,
    over: Option<Over>,
}

impl Shared {
    /// For cells over a link, if there is one.
    pub(crate) fn new(over: Option<Over>) -> Shared {
        Shared {
            over,
            ..Shared::default()
        }
    }
}

/// A case with a subject.
pub(super) struct LoadCell {
    spec: Spec,
    subject: String,
    /// Not asked for a direct route, which has no programs.
    engine: Engine,
    shared: Shared,
    /// The rate of an open loop goes by what it reaches.
    paces: bool,
    /// A figure of every window of a peer that let pass what was changed on its wire.
    forged: Option<(&'static str, f64)>,
    /// Windows so far.
    turns: u64,
}

/// The cells of a case: one for each engine, and the control.
pub(crate) fn cells_of(spec: Spec, engines: &[Engine], shared: &Shared) -> Vec<Cell> {
    let subjects = engines.iter().map(|engine| (engine.name(), engine));
    // A route without programs needs none of them; any stands in for it.
    let control = engines.first().map(|engine| (DIRECT, engine));
    let cell = |(subject, engine): (&str, &Engine)| {
        let paces = subject != DIRECT && sets_pace(engine, engines);
        Cell::new(
            spec.case(),
            subject,
            LoadCell::new(spec, subject, engine, paces, shared),
        )
    };
    subjects.chain(control).map(cell).collect()
}

/// True if the rate of an open loop goes by what this one reaches too.
pub(super) fn sets_pace(engine: &Engine, engines: &[Engine]) -> bool {
    let is_peer = |engine: &Engine| !engine.is_guest() && engine.name() != OURS;
    !engine.is_guest() || !engines.iter().any(is_peer)
}

impl LoadCell {
    pub(super) fn new(spec: Spec, subject: &str, engine: &Engine, paces: bool, shared: &Shared) -> LoadCell {
        LoadCell {
            spec,
            subject: subject.to_owned(),
            engine: engine.clone(),
            shared: shared.clone(),
            paces,
            forged: None,
            turns: 0,
        }
    }

    /// A server of its own each time: what it sees was done by this subject.
    fn sink(&self) -> Result<Sink, CellError> {
        raise_files();
        Sink::start(self.spec.script)
            .map_err(|error| CellError::failed(format_args!("the sink does not start: {error}")))
    }

    fn open(&self, sink: &Sink) -> Result<Route, CellError> {
        let stack = if self.subject == DIRECT {
            Stack::DIRECT
        } else {
            self.spec.stack
        };
        let link = self.shared.over.map(|over| over.link);
        Ok(Route::open_linked(&stack, Some(&self.engine), sink.address(), link)?)
    }

    /// Whether it lets pass what was changed on its wire: tried once for all cases of a stack.
    fn is_forgeable(&self) -> Result<bool, CellError> {
        let key = (self.spec.stack.name(), self.subject.clone());
        let known = self.shared.forgeable.borrow().get(&key).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = forgeable(self.spec.stack, &self.engine)?;
        self.shared.forgeable.borrow_mut().insert(key, found);
        Ok(found)
    }

    fn generator(&self, route: &Route, connections: usize) -> Result<Generator, CellError> {
        let seed = crate::run::seed().map_err(CellError::failed)?;
        let bytes = connections as u64 * self.spec.script.bytes();
        let patience = self
            .shared
            .over
            .map_or(Duration::ZERO, |over| over.link.patience(bytes));
        let generator = Generator::new(self.spec.script, route.entry(), connections, seed)?;
        Ok(generator.with_timeout(TIMEOUT + patience))
    }

    /// A window under load.
    fn busy(&self, route: &mut Route, warmup: Duration, length: Duration) -> Result<Counted, CellError> {
        let mut generator = self.generator(route, self.spec.connections)?;
        generator.once(AT_ONCE)?;
        let mut meters: Vec<Result<Cpu, RouteError>> = Vec::with_capacity(2);
        let mut edge = |_: Edge| meters.push(route.cpu().map(cpu));
        let window = match self.spec.drive {
            Drive::Open(percent) => {
                let ceiling = self.shared.ceilings.borrow().lowest(&self.spec);
                let ceiling = ceiling
                    .ok_or_else(|| CellError::unavailable("no subject has shown its ceiling in a closed loop"))?;
                generator.open(ceiling * f64::from(percent) / 100.0, warmup, length, &mut edge)?
            }
            Drive::Closed | Drive::Idle => generator.closed(warmup, length, &mut edge)?,
        };
        let spent = spent(meters)?;
        route.check()?;
        // One that answers nothing, or little of what it was asked, must not set the rate for all.
        let answered = window.done > 0 && generator.latency.failed() * 100 <= generator.latency.count();
        if self.spec.drive == Drive::Closed && answered && self.paces {
            let rate = window.done as f64 / window.wall_s;
            self.shared.ceilings.borrow_mut().note(&self.spec, &self.subject, rate);
        }
        let mut figures = load_figures(&window, &generator, self.spec.drive);
        figures.extend(route.link_figure());
        figures.extend(self.forged);
        for (name, time) in &spent {
            figures.push((name, time / window.done as f64));
        }
        Ok(Counted {
            ops: window.done,
            bytes: window.bytes,
            wall_s: window.wall_s,
            cpu_s: spent.get("cpu_per_op").copied().unwrap_or(0.0),
            figures,
            tails: tails(&generator, self.spec.drive),
        })
    }

    /// Opens all connections, lets them lie for a while, and sees what they cost.
    fn idle(&self, route: &mut Route, length: Duration) -> Result<Counted, CellError> {
        let count = self.spec.connections;
        // The relay of a link has two for each as well.
        let each = if self.shared.over.is_some() { 4 } else { 2 };
        let (files, wanted) = (raise_files(), each * count as u64 + OTHER_FILES);
        if files < wanted {
            return Err(CellError::unavailable(format_args!(
                "{count} connections need {wanted} open files, and the system allows {files}"
            )));
        }
        let mut first = self.generator(route, BEFORE_IDLE)?;
        first.once(BEFORE_IDLE)?;
        let kernel = || of_sockets(Path::new("/"));
        let before = (memory(route)?, kernel());
        let mut generator = self.generator(route, count)?;
        generator.once(AT_ONCE)?;
        let began = Instant::now();
        std::thread::sleep(length);
        let wall_s = began.elapsed().as_secs_f64();
        let after = (memory(route)?, kernel());
        // Whoever closes what lies idle holds nothing: all must still work, and none anew.
        let opened = generator.opened();
        generator.once(AT_ONCE)?;
        if generator.opened() != opened {
            let lost = generator.opened() - opened;
            return Err(CellError::failed(format_args!(
                "{lost} of {count} idle connections were closed"
            )));
        }
        route.check()?;
        // Whoever has given memory back in the meantime holds none for them.
        let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / count as f64;
        let mut figures: Vec<(&'static str, f64)> = self.forged.into_iter().collect();
        for ((name, before), (_, after)) in before.0.iter().zip(&after.0) {
            figures.push((name, each(*before, *after)));
        }
        // Over a link the relay's sockets would count as the subject's.
        if let (Some(before), Some(after), None) = (before.1, after.1, self.shared.over) {
            figures.push(("memory_per_connection_kernel", each(before, after)));
        }
        Ok(Counted {
            ops: count as u64,
            bytes: 0,
            wall_s,
            cpu_s: 0.0,
            figures,
            tails: Vec::new(),
        })
    }
}

impl Timed for LoadCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        let sink = self.sink()?;
        let mut wire = None;
        let mut route = if self.subject == DIRECT {
            Route::direct(sink.address())
        } else {
            let over = |to| Ok(wire.insert(Wire::sound(to)?).address());
            Route::open_over(&self.spec.stack, &self.engine, sink.address(), over)?
        };
        let answered = self.generator(&route, AT_ONCE)?.once(1);
        // What the sink saw explains what the generator did not get.
        sink.check()?;
        answered?;
        route.check()?;
        // Whoever goes straight to the sink would be the fastest of all.
        wire.map_or(Ok(()), |wire| wire.carried(AT_ONCE as u64 * self.spec.script.bytes()))?;
        // Whoever sends as plaintext what it should seal would be as fast.
        if self.subject != DIRECT && self.spec.stack.authenticated() {
            self.forged = self.is_forgeable()?.then_some((FORGEABLE, 1.0));
        }
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        // A window that fails has its turn too: the next one has the losses of everybody's next.
        let turn = self.turns;
        self.turns += 1;
        let sink = self.sink()?;
        let mut route = self.open(&sink)?;
        if let Some(over) = self.shared.over {
            route.engage(over.turn(turn));
        }
        let counted = match self.spec.drive {
            Drive::Idle => self.idle(&mut route, warmup + window),
            Drive::Closed | Drive::Open(_) => self.busy(&mut route, warmup, window),
        };
        // What the sink saw explains what the generator did not get.
        sink.check()?;
        counted
    }
}

/// CPU seconds by the metric that they go into.
type Cpu = BTreeMap<&'static str, f64>;

/// CPU time of the roles: each, and all together.
fn cpu(roles: Vec<(&'static str, Duration)>) -> Cpu {
    let mut sum = Cpu::new();
    for (role, time) in roles {
        *sum.entry("cpu_per_op").or_default() += time.as_secs_f64();
        let own = match role {
            "client" => "cpu_per_op_client",
            "server" => "cpu_per_op_server",
            _ => "cpu_per_op_front",
        };
        *sum.entry(own).or_default() += time.as_secs_f64();
    }
    sum
}

/// What passed between the edges of a window.
fn spent(meters: Vec<Result<Cpu, RouteError>>) -> Result<Cpu, CellError> {
    let mut readings = meters.into_iter();
    let (Some(before), Some(after)) = (readings.next(), readings.next()) else {
        return Err(CellError::failed("the window has no edges"));
    };
    let (before, after) = (before?, after?);
    Ok(after
        .into_iter()
        .map(|(name, time)| (name, time - before.get(name).copied().unwrap_or(0.0)))
        .collect())
}

/// Memory of the roles in bytes by the metric that it goes into; the server's has the plain name, as it is the one that
/// has the connections of all clients.
fn memory(route: &Route) -> Result<BTreeMap<&'static str, u64>, CellError> {
    let mut sum = BTreeMap::new();
    for (role, memory) in route.memory()? {
        let name = match role {
            "server" => "memory_per_connection",
            "client" => "memory_per_connection_client",
            _ => "memory_per_connection_front",
        };
        if let Some(bytes) = memory.pss {
            *sum.entry(name).or_default() += bytes;
        }
    }
    Ok(sum)
}

/// The latencies of a window by name.
fn tails(generator: &Generator, drive: Drive) -> Vec<(&'static str, Tail)> {
    let mut tails = vec![
        (LATENCY, generator.latency.tail()),
        (FIRST_BYTE, generator.first_byte.tail()),
    ];
    // In a closed loop this is the latency again.
    if matches!(drive, Drive::Open(_)) {
        tails.push((SERVICE, generator.service.tail()));
    }
    tails
}

/// What became of the load. `overloaded` and `generator-bound` are marks: a row of whose windows one has it, has it too.
fn load_figures(window: &Window, generator: &Generator, drive: Drive) -> Vec<(&'static str, f64)> {
    let mut figures = Vec::new();
    let (failed, all) = (generator.latency.failed(), generator.latency.count());
    if failed > 0 {
        figures.push(("failed", failed as f64 / all as f64));
    }
    if let Some(counts) = &window.counts {
        figures.push(("planned", counts.planned as f64));
        figures.push(("sent", counts.sent as f64));
        figures.push(("done", counts.done as f64));
        figures.push(("late", counts.late as f64));
        figures.push(("dropped", counts.dropped as f64));
        if counts.overloaded() {
            figures.push(("overloaded", 1.0));
        }
    }
    if let Some(busy) = window.busy {
        figures.push(("generator_busy", busy));
        if busy > MOST_BUSY && !matches!(drive, Drive::Idle) {
            figures.push(("generator-bound", 1.0));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::scripts::HTTP_KEEP;

    #[test]
    fn an_open_loop_goes_by_the_slowest_subject_in_its_first_window() {
        let spec = Spec::new(Stack::VLESS_TCP, "keep", &HTTP_KEEP, 64, Drive::Closed);
        let mut ceilings = Ceilings::default();
        assert_eq!(ceilings.lowest(&spec), None);
        ceilings.note(&spec, "sealway", 3000.0);
        ceilings.note(&spec, "xray", 2000.0);
        ceilings.note(&spec, "xray", 1000.0);
        assert_eq!(ceilings.lowest(&spec), Some(2000.0));
        let other = Spec { mode: "close", ..spec };
        assert_eq!(ceilings.lowest(&other), None);
    }

    #[test]
    fn roles_are_told_apart_and_summed() {
        let at = |client, server| {
            let s = Duration::from_secs;
            Ok(cpu(vec![("client", s(client)), ("server", s(server))]))
        };
        let spent = spent(vec![at(1, 2), at(2, 5)]);
        let wanted = [
            ("cpu_per_op", 4.0),
            ("cpu_per_op_client", 1.0),
            ("cpu_per_op_server", 3.0),
        ];
        assert_eq!(spent, Ok(Cpu::from(wanted)));
        let gone = || Err(RouteError::Gone { role: "server" });
        assert!(super::spent(vec![at(1, 2), gone()]).is_err());
    }
}
