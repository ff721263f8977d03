//! The loop over rounds and cells.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::measure::{Noise, canary, energy};
use crate::result::{CanarySample, Case, Num, RunResult, Window};
use crate::run::pace::{Deadline, MAX_EXTRA_ROUNDS, Pace, Timing};
use crate::run::{Cell, CellError, Counted, Fault, Mark, Observer, Outcome, Probe, Step, Timed, judge};

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Name of the workload, for the windows.
    pub workload: &'a str,
    /// For each round, the indices of the cells in visiting order.
    pub schedule: &'a [Vec<usize>],
    /// Lengths.
    pub timing: Timing,
    /// What the plan expects a visit to take, with its warm-up and window.
    pub visit: Duration,
    /// When to be over; nothing is cut without it.
    pub deadline: Option<Deadline>,
}

/// The schedule names a cell that does not exist: the caller's mistake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScheduleError {
    /// Round of the entry, from 0.
    pub round: usize,
    /// The index that is too large.
    pub cell: usize,
    /// Number of cells.
    pub cells: usize,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "round {} of the schedule names cell {} of {}",
            self.round, self.cell, self.cells
        )
    }
}

impl std::error::Error for ScheduleError {}

/// Prepares every cell of the schedule, then visits them round after round in the order of the schedule.
///
/// - A cell that gives an error, or counts nothing, is recorded as a fault and not visited again; the others go on.
/// - The canary after a window is also the one before the next; each round begins with a fresh one.
/// - After every full round the observer gets `snapshot(outcome)`, a valid partial result. The caller has announced
///   the plan to the observer before.
/// - With a deadline, windows become shorter when visits take longer than planned, down to the shortest; what does not fit even
///   so is left out: cases that half of the time was not enough to check, then rounds. The first round is run in any case.
/// - When the observer says stop, the current window is finished and the outcome is returned with what is known.
/// - At the end, cases with a round that is marked `spoiled` are visited again in up to `extra_rounds` extra rounds, with
///   all their subjects in the order of the spoiled round. Both versions stay; the one not used is `superseded`.
///
/// # Errors
/// [`ScheduleError`] if the schedule names a cell that does not exist; nothing has run then.
pub fn execute(
    cells: &mut [Cell],
    job: &Job<'_>,
    probe: &mut dyn Probe,
    observer: &mut dyn Observer,
    snapshot: &mut dyn FnMut(&Outcome) -> RunResult,
) -> Result<Outcome, ScheduleError> {
    for (round, visits) in job.schedule.iter().enumerate() {
        if let Some(cell) = visits.iter().copied().find(|cell| *cell >= cells.len()) {
            return Err(ScheduleError {
                round,
                cell,
                cells: cells.len(),
            });
        }
    }
    let began = probe.now();
    let mut run = Run {
        cells,
        job,
        probe,
        observer,
        began,
        done: 0,
        ahead: job.schedule.iter().flatten().copied().collect(),
        pace: Pace::new(job.timing, job.visit, job.deadline),
        outcome: Outcome::default(),
    };
    run.prepare();
    let mut orders: Vec<Vec<usize>> = Vec::new();
    for (round, visits) in job.schedule.iter().enumerate() {
        if run.outcome.interrupted || !run.has_time(round) || !run.round(visits) {
            return Ok(run.outcome);
        }
        orders.push(visits.clone());
        let partial = snapshot(&run.outcome);
        run.observer.round_done(&partial);
    }
    for _ in 0..job.timing.extra_rounds.min(MAX_EXTRA_ROUNDS) {
        let again = run.spoiled();
        if again.is_empty() {
            break;
        }
        let visits = run.extra_visits(&again, &orders);
        let now = run.probe.now();
        if !run.pace.fit(now, visits.len(), visits.len()) {
            break;
        }
        let by = run.outcome.rounds;
        let complete = run.round(&visits);
        run.supersede(&again, by);
        if !complete {
            break;
        }
        orders.push(visits);
        let partial = snapshot(&run.outcome);
        run.observer.round_done(&partial);
    }
    Ok(run.outcome)
}

struct Run<'a> {
    cells: &'a mut [Cell],
    job: &'a Job<'a>,
    probe: &'a mut dyn Probe,
    observer: &'a mut dyn Observer,
    /// When the checks began, by the probe.
    began: f64,
    /// Visits behind us.
    done: usize,
    /// Cells of the visits still to come.
    ahead: VecDeque<usize>,
    pace: Pace,
    outcome: Outcome,
}

impl Run<'_> {
    fn prepare(&mut self) {
        // What the plan has dropped is in no round.
        let planned: BTreeSet<usize> = self.job.schedule.iter().flatten().copied().collect();
        for (checked, &cell) in planned.iter().enumerate() {
            if self.observer.stopped() {
                self.outcome.interrupted = true;
                return;
            }
            // A case that has begun is checked to its end: its subjects stand side by side or not at all.
            let begins = cell
                .checked_sub(1)
                .is_some_and(|before| self.cells[before].case != self.cells[cell].case);
            let now = self.probe.now();
            if begins && self.pace.is_half_up(self.began, now) {
                self.outcome.left_out = planned.range(cell..).copied().collect();
                return;
            }
            // The checks that are left take what those before have taken in the mean.
            let left = (planned.len() - checked) as f64 / checked.max(1) as f64;
            self.tell(cell, None, (now - self.began) * left);
            match self.cells[cell].prepare() {
                Ok(()) => {}
                Err(error) if self.is_of_stopping(&error) => self.outcome.interrupted = true,
                Err(error) => self.fault(cell, None, error),
            }
        }
    }

    fn is_visited(&self, cell: usize) -> bool {
        self.outcome.fault(cell).is_none() && !self.outcome.left_out.contains(&cell)
    }

    /// Whether there is time for a round of the schedule. There is for the first one in any case.
    fn has_time(&mut self, round: usize) -> bool {
        let visits = |round: &Vec<usize>| round.iter().filter(|&&cell| self.is_visited(cell)).count();
        let left: usize = self.job.schedule[round..].iter().map(visits).sum();
        let next = visits(&self.job.schedule[round]);
        let now = self.probe.now();
        let fits = self.pace.fit(now, left, next);
        if !fits && round > 0 {
            self.outcome.out_of_time = true;
        }
        fits || round == 0
    }

    /// Visits cells in order; false when the user or the deadline stopped the run before the last.
    fn round(&mut self, visits: &[usize]) -> bool {
        let round = self.outcome.rounds;
        let began = self.probe.now();
        let mut visited = 0;
        let mut before: Option<CanarySample> = None;
        for &cell in visits {
            if self.observer.stopped() {
                self.outcome.interrupted = true;
                self.mark();
                return false;
            }
            if self.is_visited(cell) {
                let now = self.probe.now();
                // In the first round everything that is measured gets a figure.
                if round > 0 && self.pace.is_up(now) {
                    self.outcome.out_of_time = true;
                    self.mark();
                    return false;
                }
                self.tell(cell, Some(round), 0.0);
                before = self.visit(cell, round, before);
                visited += 1;
            }
            self.done += 1;
            self.ahead.pop_front();
        }
        let took = self.probe.now() - began;
        self.pace.learn(visited, took);
        self.outcome.rounds += 1;
        self.mark();
        true
    }

    /// One window; returns the canary after it.
    fn visit(&mut self, cell: usize, round: u32, before: Option<CanarySample>) -> Option<CanarySample> {
        let before = before.unwrap_or_else(|| self.probe.canary());
        let start = self.probe.noise();
        let t = self.probe.now();
        let timing = self.pace.timing;
        let counted = self.cells[cell]
            .window(timing.warmup, timing.window)
            .and_then(plausible);
        let visit_s = self.probe.now() - t;
        let noise = Noise::between(&start, &self.probe.noise());
        let counted = match counted {
            Ok(counted) => counted,
            Err(error) if self.is_of_stopping(&error) => {
                self.outcome.interrupted = true;
                return None;
            }
            Err(error) => {
                self.fault(cell, Some(round), error);
                return None;
            }
        };
        let after = self.probe.canary();
        let figures = counted.figures.iter().copied();
        let energy = noise
            .energy_j
            .map(|joules| (energy::FIGURE, timed_share(joules, counted.wall_s, visit_s)));
        let order = u32::try_from(self.outcome.windows.len()).unwrap_or(u32::MAX);
        self.outcome.windows.push(Window {
            workload: self.job.workload.to_owned(),
            case: self.cells[cell].case.clone(),
            subject: self.cells[cell].subject.clone(),
            round,
            order,
            t,
            wall_s: counted.wall_s,
            cpu_s: counted.cpu_s,
            bytes: counted.bytes,
            ops: counted.ops,
            figures: figures
                .chain(energy)
                .map(|(name, value)| (name.to_owned(), Num(value)))
                .collect(),
            canary: vec![before, after],
            steal: noise.steal.unwrap_or(0.0),
            preempted: noise.preemptions.unwrap_or(0),
            marks: Vec::new(),
        });
        self.outcome.cells.push(cell);
        self.outcome.tails.push(counted.tails);
        self.outcome.noise.push(noise);
        self.outcome.visits_s.push(visit_s);
        Some(after)
    }

    /// Once a run is asked to stop, nobody waits for programs: what fails then says nothing of them. Wrong data does.
    fn is_of_stopping(&self, error: &CellError) -> bool {
        self.observer.stopped() && !matches!(error, CellError::Wrong { .. })
    }

    /// Marks every window anew: the median of the canaries has moved.
    fn mark(&mut self) {
        let outcome = &mut self.outcome;
        let median = canary::median(canary::around(&outcome.windows));
        for ((window, noise), visit_s) in outcome.windows.iter_mut().zip(&outcome.noise).zip(&outcome.visits_s) {
            let mut marks = judge(&window.canary, median, noise, *visit_s);
            if window.has(Mark::Superseded.code()) {
                marks.push(Mark::Superseded);
            }
            window.marks = marks.iter().map(Mark::to_string).collect();
        }
    }

    /// For each case with a spoiled round that counts, the first such round. Cases without a living cell are left out.
    fn spoiled(&self) -> Vec<(Case, u32)> {
        let mut found: Vec<(Case, u32)> = Vec::new();
        for (window, cell) in self.outcome.windows.iter().zip(&self.outcome.cells) {
            let counts = window.has(Mark::Spoiled.code()) && !window.has(Mark::Superseded.code());
            let alive = self.is_visited(*cell);
            if counts && alive && !found.iter().any(|(case, _)| *case == window.case) {
                found.push((window.case.clone(), window.round));
            }
        }
        found
    }

    /// The visits of an extra round: the cases one after the other, each in the order of its spoiled round.
    fn extra_visits(&mut self, again: &[(Case, u32)], orders: &[Vec<usize>]) -> Vec<usize> {
        let mut visits = Vec::new();
        for (case, round) in again {
            let order = usize::try_from(*round).ok().and_then(|round| orders.get(round));
            let of_case = order
                .into_iter()
                .flatten()
                .copied()
                .filter(|cell| self.cells[*cell].case == *case && self.outcome.fault(*cell).is_none());
            visits.extend(of_case);
        }
        self.ahead.extend(&visits);
        visits
    }

    /// Takes the windows of extra round `by` in place of the spoiled ones, case by case. Where the extra round was cut
    /// short and lacks a subject of the case, the spoiled version keeps counting and the new windows do not.
    fn supersede(&mut self, again: &[(Case, u32)], by: u32) {
        for (case, spoiled) in again {
            let cells_in = |round: u32| -> Vec<usize> {
                let windows = self.outcome.windows.iter().zip(&self.outcome.cells);
                windows
                    .filter(|(w, _)| w.round == round && w.case == *case)
                    .map(|(_, cell)| *cell)
                    .collect()
            };
            let (old, new) = (cells_in(*spoiled), cells_in(by));
            let whole = !new.is_empty() && old.iter().all(|c| new.contains(c) || self.outcome.fault(*c).is_some());
            let loser = if whole { *spoiled } else { by };
            let windows = self.outcome.windows.iter_mut();
            for window in windows.filter(|w| w.round == loser && w.case == *case) {
                window.marks.push(Mark::Superseded.to_string());
            }
            self.outcome.repeats += usize::from(whole);
        }
    }

    fn fault(&mut self, cell: usize, round: Option<u32>, error: CellError) {
        let (subject, case) = (self.cells[cell].subject.clone(), self.cells[cell].case.clone());
        self.outcome.faults.push(Fault {
            cell,
            subject,
            case,
            round,
            error,
        });
    }

    /// Tells the observer what begins, with the seconds that checks will take.
    fn tell(&mut self, cell: usize, round: Option<u32>, checks_s: f64) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        // A cell with a fault is passed over in every round that is left.
        let visits = self.ahead.iter().filter(|&&cell| self.is_visited(cell)).count();
        let now = self.probe.now();
        let step = Step {
            workload: self.job.workload,
            case: &self.cells[cell].case,
            subject: &self.cells[cell].subject,
            round: round.map(|round| round.saturating_add(1)),
            rounds: count(self.job.schedule.len()).max(round.map_or(0, |round| round.saturating_add(1))),
            done: count(self.done),
            total: count(self.done + self.ahead.len()),
            timed_s: if round.is_some() { self.pace.timed() } else { 0.0 },
            elapsed_s: now - self.began,
            left_s: checks_s + self.pace.expects(visits as f64),
        };
        self.observer.progress(&step);
    }
}

/// What the timed part has of a visit's energy, by its time: in warm-up and checks a package draws about as much.
fn timed_share(joules: f64, timed_s: f64, visit_s: f64) -> f64 {
    if visit_s > timed_s {
        joules * timed_s / visit_s
    } else {
        joules
    }
}

/// A window that did nothing or took no time is a failure, not an infinitely fast or slow subject.
fn plausible(counted: Counted) -> Result<Counted, CellError> {
    let times = counted.wall_s.is_finite() && counted.wall_s > 0.0 && counted.cpu_s.is_finite() && counted.cpu_s >= 0.0;
    if times && counted.ops > 0 {
        return Ok(counted);
    }
    let what = format!(
        "the window counted {} operations in {} s of wall and {} s of CPU time",
        counted.ops, counted.wall_s, counted.cpu_s
    );
    Err(CellError::Failed { what })
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
