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
}

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
}

impl Trend {
    /// Whether the newest run is slower by more than `bound`, a fraction, with its interval apart: than the other runs of its
    /// segment, or than the segment before. `None` as long as there is no other run.
    pub fn slower(&self, bound: f64) -> Option<Slower> {
        let (newest, others) = self.points.split_last()?;
        let segment = self.segments.last()?;
        let own = others.get(segment.first..).unwrap_or_default();
        let before = self.segments.iter().rev().nth(1);
        let own = segments::level(own.iter().map(|point| point.figure)).map(|figure| (figure, own.len()));
        let references = own
            .into_iter()
            .chain(before.map(|segment| (segment.figure, segment.runs)));
        let slower = references.filter_map(|(reference, runs)| {
            let worse = -self.direction.goodness(newest.figure.mid - reference.mid);
            let is_slower = worse > bound.ln_1p() && newest.figure.is_apart_from(&reference);
            is_slower.then(|| Slower {
                by: worse.exp_m1(),
                runs,
            })
        });
        slower.max_by(|a, b| a.by.total_cmp(&b.by))
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
