//! What a workload is, and the run that all workloads share.
//!
//! A workload brings its cells, its plan and how its windows are read; the rest is here: the seed, the machine, the
//! subjects, partial results after every round, warnings. Several workloads can share one result, one after the other.

pub(crate) mod advice;
pub(crate) mod batch;
pub(crate) mod bytes;
mod catalogue;
pub(crate) mod chunk;
pub(crate) mod engine;
mod error;
pub(crate) mod fit;
mod linked;
pub(crate) mod metric;
pub(crate) mod routes;
pub(crate) mod rows;
pub(crate) mod stacks;
pub(crate) mod subjects;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sealway_aead::Suite;
use sealway_aead::cpu::Cpu;
use sha2::{Digest, Sha256};

use crate::format::hex;
use crate::lens::Lens;
use crate::link::{Link, Over};
use crate::measure::{WarningCode, clock};
use crate::plan::{Plan, PlanError, Preset, Profile};
use crate::remote;
use crate::result::{Case, Machine, PlanFacts, Recommendation, ResultRow, RunResult, SCHEMA, Subject, Warning};
use crate::route::{Guest, Pair, Stack};
use crate::run::{Cell, Deadline, Job, Observer, Outcome, Probe, SystemProbe, Timing, execute};
use crate::{machine, run};

pub use catalogue::Catalogue;
pub use error::LabError;
pub(crate) use linked::hash_over;
use rows::{Scheme, Table};

/// Time limit of a standard run without a budget.
const STANDARD_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Time limit of a full run without a budget.
const FULL_LIMIT: Duration = Duration::from_secs(150 * 60);

/// What can be measured: everything that the rest of the program knows of it. Those that there are stand in
/// [`crate::catalogue`].
#[derive(Debug)]
pub struct Workload {
    /// The name on the command line and in result files.
    pub name: &'static str,
    /// What it measures, in a few words.
    pub summary: &'static str,
    /// Names of all peers that it knows.
    pub peers: &'static [&'static str],
    /// Names of all programs that it looks for, of peers and of what stands beside them.
    pub programs: &'static [&'static str],
    /// True if it can also measure a GPU.
    pub gpu: bool,
    /// True if it can measure user-supplied programs.
    pub guests: bool,
    /// Runs by its own name only: a run of all leaves it out.
    pub alone: bool,
    /// What its figures cannot show, in sentences.
    pub limits: &'static [&'static str],
    /// Finds the subjects, makes the cells, fits the plan.
    pub prepare: fn(&Request) -> Result<Prepared, LabError>,
    /// How its figures are read.
    pub lens: &'static Lens,
}

impl PartialEq for Workload {
    /// A name stands for one workload.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Workload {}

/// What peers to measure beside our engine.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Peers {
    /// Those that are there.
    #[default]
    Auto,
    /// None.
    None,
    /// These, and it is an error if one is not there. Names are those of [`Catalogue::peers`].
    Named(Vec<String>),
}

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// How long and how often.
    pub profile: Profile,
    /// Beside our engine.
    pub peers: Peers,
    /// User-supplied programs, each with a name of its own, for workloads that can measure them. It is an error
    /// if one cannot take part.
    pub guests: Vec<Guest>,
    /// Pairs of programs, for the same workloads. It is an error if one cannot take part.
    pub pairs: Vec<Pair>,
    /// Suites to measure; all if empty.
    pub suites: Vec<Suite>,
    /// Time limit for the whole run; the workload's own for the profile if absent.
    pub budget: Option<Duration>,
    /// Windows of a published measurement in place of the profile's, and without a time limit: the workload `transports` only.
    pub preset: Option<Preset>,
    /// Run all rounds of the plan, even if the time limit is over: for tests on machines that are busy.
    pub overtime: bool,
    /// Stacks to measure, of [`crate::route::Stack`]; all if empty.
    pub stacks: Vec<Stack>,
    /// The link that is emulated between the ends of what is measured, for the workloads of [`crate::catalogue::OVER_LINKS`].
    pub link: Option<Link>,
    /// Which cases to measure, of those that the profile has; all if absent. With it, a quick run of streams has all cases
    /// to choose from.
    pub cases: Option<fn(&Case) -> bool>,
    /// With a GPU beside this machine's processor: the workloads `packets` and `bip324` only.
    pub gpu: bool,
    /// Instead of all else, packets over so many connections, by sockets: the workload `bip324` only. Over a link at most
    /// [`crate::bip324::MOST_OVER_LINK`].
    pub sockets: Vec<usize>,
    /// The CPUs that the threads of a case stay on: the workload `bip324` only, over sockets and of a node.
    pub pin: Option<crate::pin::Places>,
    /// What of `packets` to measure on the GPU, of [`crate::packets::MODES`]; all if empty.
    pub gpu_modes: Vec<String>,
    /// The file that keeps what packets cost on the GPU and on the processor; measured every time if absent.
    pub costs: Option<PathBuf>,
    /// The other of two hosts, where servers and sink run: for the workload `transports` only.
    pub remote: Option<Arc<remote::Link>>,
    /// The program `sealway`, for workloads that run it as a process of its own.
    pub program: Option<PathBuf>,
    /// Seed for the order of visits; drawn if absent.
    pub seed: Option<u64>,
    /// The command line, for the result file.
    pub command: Vec<String>,
}

impl Request {
    /// The suites, none left out unless the caller chose.
    pub(crate) fn suites(&self) -> &[Suite] {
        if self.suites.is_empty() {
            &Suite::ALL
        } else {
            &self.suites
        }
    }

    /// Whether a case was asked for.
    pub(crate) fn wants(&self, case: &Case) -> bool {
        self.cases.is_none_or(|wanted| wanted(case))
    }

    /// The link with the seed of its losses.
    pub(crate) fn over(&self) -> Option<Over> {
        let seed = self.seed.unwrap_or_default();
        self.link.map(|link| Over { link, seed })
    }

    /// The time limit of one workload.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.budget.or(match self.profile {
            Profile::Quick => self.profile.limit(),
            Profile::Standard => Some(STANDARD_LIMIT),
            Profile::Full => Some(FULL_LIMIT),
        })
    }

    /// The request for one of several workloads: its share of the time, and those of the peers named that it knows.
    fn share(&self, workload: &Workload, of: &[&Workload]) -> Request {
        let mut share = self.clone();
        share.budget = self
            .budget
            .map(|budget| budget / u32::try_from(of.len()).unwrap_or(u32::MAX).max(1));
        share.peers = self.peers_of(workload, of);
        share
    }

    /// The peers for one of several workloads: of those named, the ones that it knows and those that nobody knows.
    pub(crate) fn peers_of(&self, workload: &Workload, of: &[&Workload]) -> Peers {
        let Peers::Named(names) = &self.peers else {
            return self.peers.clone();
        };
        let elsewhere = |name: &String| {
            of.iter().any(|other| other.peers.contains(&name.as_str())) && !workload.peers.contains(&name.as_str())
        };
        Peers::Named(names.iter().filter(|name| !elsewhere(name)).cloned().collect())
    }
}

/// A workload that is ready to run.
pub struct Prepared {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) plan: Plan,
    pub(crate) scheme: Scheme,
    /// What is known before the first window and belongs to no subject.
    pub(crate) warnings: Vec<Warning>,
    /// What follows from the rows.
    pub(crate) recommend: fn(&[ResultRow]) -> Vec<Recommendation>,
}

/// Measures one workload, or several one after the other into one result.
///
/// The observer gets the plan before the first window of each workload, and a valid partial result after every round. When
/// it asks to stop, the result holds what is known by then, with `complete: false`. Of several workloads, one that has
/// nothing of what was asked for (another suite's, say) is left out.
///
/// # Errors
/// [`LabError`] when nothing could be measured. A subject that fails or gives wrong data is no error here: it is left out,
/// and a warning with the code `cell-failed` or `cell-wrong` says so.
pub fn run(workloads: &[&Workload], request: &Request, observer: &mut dyn Observer) -> Result<RunResult, LabError> {
    let share = |workload: &&'_ Workload| request.share(workload, workloads);
    let parts: Vec<Part<'_>> = workloads.iter().map(|workload| (*workload, share(workload))).collect();
    run_parts(&parts, request, observer)
}

/// A workload with what is asked of it.
pub(crate) type Part<'a> = (&'a Workload, Request);

/// Measures several workloads one after the other into one result, each as its own request says; profile, seed, command and
/// overtime are those of the request for all.
///
/// # Errors
/// As [`run`]; a part that has nothing of what was asked for, no device or too little time is left out where another has
/// something.
pub(crate) fn run_parts(
    parts: &[Part<'_>],
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<RunResult, LabError> {
    let seed = match request.seed {
        Some(seed) => seed,
        None => run::seed().map_err(LabError::Entropy)?,
    };
    // What is wrong with one of them is said before anything is measured.
    routes::guest_engines(request)?;
    let mut probe = SystemProbe::start();
    let mut result = RunResult {
        schema: SCHEMA,
        run: run::run_id().map_err(LabError::Entropy)?,
        started: run::rfc3339(SystemTime::now()),
        sealway: run::version(),
        profile: request.profile.to_string(),
        seed: seed.to_string(),
        command: request.command.clone(),
        machine: this_machine(),
        responder: request.remote.as_deref().map(|link| link.responder().clone()),
        ..RunResult::default()
    };
    result.warnings = machine::warnings(&result.machine, &clock::examine(), run::cpus());
    if let Some(link) = &request.link {
        linked::check(link, observer, &mut result)?;
    }
    result.warnings.extend(unknown_features());
    let (mut nothing, mut short) = (None, None);
    for (workload, share) in parts {
        let began = probe.now();
        // Every random choice of the run comes from one seed.
        let share = &Request {
            seed: Some(seed),
            ..share.clone()
        };
        let prepared = match (workload.prepare)(share) {
            Ok(prepared) => prepared,
            Err(error @ (LabError::Plan(PlanError::NoCells) | LabError::NoDevice { .. })) => {
                nothing = Some(error);
                continue;
            }
            // What others measure, before or after it, is not lost for it.
            Err(LabError::Plan(error @ PlanError::LimitTooShort { .. })) => {
                let text = format!("{} is left out: {error}.", workload.name);
                result.warnings.push(WarningCode::CasesDropped.warn("", &text));
                short.get_or_insert(LabError::Plan(error));
                continue;
            }
            Err(error) => return Err(error),
        };
        let until = prepared.plan.limit.filter(|_| !request.overtime);
        let deadline = until.map(|limit| Deadline {
            at: began + limit.as_secs_f64(),
            shortest: request.profile.shortest_window(),
        });
        let profile = (request.profile, seed);
        let interrupted = measure(prepared, profile, (began, deadline), &mut probe, observer, &mut result)?;
        if interrupted {
            result.plan.taken_s = probe.now();
            return Ok(result);
        }
    }
    match short.or(nothing) {
        Some(error) if result.plan.cells == 0 => Err(error),
        _ => {
            result.plan.taken_s = probe.now();
            result.complete = true;
            Ok(result)
        }
    }
}

/// Runs a workload, which was begun then and is to be over at the deadline, into a result that may have others already; true if
/// it was interrupted.
fn measure(
    prepared: Prepared,
    (profile, seed): (Profile, u64),
    (began, deadline): (f64, Option<Deadline>),
    probe: &mut SystemProbe,
    observer: &mut dyn Observer,
    result: &mut RunResult,
) -> Result<bool, LabError> {
    let Prepared {
        subjects,
        mut cells,
        plan,
        scheme,
        warnings,
        recommend,
    } = prepared;
    result.warnings.extend(warnings);
    result
        .warnings
        .extend(standing_warnings(&plan, &subjects, &result.warnings));
    for subject in subjects {
        if !result.subjects.iter().any(|known| known.name == subject.name) {
            result.subjects.push(subject);
        }
    }
    let mut facts = plan.facts();
    // Programs have been asked for their versions, and sums made of their files.
    let expected = facts.expected_s + probe.now() - began;
    facts.expected_s = plan.limit.map_or(expected, |limit| expected.min(limit.as_secs_f64()));
    observer.planned(&facts);
    result.plan = joined(&result.plan, facts);

    let workload = scheme.name;
    let rows = Table::new(&cells, scheme, profile);
    // An extra round would break the promise of a quick run to be over in a minute.
    let extra_rounds = if profile == Profile::Quick {
        0
    } else {
        run::MAX_EXTRA_ROUNDS
    };
    let schedule = plan.schedule(seed);
    let job = Job {
        workload,
        schedule: &schedule,
        timing: Timing {
            warmup: plan.warmup,
            window: plan.window,
            extra_rounds,
        },
        visit: plan.visit,
        deadline,
    };
    let base = result.clone();
    let fill = |outcome: &Outcome| {
        let mut result = base.clone();
        result.ended = run::rfc3339(SystemTime::now());
        let rows = rows.rows(outcome);
        let mut advice = recommend(&rows);
        for index in advice.iter_mut().flat_map(|advice| &mut advice.because) {
            *index += base.results.len();
        }
        result.recommendation.extend(advice);
        result.warnings.extend(unauthenticated(&rows));
        result.results.extend(rows);
        let before = u32::try_from(base.windows.len()).unwrap_or(u32::MAX);
        result.windows.extend(outcome.windows.iter().cloned().map(|mut window| {
            window.order = window.order.saturating_add(before);
            window
        }));
        result.warnings.extend(outcome.warnings());
        result
    };
    let outcome =
        execute(&mut cells, &job, probe, observer, &mut |outcome| fill(outcome)).map_err(LabError::Schedule)?;
    *result = fill(&outcome);
    Ok(outcome.interrupted)
}

/// The plan of two workloads one after the other: sums of cells and time, the most rounds, the shortest window.
fn joined(before: &PlanFacts, next: PlanFacts) -> PlanFacts {
    if before.cells == 0 {
        return next;
    }
    PlanFacts {
        rounds: before.rounds.max(next.rounds),
        window_s: before.window_s.min(next.window_s),
        warmup_s: before.warmup_s.min(next.warmup_s),
        cells: before.cells.saturating_add(next.cells),
        expected_s: before.expected_s + next.expected_s,
        taken_s: before.taken_s + next.taken_s,
    }
}

/// Facts of this machine, with the features our engine can use.
pub(crate) fn this_machine() -> Machine {
    let mut machine = machine::capture(std::path::Path::new("/"));
    machine.flags = Cpu::get()
        .usable()
        .iter()
        .map(|feature| feature.name().to_owned())
        .collect();
    machine
}

/// What is known before the first window of a workload, without what was said of an earlier one.
fn standing_warnings(plan: &Plan, subjects: &[Subject], said: &[Warning]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for subject in subjects.iter().filter(|subject| !subject.error.is_empty()) {
        let text = format!("{} is {}.", subject.name, subject.error);
        warnings.push(WarningCode::CellUnavailable.warn(&subject.name, &text));
    }
    if plan.cases_dropped > 0 {
        let text = format!("The time limit left no room for {} cases.", plan.cases_dropped);
        warnings.push(WarningCode::CasesDropped.warn("", &text));
    }
    warnings.retain(|warning| !said.contains(warning));
    warnings
}

/// A warning for each subject with a stack that it does not authenticate.
fn unauthenticated(rows: &[ResultRow]) -> Vec<Warning> {
    let code = WarningCode::Unauthenticated;
    let mut warnings: Vec<Warning> = Vec::new();
    for row in rows.iter().filter(|row| row.has(code.code())) {
        let place = format!("{} {}", row.subject, row.case);
        if !warnings.iter().any(|known| known.place == place) {
            let text = format!("{} let one bit pass that was flipped on the wire.", row.subject);
            warnings.push(code.warn(&place, &text));
        }
    }
    warnings
}

/// Words of the variable that hides features which name none.
fn unknown_features() -> impl Iterator<Item = Warning> {
    Cpu::get().unknown_words().iter().map(|word| {
        let text = format!(
            "{} names \"{word}\", which is no feature.",
            sealway_aead::cpu::DISABLE_VARIABLE
        );
        WarningCode::UnknownFeature.warn("", &text)
    })
}

/// The hash of a text that states everything which figures depend on.
pub(crate) fn hash(definition: &str) -> String {
    hex(&Sha256::digest(definition.as_bytes())[..8])
}
