//! One figure over many kept runs: its values with their intervals, where it changed, and whether the newest is slower.
//!
//! Each run gives the figure as [`crate::compare`] takes it: over that of a control in the same rounds, a peer of the same version
//! or else the speed of the processor, with the interval of its rounds. Runs that follow each other and do not differ make a
//! segment. A segment is to its runs what a figure is to its rounds: it has the median of their values, and from the lower and the
//! upper ends of their intervals an interval of its own. Two segments differ if these are apart and the values differ by more than
//! the threshold of a comparison.

mod collect;
mod error;
mod page;
mod render;
mod segments;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use crate::result::{Case, Num};
use crate::stats::{Better, Verdict};
use crate::store::Label;

pub use collect::{Collector, Question};
pub use error::TrendError;

use segments::Figure;

/// The figure of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// By which number the run is kept.
    pub id: i64,
    /// Identifier of the run.
    pub run: String,
    /// Its start, RFC 3339, UTC.
    pub started: String,
    /// What else is known of it.
    #[serde(flatten)]
    pub label: Label,
    /// Value, in the unit of the trend.
    pub value: Num,
    /// Lower end of its interval.
    pub low: Num,
    /// Upper end of its interval.
    pub high: Num,
    /// The same three as logarithms.
    #[serde(skip)]
    figure: Figure,
}

/// Runs in a row that do not differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Place of its first run among the points, from 0.
    pub first: usize,
    /// Number of its runs.
    pub runs: usize,
    /// Median of their values.
    pub value: Num,
    /// Lower end of its interval.
    pub low: Num,
    /// Upper end of its interval.
    pub high: Num,
    /// Its value over that of the segment before; absent in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Num>,
    /// `faster` or `slower` than the segment before; absent in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(skip)]
    figure: Figure,
}

/// By how much the newest run is slower, and than what.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slower {
    /// By which fraction: 0.05 if it takes 5 % longer, or if what it is slower than has a rate that is higher by 5 %.
    pub by: f64,
    /// Number of the runs that it is slower than.
    pub runs: usize,
    /// Whether the run before it is slower than these, too.
    pub confirmed: bool,
}

/// Why it is not known whether the newest run is slower.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Undecided {
    /// It has no point.
    LeftOut,
    /// There is no run before it.
    Alone,
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Undecided::LeftOut => "the newest run is left out: nothing is known of it",
            Undecided::Alone => "there is no run before the newest to compare it with",
        })
    }
}

impl std::error::Error for Undecided {}

/// Runs that have no point, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LeftOut {
    /// Number of runs.
    pub runs: usize,
    /// What is different about them.
    pub why: String,
}

/// A figure over time. Serialises as the answer of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Workload.
    pub workload: String,
    /// Subject.
    pub subject: String,
    /// Metric.
    pub metric: String,
    /// Parameters of the case.
    pub case: Case,
    /// Unit of the values; `1` for ratios to a peer.
    pub unit: String,
    /// `higher` or `lower`.
    pub better: String,
    /// Over what the figure is taken: a peer with its version, `canary` for the speed of the processor, or nothing.
    pub control: String,
    /// Model of the processor.
    pub cpu: String,
    /// Profile of the runs.
    pub profile: String,
    /// Change, as a fraction, from which two segments differ.
    pub threshold: f64,
    /// One entry a run, oldest first.
    pub points: Vec<Point>,
    /// Runs in a row that do not differ, oldest first.
    pub segments: Vec<Segment>,
    /// Runs that cannot be compared with the newest.
    pub left_out: Vec<LeftOut>,
    #[serde(skip)]
    direction: Better,
    /// Least change, as a fraction, that runs like these can show; 0 if any bound is as good as another.
    #[serde(skip)]
    least: f64,
    /// Whether the newest run that was taken has a point.
    #[serde(skip)]
    has_newest: bool,
}

impl Trend {
    /// Whether the newest run is slower by more than `bound`, a fraction, and outside the range of the intervals of the other runs
    /// of its segment, or of those of the segment before. A bound below [`Trend::threshold`] counts as that one where runs have few
    /// rounds, or where it follows from how much neighbours differ.
    ///
    /// # Errors
    /// [`Undecided`] if the newest run has no point, or no run to be compared with.
    pub fn slower(&self, bound: f64) -> Result<Option<Slower>, Undecided> {
        let [before @ .., newest] = self.points.as_slice() else {
            return Err(Undecided::LeftOut);
        };
        if !self.has_newest {
            return Err(Undecided::LeftOut);
        }
        let Some((last, earlier)) = before.split_last() else {
            return Err(Undecided::Alone);
        };
        let bound = bound.max(self.least);
        let found = match self.all_slower(&[newest, last], earlier.len(), bound) {
            Some((by, runs)) => Some((by, runs, true)),
            None => self
                .all_slower(&[newest], before.len(), bound)
                .map(|(by, runs)| (by, runs, false)),
        };
        Ok(found.map(|(by, runs, confirmed)| Slower { by, runs, confirmed }))
    }

    /// By how much the first of `points` is slower, and than how many runs, if all are slower than the same segment: the last or the
    /// one before, as far as their runs are among the first `end`.
    fn all_slower(&self, points: &[&Point], end: usize, bound: f64) -> Option<(f64, usize)> {
        let references = self.segments.iter().rev().take(2).filter_map(|segment| {
            let runs = self.points.get(segment.first..end.min(segment.first + segment.runs))?;
            Some((segments::range(runs.iter().map(|point| point.figure))?, runs.len()))
        });
        let slower = references.filter_map(|(reference, runs)| {
            let worse = |point: &Point| -self.direction.goodness(point.figure.mid - reference.mid);
            let is_slower = |point: &&Point| worse(point) > bound.ln_1p() && point.figure.is_apart_from(&reference);
            let first = points.first().filter(|_| points.iter().all(is_slower))?;
            Some((worse(first).exp_m1(), runs))
        });
        slower.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The trend as plain ASCII text, no line longer than 80 characters, whatever the results contain.
    pub fn render(&self) -> String {
        render::render(self)
    }

    /// The trend as a page that asks no network for anything.
    pub fn page(&self) -> String {
        page::render(self)
    }
}
