//! The workload `calibrate`: the lab's own generators beside iperf3 and wrk, which others know and trust.
//!
//! Case parameters: `generator` (`stream`, `requests`), `connections`, `bytes` (of a write; of the body of an answer), and of
//! requests `server_us` (work of the server for each, in microseconds).
//!
//! `stream`: one TCP connection over loopback, TCP_NODELAY, writes of 128 KiB, by the generator and the sink of
//! [`crate::transports`] without a route, and by `iperf3 -c` to `iperf3 -s -1`. Metrics: `throughput` in B/s, what the
//! receiver was given; `cpu_per_gb` in s/GB, CPU time of both ends for each 10^9 B of it.
//!
//! `requests`: a closed loop on 64 connections that stay, by the generator of [`crate::requests`] and by `wrk -t1`, both to
//! the lab's own server, which compares every byte of every request. Once the generator is what limits, and the one that costs
//! less goes further; once the server is, and both have to reach the same rate. Metrics: `rate` in 1/s; `latency_p50` and `latency_p99`
//! in s, of the requests of all rounds together, wrk's by 1,000 ranks of each; `cpu_per_op` in s/op, CPU time of the generator alone.
//!
//! Each end has a CPU of its own, the same for all, if there are two: where the scheduler puts them makes more of a difference
//! than what is compared.
//!
//! iperf3 and wrk take whole seconds, so every window does. None has a warm-up. They count for themselves: their times are
//! held against the lab's clock, their bytes against their CPU time, and wrk's requests against the server's count; what does
//! not fit is refused. Their CPU time is that of their whole life (method `W`), which for windows of a second has about a
//! hundredth of starting and ending in it. Ours is that of the process (`P`) for a stream, both ends of which are in it, and
//! that of the generator's thread (`C`) for requests.

mod cells;
mod claims;
mod iperf3;
mod lens;
mod wrk;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::lens::OURS;
use crate::load::scripts::{BODY, HTTP_KEEP};
use crate::measure::cpu::Method;
use crate::peer::program;
use crate::plan::{Overhead, Plan, PlanError};
use crate::result::{Case, Subject};
use crate::run::Cell;
use crate::transports::WRITE;
use crate::workload::fit::fit;
use crate::workload::metric::Metric;
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{self, LabError, Prepared, Request, Workload, subjects};

/// Name of the workload.
pub const NAME: &str = "calibrate";

/// Names of all peers this workload knows.
pub const PEERS: [&str; 2] = [iperf3::NAME, wrk::NAME];

/// The workload.
pub static WORKLOAD: Workload = Workload {
    name: NAME,
    summary: "the lab's own load generators beside iperf3 and wrk",
    peers: &PEERS,
    programs: &PEERS,
    gpu: false,
    guests: false,
    alone: true,
    limits: &LIMITS,
    prepare,
    lens: &lens::LENS,
};

/// What the figures cannot show.
const LIMITS: [&str; 3] = [
    "Loopback of this machine, where the generators are what limits: over a network two of them differ by less.",
    "One stream, and one thread of requests: what several do at once is not compared.",
    "iperf3 and wrk look at nothing that they receive, and count for themselves: a difference is the price of checking too.",
];

/// Version of what a window does. Raise it when figures before and after are no longer comparable.
const VERSION: u32 = 3;

/// Connections of the case of requests: those of [`crate::requests`].
const CONNECTIONS: usize = 64;

/// Work of a server that is to limit: several times what a request costs a generator.
const SERVER: Duration = Duration::from_micros(20);

/// What is spent besides windows: canaries, the start and the end of two programs.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(20),
    per_window: Duration::from_millis(350),
};

/// The shortest window that the programs can do.
const SHORTEST: Duration = Duration::from_secs(1);

const STREAM: [Metric; 2] = [
    Metric::higher("throughput", "B/s").by(Method::Wall),
    Metric::lower("cpu_per_gb", "s/GB").related(),
];
const REQUESTS: [Metric; 4] = [
    Metric::higher("rate", "1/s").by(Method::Wall),
    latency("latency_p50", 0.5),
    latency("latency_p99", 0.99),
    Metric::lower("cpu_per_op", "s/op").related(),
];

/// How long requests took.
const LATENCY: &str = "latency";

const fn latency(name: &'static str, q: f64) -> Metric {
    let metric = Metric::lower(name, "s").by(Method::Wall).related();
    metric.percentile(LATENCY, q)
}

/// What generates the load of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// A stream of bytes.
    Stream,
    /// Requests over HTTP, as many as the generator can do.
    Requests,
    /// Requests over HTTP, as many as the server can do.
    Bound,
}

impl Kind {
    /// The case's word for it.
    const fn name(self) -> &'static str {
        match self {
            Kind::Stream => "stream",
            Kind::Requests | Kind::Bound => "requests",
        }
    }

    fn of(case: &Case) -> Kind {
        match case.text("generator") {
            Some("stream") => Kind::Stream,
            _ if case.int("server_us").is_some_and(|work| work > 0) => Kind::Bound,
            _ => Kind::Requests,
        }
    }

    /// What the server does for each request.
    const fn work(self) -> Duration {
        match self {
            Kind::Stream | Kind::Requests => Duration::ZERO,
            Kind::Bound => SERVER,
        }
    }

    fn case(self) -> Case {
        let (connections, bytes) = match self {
            Kind::Stream => (1, WRITE),
            Kind::Requests | Kind::Bound => (CONNECTIONS, BODY),
        };
        let case = Case::new()
            .with("generator", self.name())
            .with("connections", connections)
            .with("bytes", bytes);
        match self {
            Kind::Stream => case,
            Kind::Requests | Kind::Bound => case.with("server_us", self.work().as_micros() as usize),
        }
    }
}

/// Finds the programs, makes the cells, fits the plan.
pub(crate) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    // Nothing is sealed here, and nothing has a route.
    if !request.suites.is_empty() || !request.stacks.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let (mut bulk, mut load) = (None, None);
    let mut found = subjects::find(&request.peers, &PEERS, |name| match name {
        iperf3::NAME => Ok(iperf3::subject(bulk.insert(iperf3::find()?))),
        _ => Ok(wrk::subject(load.insert(wrk::find()?))),
    })?;
    if let Some(ours) = found.subjects.first_mut() {
        *ours = described(ours);
    }
    let mut cells = vec![Cell::new(Kind::Stream.case(), OURS, cells::OurStream)];
    cells.extend(bulk.map(|program| Cell::new(Kind::Stream.case(), iperf3::NAME, iperf3::Stream { program })));
    for kind in [Kind::Bound, Kind::Requests] {
        let work = kind.work();
        cells.push(Cell::new(kind.case(), OURS, cells::OurRequests { work }));
        let load = load.clone().map(|program| wrk::Load { program, work });
        cells.extend(load.map(|load| Cell::new(kind.case(), wrk::NAME, load)));
    }
    Ok(Prepared {
        plan: plan(request, &cells)?,
        subjects: found.subjects,
        scheme: scheme(),
        cells,
        warnings: Vec::new(),
        recommend: |_| Vec::new(),
    })
}

/// A program that is compared with, found and asked for its version.
#[derive(Clone, Debug)]
struct Program {
    path: PathBuf,
    version: String,
}

impl Program {
    /// The program as the result file describes it.
    fn subject(&self, name: &str, differs: &[&str]) -> Subject {
        Subject {
            name: name.to_owned(),
            version: self.version.clone(),
            kind: "program".to_owned(),
            sha256: program::sha256_of(&self.path).unwrap_or_default(),
            setup: "matched".to_owned(),
            differs: differs.iter().map(|words| (*words).to_owned()).collect(),
            ..Subject::default()
        }
    }

    fn command(&self, words: Vec<String>) -> Command {
        let mut command = Command::new(&self.path);
        command.args(words).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Our subject with what its generators do and others do not.
fn described(ours: &Subject) -> Subject {
    let differs = [
        "a stream: two threads of this process; every byte that arrives is compared",
        "requests: one thread of this process; each is made anew, and every byte of its answer is compared",
        "connections are open before the window begins",
    ];
    Subject {
        differs: differs.map(str::to_owned).to_vec(),
        ..ours.clone()
    }
}

fn scheme() -> Scheme {
    Scheme {
        method: |case, subject| match (subject, Kind::of(case)) {
            (iperf3::NAME | wrk::NAME, _) => Method::Wait,
            (_, Kind::Stream) => Method::Process,
            (_, Kind::Requests | Kind::Bound) => Method::Thread,
        },
        verified: |_, subject| match subject {
            iperf3::NAME | wrk::NAME => "self",
            _ => "full",
        },
        ..Scheme::new(NAME, hash(), metrics, Reference::First(&PEERS))
    }
}

fn metrics(case: &Case) -> &'static [Metric] {
    match Kind::of(case) {
        Kind::Stream => &STREAM,
        Kind::Requests | Kind::Bound => &REQUESTS,
    }
}

/// Hash of the numbers that define a window.
fn hash() -> String {
    workload::hash(&format!(
        "{NAME} {VERSION} write={WRITE} nodelay connections={CONNECTIONS} server={SERVER:?} {HTTP_KEEP:?}"
    ))
}

/// Whole seconds of a window, at least one.
fn whole(window: Duration) -> u64 {
    (window.as_secs_f64().round() as u64).max(SHORTEST.as_secs())
}

/// Fits windows of whole seconds to the time there is.
fn plan(request: &Request, cells: &[Cell]) -> Result<Plan, LabError> {
    let limit = request.limit();
    let least = SHORTEST * cells.len() as u32 * request.profile.rounds();
    let left = limit.map(|limit| limit.saturating_sub(least));
    let mut plan = fit(request.profile, cells, OVERHEAD, left, 1.0).map_err(|error| match error {
        // Said in the user's terms: the limit that was given, and all that it would have to cover.
        LabError::Plan(PlanError::LimitTooShort { limit: _, needed }) => LabError::Plan(PlanError::LimitTooShort {
            limit: limit.unwrap_or(Duration::MAX),
            needed: needed + least,
        }),
        other => other,
    })?;
    let visits = plan.facts().cells.saturating_mul(plan.rounds);
    let planned = (plan.warmup + plan.window) * visits;
    plan.warmup = Duration::ZERO;
    plan.window = Duration::from_secs(whole(plan.window));
    plan.expected = (plan.expected + plan.window * visits).saturating_sub(planned);
    plan.limit = limit.or(request.profile.limit());
    Ok(plan)
}

#[cfg(test)]
mod tests;
