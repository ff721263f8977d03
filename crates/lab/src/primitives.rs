//! The workload `primitives`: four suites, sealing, opening, key set-up and a fresh key per message, on one thread.
//!
//! Case parameters: `suite` (its name), `op` (`seal`, `open`, `key-setup`, `fresh-key`, `seal-without-aes`), `bytes`
//! (message length; absent for `key-setup`), `aad` (bytes). Metrics: `throughput` in B/s (higher is better) and
//! `cpu_per_op` in s/op (lower) for messages, `setup_time` in s/op (lower) for `key-setup`. In-process subjects are
//! timed by the measuring thread's CPU clock (method `C`), so that a subject does not pay for a pause that another
//! program forced; `openssl` counts by the wall, and its figures are per second of its own CPU time (method `W`).
//!
//! `seal-without-aes` is `openssl speed` with AES and carry-less multiply hidden from it: what the suite costs a machine
//! that has no hardware for it.

mod cells;
mod definition;
mod engine;
mod noise;
mod openssl;
mod rows;
mod script;
mod subjects;

use std::fmt;
use std::time::{Duration, SystemTime};

use sealway_aead::Suite;
use sealway_aead::cpu::Cpu;

use crate::doctor::{Diagnosis, RatioInterval, Setup, Surroundings};
use crate::exit::Exit;
use crate::measure::{SystemProbe, WarningCode, clock};
use crate::plan::{Layout, Overhead, Plan, PlanError, Profile};
use crate::recommend::recommend;
use crate::result::{Machine, PlanFacts, RunResult, SCHEMA, Subject, Warning};
use crate::run::{Cell, Job, NoEntropy, Observer, Outcome, ScheduleError, Timing, execute};
use crate::stats::{Better, Rules, ratio};
use crate::{doctor, machine, run};

pub use subjects::PEERS;

/// Name of the workload.
pub const NAME: &str = "primitives";

/// What is spent besides warm-up and windows, measured on a small virtual machine: two canaries' share, the readings of
/// the machine, and the comparison of outputs.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(4),
    per_window: Duration::from_millis(8),
};

/// Lengths of a visit of the doctor.
const DOCTOR_TIMING: Timing = Timing {
    warmup: Duration::from_millis(150),
    window: Duration::from_millis(600),
    extra_rounds: 0,
};

/// Time limit of a standard run without `--budget`.
const STANDARD_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Time limit of a full run without `--budget`.
const FULL_LIMIT: Duration = Duration::from_secs(150 * 60);

/// What peers to measure beside our engine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Peers {
    /// Those that are there.
    #[default]
    Auto,
    /// None.
    None,
    /// These, and it is an error if one is not there. Names are those of [`PEERS`].
    Named(Vec<String>),
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// How long and how often.
    pub profile: Profile,
    /// Beside our engine.
    pub peers: Peers,
    /// Suites to measure; all if empty.
    pub suites: Vec<Suite>,
    /// Time limit for the whole run; the workload's own for the profile if absent.
    pub budget: Option<Duration>,
    /// Seed for the order of visits; drawn if absent.
    pub seed: Option<u64>,
    /// The command line, for the result file.
    pub command: Vec<String>,
}

/// Why there is no result.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The caller asked for what cannot be planned.
    Plan(PlanError),
    /// The caller named a peer that does not exist.
    UnknownPeer {
        /// The name.
        name: String,
    },
    /// A peer that was asked for by name is not there.
    PeerMissing {
        /// The name.
        name: String,
        /// Why, and what to do.
        why: String,
    },
    /// The system gave no random bytes.
    Entropy(NoEntropy),
    /// The lab's own mistake.
    Schedule(ScheduleError),
}

impl LabError {
    /// The exit code.
    pub const fn exit(&self) -> Exit {
        match self {
            LabError::Plan(_) | LabError::UnknownPeer { .. } => Exit::Usage,
            LabError::PeerMissing { .. } => Exit::PeerMissing,
            LabError::Entropy(_) | LabError::Schedule(_) => Exit::Internal,
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Plan(error) => error.fmt(f),
            LabError::UnknownPeer { name } => {
                write!(f, "no peer is called \"{name}\"; the peers are {}", PEERS.join(", "))
            }
            LabError::PeerMissing { name, why } => write!(f, "peer {name}: {why}"),
            LabError::Entropy(error) => error.fmt(f),
            LabError::Schedule(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {}

/// Measures.
///
/// The observer gets the plan before the first window and a valid partial result after every round. When it asks to stop,
/// the result holds what is known by then, with `complete: false`.
///
/// # Errors
/// [`LabError`] when nothing could be measured. A subject that fails or gives wrong data is no error here: it is left out,
/// and a warning with the code `cell-failed` or `cell-wrong` says so.
pub fn run(request: &Request, observer: &mut dyn Observer) -> Result<RunResult, LabError> {
    let seed = match request.seed {
        Some(seed) => seed,
        None => run::seed().map_err(LabError::Entropy)?,
    };
    let found = subjects::find(&request.peers)?;
    let suites = if request.suites.is_empty() {
        &Suite::ALL[..]
    } else {
        &request.suites
    };
    let mut cells = definition::cells(request.profile, suites, &found);
    let plan = plan(request, &cells)?;
    let schedule = plan.schedule(seed);

    let started = SystemTime::now();
    let mut probe = SystemProbe::start();
    let mut result = RunResult {
        schema: SCHEMA,
        run: run::run_id().map_err(LabError::Entropy)?,
        started: run::rfc3339(started),
        ended: String::new(),
        complete: false,
        sealway: run::version(),
        profile: request.profile.to_string(),
        seed: seed.to_string(),
        command: request.command.clone(),
        machine: this_machine(),
        plan: plan.facts(),
        warnings: Vec::new(),
        subjects: found.subjects.clone(),
        results: Vec::new(),
        windows: Vec::new(),
        recommendation: Vec::new(),
    };
    let standing = standing_warnings(&result.machine, &plan, &found.subjects);
    observer.planned(&result.plan);

    let rows = rows::Table::new(&cells, definition::hash(request.profile), request.profile);
    // An extra round would break the promise of a quick run to be over in a minute.
    let extra_rounds = if request.profile == Profile::Quick {
        0
    } else {
        run::MAX_EXTRA_ROUNDS
    };
    let timing = Timing {
        warmup: plan.warmup,
        window: plan.window,
        extra_rounds,
    };
    let job = Job {
        workload: NAME,
        schedule: &schedule,
        timing,
    };
    let fill = |result: &mut RunResult, outcome: &Outcome, complete: bool| {
        result.ended = run::rfc3339(SystemTime::now());
        result.complete = complete;
        result.results = rows.rows(outcome);
        result.windows.clone_from(&outcome.windows);
        result.warnings = standing.iter().cloned().chain(outcome.warnings()).collect();
        result.recommendation = recommend(&result.results, Cpu::get(), &result.machine.arch);
    };
    let mut snapshot = |outcome: &Outcome| {
        let mut partial = result.clone();
        fill(&mut partial, outcome, false);
        partial
    };
    let outcome = execute(&mut cells, &job, &mut probe, observer, &mut snapshot).map_err(LabError::Schedule)?;
    fill(&mut result, &outcome, !outcome.interrupted);
    Ok(result)
}

/// Says whether this machine can be measured: one subject under two names, and a look at the machine.
///
/// The subject is our AES-128-GCM sealing 16 KiB, the steadiest case there is. Takes about 15 seconds.
///
/// # Errors
/// [`LabError`] never happens with the fixed plan and is passed on as it comes.
pub fn doctor(observer: &mut dyn Observer) -> Result<Diagnosis, LabError> {
    let surroundings = Surroundings::of_this_machine();
    let interval = |first: &[f64], second: &[f64]| {
        let found = ratio("a", second, first, Better::Higher, Rules::of("throughput"));
        let (estimate, low, high) = (found.estimate.get(), found.low.get(), found.high.get());
        estimate.is_finite().then_some(RatioInterval {
            estimate,
            low,
            high,
            level: found.level,
        })
    };
    let setup = Setup {
        timing: DOCTOR_TIMING,
        interval: &interval,
        surroundings: &surroundings,
    };
    observer.planned(&PlanFacts {
        rounds: doctor::ROUNDS as u32,
        window_s: DOCTOR_TIMING.window.as_secs_f64(),
        warmup_s: DOCTOR_TIMING.warmup.as_secs_f64(),
        cells: 2,
        expected_s: (2 * doctor::ROUNDS) as f64 * (DOCTOR_TIMING.window + DOCTOR_TIMING.warmup).as_secs_f64(),
    });
    doctor::examine(
        &mut definition::doctor_cell,
        &setup,
        &mut SystemProbe::start(),
        observer,
    )
    .map_err(LabError::Schedule)
}

/// Fits the windows to the time there is, after the programs that take whole seconds have had theirs.
fn plan(request: &Request, cells: &[Box<dyn Cell>]) -> Result<Plan, LabError> {
    let layout = Layout::by_case(cells.iter().map(|cell| cell.case().canonical()));
    let limit = request.budget.or(match request.profile {
        Profile::Quick => request.profile.limit(),
        Profile::Standard => Some(STANDARD_LIMIT),
        Profile::Full => Some(FULL_LIMIT),
    });
    let slow = cells.iter().filter(|cell| cell.subject() == openssl::NAME).count() as u32;
    let programs = openssl::SHORTEST * slow * request.profile.rounds();
    let left = limit.map(|limit| limit.saturating_sub(programs));
    let mut plan = Plan::new(request.profile, layout, OVERHEAD, left).map_err(LabError::Plan)?;
    plan.expected += programs;
    Ok(plan)
}

/// Facts of this machine, with the features our engine can use.
fn this_machine() -> Machine {
    let mut machine = machine::capture(std::path::Path::new("/"));
    machine.flags = Cpu::get()
        .usable()
        .iter()
        .map(|feature| feature.name().to_owned())
        .collect();
    machine
}

/// What is known before the first window.
fn standing_warnings(machine: &Machine, plan: &Plan, subjects: &[Subject]) -> Vec<Warning> {
    let mut warnings = machine::warnings(machine, &clock::examine(), run::cpus());
    for subject in subjects.iter().filter(|subject| !subject.error.is_empty()) {
        let text = format!("{} is {}.", subject.name, subject.error);
        warnings.push(WarningCode::CellUnavailable.warn(&subject.name, &text));
    }
    if plan.cases_dropped > 0 {
        let text = format!("The time limit left no room for {} cases.", plan.cases_dropped);
        warnings.push(WarningCode::CasesDropped.warn("", &text));
    }
    for word in Cpu::get().unknown_words() {
        let text = format!(
            "{} names \"{word}\", which is no feature.",
            sealway_aead::cpu::DISABLE_VARIABLE
        );
        warnings.push(WarningCode::UnknownFeature.warn("", &text));
    }
    warnings
}

#[cfg(test)]
mod checks;
#[cfg(test)]
mod tests;
