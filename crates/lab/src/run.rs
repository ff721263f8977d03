//! The runner: visits every cell of a plan in rounds and watches the machine while it does.
//!
//! [`execute`] takes the visiting order and a [`Probe`] from outside: it draws nothing at random and reads no clock of
//! its own, so a test can script both. Turning windows into rows is the caller's work.

mod execute;
mod ident;
pub(crate) mod layout;
mod marks;
mod outcome;
mod pace;
mod probe;
mod time;

use std::fmt;
use std::time::Duration;

use crate::measure::NoiseSample;
use crate::result::{CanarySample, Case, EmulatedLink, PlanFacts, RunResult};
use crate::stats::SplitMix64;
use crate::stats::latency::Tail;

pub use execute::{Job, ScheduleError, execute};
pub use ident::{NoEntropy, cpus, run_id, seed, version};
pub use marks::{Mark, judge};
pub use outcome::{Fault, Outcome};
pub use pace::{Deadline, MAX_EXTRA_ROUNDS, Timing};
pub use probe::SystemProbe;
pub use time::rfc3339;

/// A case with a subject, and what is timed of them.
pub struct Cell {
    /// Parameters of the case.
    pub case: Case,
    /// Name of the subject.
    pub subject: String,
    timed: Box<dyn Timed>,
    random: SplitMix64,
}

impl Cell {
    /// A cell.
    pub fn new(case: Case, subject: &str, timed: impl Timed + 'static) -> Cell {
        Cell {
            case,
            subject: subject.to_owned(),
            timed: Box::new(timed),
            random: layout::random(),
        }
    }
}

impl Timed for Cell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.timed.prepare()
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let timed = &mut self.timed;
        layout::somewhere(&mut self.random, &mut || timed.window(warmup, window))
    }
}

/// Something that can be timed.
///
/// The runner calls [`Timed::prepare`] once before the first round, then [`Timed::window`] once a round.
pub trait Timed {
    /// Checks the subject against the oracle on data of this case, and allocates what the windows need.
    ///
    /// # Errors
    /// [`CellError`] when the subject gives a wrong answer or cannot run; the cell is then left out with that error.
    fn prepare(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    /// Warms up for `warmup`, then works for about `window` and reports what was done in the timed part only.
    ///
    /// Every output of the timed part is verified after the clock has stopped.
    ///
    /// # Errors
    /// [`CellError`] when an output was wrong or an operation failed: the cell stops, its figures are not used.
    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError>;
}

/// What one timed window did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// Operations done.
    pub ops: u64,
    /// Payload bytes of those operations.
    pub bytes: u64,
    /// Wall time of the timed part, seconds.
    pub wall_s: f64,
    /// CPU time that the measured work took in the timed part, seconds.
    pub cpu_s: f64,
    /// Further figures of the window by the name of their metric, such as a percentile; most workloads have none.
    pub figures: Vec<(&'static str, f64)>,
    /// Latencies of the window by name, for percentiles of all windows together.
    pub(crate) tails: Vec<(&'static str, Tail)>,
}

/// Why a cell gave no figure.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CellError {
    /// An output differed from the oracle's: the subject or the lab is wrong.
    Wrong {
        /// What differed, with the sizes and the first position.
        what: String,
    },
    /// The subject reported a failure.
    Failed {
        /// The subject's own words.
        what: String,
    },
    /// The subject is not there or cannot do this case.
    Unavailable {
        /// Why, and what to install.
        what: String,
    },
}

impl CellError {
    /// [`CellError::Wrong`] in these words.
    pub fn wrong(what: impl fmt::Display) -> CellError {
        CellError::Wrong { what: what.to_string() }
    }

    /// [`CellError::Failed`] in these words.
    pub fn failed(what: impl fmt::Display) -> CellError {
        CellError::Failed { what: what.to_string() }
    }

    /// [`CellError::Unavailable`] in these words.
    pub fn unavailable(what: impl fmt::Display) -> CellError {
        CellError::Unavailable { what: what.to_string() }
    }
}

impl fmt::Display for CellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CellError::Wrong { what } => write!(f, "wrong data: {what}"),
            CellError::Failed { what } => write!(f, "failed: {what}"),
            CellError::Unavailable { what } => write!(f, "not available: {what}"),
        }
    }
}

impl std::error::Error for CellError {}

/// The runner's view of time and of the machine. [`SystemProbe`] is the real one.
///
/// All calls come from the measuring thread, outside of timed parts.
pub trait Probe {
    /// Wall time since the start of the run, seconds; never falls.
    fn now(&mut self) -> f64;

    /// Runs the canary once, about 5 ms.
    fn canary(&mut self) -> CanarySample;

    /// Reads the noise counters of the machine.
    fn noise(&mut self) -> NoiseSample;
}

/// Where a run of a workload is: the check of a cell, or the visit that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step<'a> {
    /// Name of the workload.
    pub workload: &'a str,
    /// Parameters of the case.
    pub case: &'a Case,
    /// Name of the subject.
    pub subject: &'a str,
    /// The round, from 1; absent for the check before the first.
    pub round: Option<u32>,
    /// Rounds known so far, extra ones included.
    pub rounds: u32,
    /// Visits behind.
    pub done: u32,
    /// Visits known so far, those behind included.
    pub total: u32,
    /// Warm-up and window in seconds; 0 for a check.
    pub timed_s: f64,
    /// Seconds since the first check.
    pub elapsed_s: f64,
    /// Seconds until the last visit known is over: in the first round as planned, then as the last round took.
    pub left_s: f64,
}

/// What the lab tells while it works, and the way to stop it.
pub trait Observer {
    /// The emulated link, as it was asked for and as it is, before any plan.
    fn linked(&mut self, _link: &EmulatedLink) {}

    /// The plan, before the first window.
    fn planned(&mut self, _plan: &PlanFacts) {}

    /// About to check a cell, or to visit it: nothing is timed until this returns.
    fn progress(&mut self, _step: &Step<'_>) {}

    /// A round is complete; `partial` is a valid result file with `complete: false`.
    fn round_done(&mut self, _partial: &RunResult) {}

    /// True once the user asked to stop: the current window is finished, then the run ends with what is known.
    fn stopped(&self) -> bool {
        false
    }
}
