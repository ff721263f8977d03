//! Can this machine be measured? An A/A check and a list of findings, each with advice.
//!
//! The A/A check visits one subject under two names as if they were two. Whatever difference it shows is the lab's own
//! error on this machine.

mod aa;
mod findings;
mod render;

use serde::Serialize;

use crate::machine;
use crate::measure::{ClockFacts, clock};
use crate::result::{Machine, RunResult, SCHEMA};
use crate::run::{Cell, Job, Observer, Outcome, Probe, ScheduleError, Timing, execute};

pub use aa::{AaCheck, AaVerdict, MARGIN, NAMES, ROUNDS, judge, schedule};
pub use findings::{Finding, Peer, State, examine as findings, find_peers};

/// The answer to the question.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Figures of this machine can be published with its description.
    Yes,
    /// Ratios can be believed; read the findings before absolute figures.
    WithCare,
    /// Something must be changed first.
    No,
}

/// Everything the doctor found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Can this machine be measured?
    pub verdict: Verdict,
    /// One subject against itself.
    pub a_a: AaCheck,
    /// Findings, in a fixed order.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Puts check and findings together: one `bad` or a failed check is a no, one that needs attention asks for care.
    pub fn new(a_a: AaCheck, findings: Vec<Finding>) -> Self {
        let any = |state: State| findings.iter().any(|finding| finding.state == state);
        let verdict = if a_a.verdict == AaVerdict::Error || any(State::Bad) {
            Verdict::No
        } else if a_a.verdict == AaVerdict::Unknown || any(State::Attention) {
            Verdict::WithCare
        } else {
            Verdict::Yes
        };
        Self { verdict, a_a, findings }
    }

    /// Text for people: ASCII, at most 80 columns, ends with a line break.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

/// What is known of the machine before the check.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Facts about the machine.
    pub machine: Machine,
    /// Cost and step of the clock.
    pub clock: ClockFacts,
    /// CPUs usable at once.
    pub cpus: u32,
    /// Programs the lab can compare with or use as a second opinion.
    pub peers: Vec<Peer>,
}

impl Surroundings {
    /// Reads this machine, and looks for these programs. Starts none.
    pub fn of_this_machine(programs: &[&'static str]) -> Self {
        Self {
            machine: machine::capture(std::path::Path::new("/")),
            clock: clock::examine(),
            cpus: crate::run::cpus(),
            peers: find_peers(programs, std::env::var_os("PATH").as_deref()),
        }
    }
}

/// Runs the A/A check over [`ROUNDS`] rounds and judges it with the surroundings.
///
/// `factory` makes the subject under the given name, each time the same work. Takes about `2 * ROUNDS` visits of this `timing`.
///
/// # Errors
/// [`ScheduleError`] never happens with the fixed schedule and is passed on as it comes.
pub fn examine(
    factory: &mut dyn FnMut(&str) -> Cell,
    timing: Timing,
    surroundings: &Surroundings,
    probe: &mut dyn Probe,
    observer: &mut dyn Observer,
) -> Result<Diagnosis, ScheduleError> {
    let mut cells: Vec<Cell> = NAMES.iter().map(|name| factory(name)).collect();
    let schedule = schedule(ROUNDS);
    let job = Job {
        workload: "doctor",
        schedule: &schedule,
        timing,
        visit: timing.warmup + timing.window,
        deadline: None,
    };
    let mut snapshot = |outcome: &Outcome| partial(surroundings, outcome);
    let outcome = execute(&mut cells, &job, probe, observer, &mut snapshot)?;
    let findings = findings::examine(surroundings, &outcome);
    Ok(Diagnosis::new(aa::of_outcome(&outcome), findings))
}

/// What the observer sees after a round. The doctor keeps no file, so identity and times stay empty.
fn partial(surroundings: &Surroundings, outcome: &Outcome) -> RunResult {
    RunResult {
        schema: SCHEMA,
        sealway: crate::run::version(),
        machine: surroundings.machine.clone(),
        warnings: outcome.warnings(),
        windows: outcome.windows.clone(),
        ..RunResult::default()
    }
}

#[cfg(test)]
#[path = "doctor/tests.rs"]
mod tests;
