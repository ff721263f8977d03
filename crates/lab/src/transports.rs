//! The workload `transports`: byte streams through a proxied route (see [`crate::route`]), with client, server and whatever
//! stands before it as processes of their own.
//!
//! Case parameters: `stack` (see [`Stack`]), `streams` (TCP connections at once: 1, 4 or 16), `direction` (`down`: to who connected,
//! `up`: to the target), `suite` (what seals the payload, or `none`). The stack `direct` has no program in it and is the
//! control; `relay` has one that copies.
//!
//! Metrics: `throughput` in B/s, payload that the receiver was given inside the window; `cpu_per_gb` in s/GB, CPU time of
//! all programs, user and system, for each 10^9 B of it, and `cpu_per_gb_client`, `cpu_per_gb_server`,
//! `cpu_per_gb_front` for each of them (method `P`: their processes' CPU clocks); `cpu_busy_client`, … in CPUs,
//! what each kept busy on the average, and `cpu_busy_peak_client`, … in the busiest twentieth of a second; `memory`, `memory_client`, … in B, the
//! peak of what was resident in the window; `fairness`, Jain's index of several streams. On a machine where all programs
//! share one or two CPUs `cpu_per_gb` is the headline: throughput is then about CPUs divided by everybody's cost together,
//! that of the generator included.
//!
//! Generator and sink are threads of this process, two a stream, with blocking writes and reads of 128 KiB and
//! TCP_NODELAY. Their cost is in no subject's figure. Every byte that arrives is compared, and as many must arrive as were
//! sent. Before the first window 16 MiB go each way in writes of all sizes, and, for stacks that authenticate, one bit is flipped
//! on the wire: nothing wrong may be delivered. Nothing may arrive that did not cross the wire. A peer that delivers it all the
//! same has the metric `forgeable` and the mark `unauthenticated`; of our own engine it is an error. A sender upwards begins
//! when the sink has accepted its connection. The end of a stream is waited for a tenth of a second, for some programs do not
//! pass it on.
//!
//! Over an emulated link ([`crate::link`], between client and server, for `direct` before the sink) the checks go as through
//! an open door. In a window streams are opened over the link and fill it before the warm-up; what is under way after the
//! window arrives at once.
//!
//! On two hosts (see [`crate::remote`]) generator and clients are here, sink and servers there, and every window has programs of its
//! own. A rate is made of the receiver's bytes and its clock, what a program keeps busy of the clock of its host: no two clocks are
//! compared. `workload_def` is another one, as the figures are.
//!
//! Programs start anew for every window and end after it. In quick runs, where that would take most of the time, they
//! start once and are held while others are measured.

mod advice;
mod bare;
mod cells;
mod far;
mod figures;
mod lens;
mod near;
mod pattern;
mod talk;
mod traffic;
mod wire;

use std::time::Duration;

use sealway_aead::Suite;

use crate::measure::cpu::Method;
use crate::plan::{Layout, Overhead, Plan, PlanError, Profile};
use crate::result::{ResultRow, Subject};
use crate::route::{Engine, Pair, Stack, engine};
use crate::run::Cell;
use crate::workload::fit::fit;
use crate::workload::metric::{Metric, THROUGHPUT};
use crate::workload::routes::{self, DIRECT, Found, mark_generator_bound};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{self, LabError, Peers, Prepared, Request, Workload};
pub(crate) use bare::{Moved, PIECE as WRITE, bare};
use cells::{FLIP_AFTER, Spec, VERIFIED};
pub(crate) use cells::{FORGEABLE, forgeable};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use far::answers;
pub use far::respond;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use talk::reads_answer;
use traffic::{Direction, END, PIECE};
pub(crate) use wire::Wire;

/// Name of the workload.
pub const NAME: &str = "transports";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 4] = engine::PEERS;

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "byte streams through proxies, with the CPU time of each process",
    peers: &PEERS,
    programs: &crate::route::PROGRAMS,
    gpu: false,
    guests: true,
    alone: false,
    limits: &crate::route::LIMITS,
    prepare,
    lens: &lens::LENS,
};

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 3;

/// Streams of the cases with several, and of those with many.
const SEVERAL: usize = 4;
const MANY: usize = 16;

/// Every byte of a window is compared.
const FULL: &str = "full";

/// Time limits of a standard and of a full run without a budget: programs start for every window.
const STANDARD_LIMIT: Duration = Duration::from_secs(30 * 60);
const FULL_LIMIT: Duration = Duration::from_secs(240 * 60);

/// What every run has: one of each kind, and the two ciphers of VMess.
const CHOSEN: [Stack; 5] = [
    Stack::VLESS_TCP,
    Stack::VLESS_TCP_TLS,
    Stack::VLESS_WS_TLS,
    Stack::VMESS_AES_TCP,
    Stack::VMESS_CHACHA_TCP,
];

/// CPU time for each 10^9 B.
const fn cpu(name: &'static str) -> Metric {
    Metric::lower(name, "s/GB").by(Method::Process)
}

/// CPUs that a program keeps busy: for a reader, as more of it is neither better nor worse.
const fn busy(name: &'static str) -> Metric {
    Metric::lower(name, "1").by(Method::Process)
}

const METRICS: [Metric; 17] = [
    THROUGHPUT,
    cpu("cpu_per_gb").related(),
    cpu("cpu_per_gb_client").related(),
    cpu("cpu_per_gb_server").related(),
    cpu("cpu_per_gb_front"),
    busy("cpu_busy_client"),
    busy("cpu_busy_server"),
    busy("cpu_busy_front"),
    busy("cpu_busy_peak_client"),
    busy("cpu_busy_peak_server"),
    busy("cpu_busy_peak_front"),
    Metric::lower("memory", "B"),
    Metric::lower("memory_client", "B"),
    Metric::lower("memory_server", "B"),
    Metric::lower("memory_front", "B"),
    Metric::higher("fairness", "1"),
    Metric::lower(FORGEABLE, "1"),
];

/// Finds the programs, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    let profile = match request.profile {
        // A quick run has few cases unless somebody chooses.
        Profile::Quick if request.cases.is_some() => Profile::Standard,
        profile => profile,
    };
    let mut specs = specs(profile, &request.stacks, &request.suites);
    specs.retain(|spec| request.wants(&spec.case()));
    // What is published of a preset is one stream down.
    specs.retain(|spec| request.preset.is_none() || (spec.streams, spec.direction) == (1, Direction::Down));
    let remote = request.remote.as_ref();
    if remote.is_some() {
        allowed(request)?;
        specs.retain(|spec| far::remote_stack(&spec.stack).is_ok());
    }
    if specs.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let asked = Request {
        peers: remote.map_or(request.peers.clone(), |_| Peers::None),
        ..request.clone()
    };
    let mut found = routes::find(&asked, specs.iter().map(|spec| spec.stack))?;
    let alike = found.engines.len();
    // Whoever chose cases, as recipes do, has the programs that were asked for.
    if request.profile == Profile::Full && request.pairs.is_empty() && request.cases.is_none() {
        let others = found.engines.iter().skip(1);
        let pairs: Vec<Pair> = others.flat_map(|engine| Pair::both_ways(engine.name())).collect();
        let stacks: Vec<Stack> = specs
            .iter()
            .filter(|spec| mixed(spec, &request.stacks))
            .map(|spec| spec.stack)
            .collect();
        found.pair(&pairs, &stacks)?;
    }
    let Found { mut subjects, engines } = found;
    let keep = request.profile == Profile::Quick && remote.is_none();
    let over = request.over();
    let runs = |subject: &&mut Subject| subject.error.is_empty() && subject.name != DIRECT;
    for subject in subjects.iter_mut().filter(|subject| keep && runs(subject)) {
        let held = "started once and held between its windows".to_owned();
        subject.differs.push(held);
    }
    let cell = |spec: Spec, engine: Option<Engine>| match remote {
        Some(link) => near::cell(spec, engine, link),
        None => cells::cell(spec, engine, keep, over),
    };
    let engines_of = |spec: &Spec| {
        if mixed(spec, &request.stacks) {
            &engines[..]
        } else {
            &engines[..alike]
        }
    };
    let cells_of = |spec: Spec| -> Vec<Cell> {
        if spec.stack == Stack::DIRECT {
            return vec![cell(spec, None)];
        }
        let engines = engines_of(&spec).iter().cloned();
        engines.map(|engine| cell(spec, Some(engine))).collect()
    };
    let starts: Duration = specs.iter().map(|spec| starts(&spec.stack, engines_of(spec))).sum();
    let cells: Vec<Cell> = specs.into_iter().flat_map(cells_of).collect();
    let start = starts / u32::try_from(cells.len()).unwrap_or(u32::MAX).max(1);
    Ok(Prepared {
        plan: plan(request, &cells, start)?,
        subjects,
        scheme: Scheme {
            verified: |case, _| match case.text("suite") {
                Some("none") => "full, unauthenticated",
                _ => FULL,
            },
            // Over a link all come close to what the link gives.
            finish: if over.is_some() { mark_forged } else { mark },
            guests: routes::guests(request),
            ..Scheme::new(NAME, hash(request), |_| &METRICS, Reference::Best(&PEERS))
        },
        cells,
        warnings: Vec::new(),
        recommend: advice::bulk,
    })
}

/// Every case, the most telling first: a time limit drops cases from the end. Without a choice of stacks a standard run has
/// each with one stream down, and the chosen ones also up and with several streams; a full run, and a choice of stacks, have
/// everything: up and down, with one stream, with several and with many.
fn specs(profile: Profile, stacks: &[Stack], suites: &[Suite]) -> Vec<Spec> {
    let wanted = |stack: &Stack| {
        let named = stacks.is_empty() || stacks.contains(stack) || *stack == Stack::DIRECT;
        let sealed =
            suites.is_empty() || *stack == Stack::DIRECT || stack.suite().is_some_and(|suite| suites.contains(&suite));
        named && sealed
    };
    let chosen = |stack: &Stack| CHOSEN.contains(stack) || *stack == Stack::DIRECT || !stacks.is_empty();
    let rest = Stack::ALL
        .into_iter()
        .filter(|stack| !CHOSEN.contains(stack) && *stack != Stack::DIRECT);
    let ordered: Vec<Stack> = std::iter::once(Stack::DIRECT)
        .chain(CHOSEN)
        .chain(rest)
        .filter(wanted)
        .collect();
    if ordered.iter().all(|stack| *stack == Stack::DIRECT) && stacks != [Stack::DIRECT] {
        return Vec::new();
    }
    let mut specs = Vec::new();
    let mut add = |streams, direction, which: &dyn Fn(&Stack) -> bool| {
        specs.extend(ordered.iter().filter(|stack| which(stack)).map(|&stack| Spec {
            stack,
            streams,
            direction,
        }));
    };
    if profile == Profile::Quick {
        add(1, Direction::Down, &chosen);
        return specs;
    }
    add(1, Direction::Down, &|_| true);
    add(1, Direction::Up, &chosen);
    add(SEVERAL, Direction::Down, &chosen);
    if profile == Profile::Full || !stacks.is_empty() {
        let others = |stack: &Stack| !chosen(stack);
        add(MANY, Direction::Down, &chosen);
        add(SEVERAL, Direction::Up, &chosen);
        add(MANY, Direction::Up, &chosen);
        add(1, Direction::Up, &others);
        for streams in [SEVERAL, MANY] {
            add(streams, Direction::Down, &others);
            add(streams, Direction::Up, &others);
        }
    }
    specs
}

/// Whether a full run has the pairs of ours with every other program in this case: with all of them it would have twice the cases.
fn mixed(spec: &Spec, stacks: &[Stack]) -> bool {
    let chosen = CHOSEN.contains(&spec.stack) || stacks.contains(&spec.stack);
    chosen && (spec.streams, spec.direction) == (1, Direction::Down)
}

/// Refuses what is measured on one host only.
///
/// # Errors
/// [`LabError::OneHostOnly`].
pub fn allowed(request: &Request) -> Result<(), LabError> {
    let refuse = |what: String| Err(LabError::OneHostOnly { what });
    // Two hosts have a link of their own.
    if request.link.is_some() {
        return refuse("an emulated link".to_owned());
    }
    if let Peers::Named(names) = &request.peers {
        return refuse(format!("the peers {}", names.join(", ")));
    }
    if let Some(guest) = request.guests.first() {
        return refuse(format!("the peer {}", guest.name()));
    }
    if let Some(pair) = request.pairs.first() {
        return refuse(format!("the pair {pair}"));
    }
    match request.stacks.iter().find(|stack| far::remote_stack(stack).is_err()) {
        Some(stack) => refuse(format!("the stack {stack}, which has nginx in it,")),
        None => Ok(()),
    }
}

/// Hash of the numbers that define a window.
fn hash(request: &Request) -> String {
    let hosts = if request.remote.is_some() { " two hosts" } else { "" };
    let definition = format!(
        "{NAME} {VERSION} piece={PIECE} nodelay block={} verified={VERIFIED} flip={FLIP_AFTER} tls=1.3 p256{hosts}",
        pattern::BLOCK
    );
    workload::hash_over(&definition, request.link)
}

/// How long the programs of a stack take to start, all engines together.
fn starts(stack: &Stack, engines: &[Engine]) -> Duration {
    if !stack.has_programs() {
        return Duration::ZERO;
    }
    engines.iter().map(|engine| engine.start(stack)).sum()
}

/// Fits the windows to the time there is, where a cell's programs take `start` on the average to start.
fn plan(request: &Request, cells: &[Cell], start: Duration) -> Result<Plan, LabError> {
    let limit = match request.profile {
        Profile::Quick => request.limit(),
        Profile::Standard => request.budget.or(Some(STANDARD_LIMIT)),
        Profile::Full => request.budget.or(Some(FULL_LIMIT)),
    };
    // Programs start twice for the checks before the first window, and 36 MiB go through them.
    let per_cell = start * 2 + Duration::from_millis(300);
    let start = match request.profile {
        // They are held from then on, but on two hosts.
        Profile::Quick if request.remote.is_none() => Duration::from_millis(20),
        _ => start,
    };
    // About half of the peers do not pass on the end of a stream.
    let start = start + END / 2;
    // Over a link streams are opened and reach its rate before anything counts.
    let start = request
        .link
        .map_or(start, |link| start + link.opening() + link.settling());
    let overhead = Overhead {
        per_cell,
        per_window: start + Duration::from_millis(15),
    };
    if let Some(preset) = request.preset {
        let layout = Layout::by_case(cells.iter().map(|cell| cell.case.canonical()));
        return Ok(preset.plan(layout, overhead)?);
    }
    fit(request.profile, cells, overhead, limit, 1.0)
}

/// Looks at all rows together.
fn mark(rows: &mut [ResultRow]) {
    mark_bound(rows);
    mark_forged(rows);
}

/// Marks what may have been limited by the generator.
fn mark_bound(rows: &mut [ResultRow]) {
    mark_generator_bound(rows, THROUGHPUT.name, |row| {
        let direction = row.case.text("direction").map(str::to_owned);
        (row.case.int("streams"), direction)
    });
}

/// Marks every row of a subject that delivered wrong bytes where the stack should have noticed.
pub(crate) fn mark_forged(rows: &mut [ResultRow]) {
    let key = |row: &ResultRow| (row.case.canonical(), row.subject.clone());
    let found: Vec<_> = rows.iter().filter(|row| row.metric == FORGEABLE).map(key).collect();
    for row in rows.iter_mut().filter(|row| found.contains(&key(row))) {
        row.verified = format!("{FULL}, unauthenticated");
        row.flags.push("unauthenticated".to_owned());
    }
}

#[cfg(all(test, target_os = "linux"))]
mod guest_tests;
#[cfg(test)]
mod tests;
