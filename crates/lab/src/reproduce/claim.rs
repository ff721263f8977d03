//! A published claim: a ratio of two cells, and what the rows of a run say of it.

use super::verdict::{Verdict, tolerance};
use super::{marks_of_its_own, row_ratio, sound};
use crate::lens::rank::{barred, rankable};
use crate::measure::WarningCode;
use crate::result::{self, Case, CaseValue, Ratio, Reading, ResultRow, RunResult};
use crate::stats::Better;

/// What is said of a ratio of figures that no rounds pair.
const APART: &str = "the figures are not of the same rounds, so that there is a range and no interval";

/// A value that a case must have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    Text(&'static str),
    Int(i64),
}

/// A cell, without its subject: the one case of a workload that has these parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) label: &'static str,
    pub(super) workload: &'static str,
    pub(super) case: &'static [(&'static str, Want)],
    pub(super) metric: &'static str,
}

/// A cell: its label, workload and metric, and the parameters of its case.
macro_rules! figure {
    ($label:expr, $workload:expr, $metric:expr, $($name:literal: $want:expr),+) => {
        Figure { label: $label, workload: $workload, case: &[$(($name, $want)),+], metric: $metric }
    };
}
pub(super) use figure;

impl Figure {
    /// Whether it is this case of its workload.
    pub(super) fn is(&self, case: &Case) -> bool {
        self.case.iter().all(|(name, want)| match (case.0.get(*name), want) {
            (Some(CaseValue::Text(value)), Want::Text(wanted)) => value == wanted,
            (Some(CaseValue::Int(value)), Want::Int(wanted)) => value == wanted,
            _ => false,
        })
    }

    /// Its rows for a metric.
    pub(super) fn rows<'r>(&self, run: &'r RunResult, metric: &str) -> impl Iterator<Item = &'r ResultRow> {
        let mine = move |row: &&ResultRow| row.workload == self.workload && row.metric == metric && self.is(&row.case);
        run.results.iter().filter(mine)
    }
}

/// Who is measured in both cells.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// Each subject that has both, against itself.
    Each,
    /// One subject against another.
    Between(&'static str, &'static str),
}

impl Who {
    /// Whether one subject is held against another.
    fn is_apart(self) -> bool {
        matches!(self, Who::Between(one, other) if one != other)
    }

    /// Whose reading it is; `each` where everybody is measured against itself.
    fn named(self, each: &str) -> String {
        match self {
            Who::Each => each.to_owned(),
            Who::Between(one, other) if one == other => one.to_owned(),
            Who::Between(one, other) => format!("{one} / {other}"),
        }
    }
}

/// Programs that a recipe compares with, and how each is got.
pub(super) type Programs = [(&'static str, &'static str)];

/// What was claimed.
#[derive(Debug)]
pub(super) struct Claim {
    /// In words of ours.
    pub(super) text: &'static str,
    /// Place of its source in the recipe, from 1.
    pub(super) source: u32,
    /// Two published figures, of which the claim is the ratio.
    pub(super) published: (f64, f64),
    pub(super) over: Figure,
    pub(super) under: Figure,
    pub(super) who: Who,
    /// Further metrics of both cells that are judged by the same ratio, such as cost beside rate; turned round where less
    /// of them is better and the claim is about more.
    pub(super) also: &'static [&'static str],
    pub(super) note: &'static str,
}

/// Claims of a recipe, all with these further metrics: the source, the text, and both cells with the published figure of each,
/// `of` whom they are where one subject is meant; a note if there is one.
macro_rules! claims {
    (@who) => { Who::Each };
    (@who $one:tt $other:tt) => { Who::Between($one, $other) };
    (also $also:expr; $($source:literal $text:literal: $over:ident $(of $one:tt)? $above:literal
        / $under:ident $(of $other:tt)? $below:literal $(, $note:literal)?;)+) => {
        &[$(Claim {
            text: $text,
            source: $source,
            published: ($above, $below),
            over: $over,
            under: $under,
            who: claims!(@who $($one)? $($other)?),
            also: &$also,
            note: concat!($($note)?),
        }),+]
    };
}
pub(super) use claims;

impl Claim {
    /// The published ratio.
    pub(super) fn ratio(&self) -> f64 {
        self.published.0 / self.published.1
    }

    pub(super) fn evaluate(&self, programs: &Programs, run: &RunResult) -> result::Claim {
        result::Claim {
            text: self.text.to_owned(),
            source: self.source,
            published: self.ratio(),
            tolerance: tolerance(self.ratio()),
            over: self.over.label.to_owned(),
            under: self.under.label.to_owned(),
            note: self.note.to_owned(),
            readings: self.readings(programs, run),
        }
    }

    fn readings(&self, programs: &Programs, run: &RunResult) -> Vec<Reading> {
        let mut readings: Vec<Reading> = Vec::new();
        let mut main = None;
        for (over, under) in self.pairs(run, self.over.metric, self.under.metric) {
            main.get_or_insert(over.better.clone());
            readings.push(self.reading(run, self.over.metric, [over, under], false));
        }
        let Some(main) = main else {
            return vec![self.not_measured(programs, run)];
        };
        for metric in self.also {
            let pairs = self.pairs(run, metric, metric);
            let more = pairs.into_iter().map(|(over, under)| {
                let turned = over.better != main;
                self.reading(run, metric, [over, under], turned)
            });
            readings.extend(more);
        }
        // Everything of a subject together.
        let names: Vec<String> = readings.iter().map(|reading| reading.subject.clone()).collect();
        readings.sort_by_key(|reading| names.iter().position(|name| *name == reading.subject));
        readings
    }

    /// The rows above and below the line, of everybody who has both.
    fn pairs<'r>(&self, run: &'r RunResult, over: &str, under: &str) -> Vec<(&'r ResultRow, &'r ResultRow)> {
        let below = |above: &ResultRow| {
            let who = |row: &&ResultRow| match self.who {
                Who::Each => row.subject == above.subject,
                Who::Between(_, other) => row.subject == other,
            };
            // A workload can be in a run twice, with a device and without; side by side comes first.
            let alike = |row: &&ResultRow| row.workload != above.workload || row.workload_def == above.workload_def;
            let mut beside = self.under.rows(run, under).filter(who).filter(alike);
            let apart = || self.under.rows(run, under).find(who).filter(|_| self.who.is_apart());
            beside.next().or_else(apart)
        };
        let above = self.over.rows(run, over).filter(|row| match self.who {
            Who::Each => true,
            Who::Between(one, _) => row.subject == one,
        });
        let mut pairs: Vec<(&ResultRow, &ResultRow)> = Vec::new();
        for row in above {
            let known = pairs.iter().any(|(known, _)| known.subject == row.subject);
            if let Some(other) = below(row).filter(|_| !known) {
                pairs.push((row, other));
            }
        }
        pairs.sort_by_key(|(row, _)| run.subjects.iter().position(|subject| subject.name == row.subject));
        pairs
    }

    fn reading(&self, run: &RunResult, metric: &str, [over, under]: [&ResultRow; 2], turned: bool) -> Reading {
        let rows = if turned { [under, over] } else { [over, under] };
        let (found, paired) = row_ratio(run, metric, rows, Better::Higher);
        let mut verdict = Verdict::of(self.ratio(), &found);
        let why = match self.barred([over, under]) {
            Some(why) => {
                verdict = Verdict::NotDecided;
                why
            }
            None if found.estimate.get().is_nan() => "no round has both figures".to_owned(),
            None => {
                let reasons = [
                    (verdict == Verdict::NotDecided).then(|| self.undecided(&found)),
                    (!paired).then_some(APART),
                ];
                reasons.into_iter().flatten().collect::<Vec<_>>().join("; ")
            }
        };
        Reading {
            subject: self.who.named(&over.subject),
            metric: if turned {
                format!("1 / {metric}")
            } else {
                metric.to_owned()
            },
            ratio: Some(found),
            verdict: verdict.as_str().to_owned(),
            why,
        }
    }

    /// Why figures may not be held against each other, if they may not.
    fn barred(&self, rows: [&ResultRow; 2]) -> Option<String> {
        let apart = self.who.is_apart();
        let may = if apart { rankable } else { sound };
        if rows.into_iter().all(may) {
            return None;
        }
        let mut marks: Vec<&str> = if apart {
            rows.into_iter().flat_map(barred).collect()
        } else {
            rows.into_iter().flat_map(marks_of_its_own).collect()
        };
        marks.sort_unstable();
        marks.dedup();
        Some(match marks.as_slice() {
            [] => "there is no figure above zero".to_owned(),
            marks => format!("a figure may not be ranked ({})", marks.join(", ")),
        })
    }

    /// Why a ratio decides nothing.
    fn undecided(&self, found: &Ratio) -> &'static str {
        match found.how.as_str() {
            "range" => "there is no interval, and the range does not lie beyond 20 %",
            _ if self.ratio() == 1.0 => "the interval lies neither within 10 % of 1 nor wholly beyond",
            _ => "the interval does not lie beyond the margin on either side of 1",
        }
    }

    /// Nobody has both figures: why, and what to do.
    fn not_measured(&self, programs: &Programs, run: &RunResult) -> Reading {
        let names: &[&str] = match &self.who {
            Who::Each => &[],
            Who::Between(one, other) => &[one, other],
        };
        let absent = names.iter().find_map(|name| {
            let there = run.subjects.iter().find(|subject| subject.name == *name);
            let get = programs.iter().find(|(known, _)| known == name).map(|(_, get)| *get);
            match (there, get) {
                (Some(subject), _) if subject.error.is_empty() => None,
                (Some(subject), _) => Some(format!("{name} took no part: {}", subject.error)),
                (None, Some(get)) => Some(format!("{name} took no part; {get}")),
                (None, None) => Some(format!("{name} took no part")),
            }
        });
        let warned = |code: WarningCode| run.warnings.iter().any(|warning| warning.code == code.code());
        let why = match absent {
            Some(why) => why,
            None if !run.complete => "the run was stopped before it".to_owned(),
            None if warned(WarningCode::CasesDropped) => {
                format!(
                    "the time limit left no room for it. {}",
                    WarningCode::CasesDropped.advice()
                )
            }
            None if run.warnings.is_empty() => "it was left out of this run".to_owned(),
            None => "it was left out of this run, or failed there: see the warnings".to_owned(),
        };
        Reading {
            subject: self.who.named(""),
            metric: self.over.metric.to_owned(),
            ratio: None,
            verdict: Verdict::NotMeasured.as_str().to_owned(),
            why,
        }
    }
}
