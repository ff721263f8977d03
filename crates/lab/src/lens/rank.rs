//! Which of several rows is best, and what may be said of two.

use std::collections::BTreeMap;

use crate::result::{Case, Ratio, ResultRow};
use crate::stats::{Better, MIN_RANGE_ROUNDS, QUICK_MARGIN, Verdict, far_apart};

/// Differences below this are never called a win: 1 %.
pub const MARGIN: f64 = 0.01;
/// Rounds from which an interval can reach 95 %.
pub const ROUNDS_FOR_INTERVAL: u32 = 6;

/// How fast a subject is against the reference: above 1 is faster, whichever way its metric counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed<'a> {
    /// The reference.
    pub to: &'a str,
    /// The ratio.
    pub estimate: f64,
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// True for an interval with a stated level, false for the plain range of a few rounds.
    pub interval: bool,
    /// As the result has it, of a row that may have one.
    pub verdict: &'a str,
}

impl<'a> Speed<'a> {
    /// The same of the other, to `subject`.
    #[must_use]
    pub(crate) fn turned(self, subject: &'a str) -> Speed<'a> {
        Speed {
            to: subject,
            estimate: 1.0 / self.estimate,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
            ..self
        }
    }
}

/// The ratio of a row as speed: times are turned round.
pub fn speed(row: &ResultRow) -> Option<Speed<'_>> {
    let ratio = row.ratio.as_ref()?;
    let unknown = Verdict::Unknown.as_str();
    let mut speed = Speed {
        to: &ratio.to,
        estimate: ratio.estimate.get(),
        low: ratio.low.get(),
        high: ratio.high.get(),
        interval: ratio.level > 0.0,
        verdict: if comparable(row) { &ratio.verdict } else { unknown },
    };
    if row.better == "lower" {
        speed = speed.turned(&ratio.to);
    }
    (speed.estimate.is_finite() && speed.estimate > 0.0).then_some(speed)
}

/// A verdict's place among the four, its sign in tables and its word.
pub fn verdict(name: &str) -> (usize, char, &'static str) {
    match name {
        "faster" => (0, '+', "faster"),
        "slower" => (1, '-', "slower"),
        "same" => (2, '=', "same"),
        _ => (3, '?', "not decided"),
    }
}

/// Marks of rows that are shown and never ranked: their figures depend on more than the subject, or are of other work.
const NOT_RANKED: [&str; 5] = [
    "unusable",
    "overloaded",
    "generator-bound",
    "unauthenticated",
    "link-late",
];

/// The one of them that says no more than that rounds lie far apart.
const NOISE: &str = "unusable";

/// Whether a row may be ranked: the one rule of tables, charts, headlines, standings and recommendations. A ratio of
/// a row that may not, or to one that may not, is not decided, unless that is for noise alone and the whole interval lies beyond 20 %.
pub fn rankable(row: &ResultRow) -> bool {
    comparable(row) && !row.has(NOISE)
}

/// Whether a ratio of a row can be decided: it has a figure, and that is of the subject alone.
fn comparable(row: &ResultRow) -> bool {
    let figure = row.median.get();
    figure.is_finite() && figure > 0.0 && barred(row).all(|mark| mark == NOISE)
}

/// Takes the verdict of a ratio between two rows back where one of them may not be ranked. Noise alone leaves one: whose whole
/// interval, round by round, lies beyond 20 % is ahead for sure, though nobody can say how far. It never gives one: what was taken
/// back among many ratios stays so.
pub(crate) fn settle(found: &mut Ratio, ours: &ResultRow, theirs: &ResultRow) {
    if rankable(ours) && rankable(theirs) {
        return;
    }
    let enough = ours.rounds.min(theirs.rounds) as usize >= MIN_RANGE_ROUNDS;
    let verdict = match Better::parse(&ours.better) {
        Some(better) if enough && comparable(ours) && comparable(theirs) => far_apart(better, found),
        _ => Verdict::Unknown,
    };
    if found.verdict != verdict.as_str() {
        Verdict::Unknown.as_str().clone_into(&mut found.verdict);
    }
}

/// [`settle`] for all rows of a run, whatever its file says.
pub(crate) fn settle_all(rows: &mut [ResultRow]) {
    fn place<'a>(row: &'a ResultRow, subject: &'a str) -> (&'a str, &'a str, &'a str, &'a Case) {
        (&row.workload, &row.metric, subject, &row.case)
    }
    // A file may have very many.
    let mut known = BTreeMap::new();
    for row in rows.iter() {
        known.entry(place(row, &row.subject)).or_insert(row);
    }
    let settled = |ours: &ResultRow| {
        let ratio = ours.ratio.as_ref()?;
        let theirs = known.get(&place(ours, &ratio.to))?;
        let mut found = ratio.clone();
        settle(&mut found, ours, theirs);
        Some(found)
    };
    let settled: Vec<Option<Ratio>> = rows.iter().map(settled).collect();
    for (row, found) in rows.iter_mut().zip(settled) {
        row.ratio = found.or(row.ratio.take());
    }
}

/// The marks for which a row may not be ranked.
pub fn barred(row: &ResultRow) -> impl Iterator<Item = &str> {
    row.flags
        .iter()
        .map(String::as_str)
        .filter(|flag| NOT_RANKED.contains(flag))
}

/// Which of the rows of one case are best: the best median, and every row not told apart from it. No row is best when
/// fewer than two can be ranked.
pub fn best(rows: &[Option<&ResultRow>]) -> Vec<bool> {
    let candidates: Vec<&ResultRow> = rows.iter().flatten().copied().filter(|row| rankable(row)).collect();
    let Some(top) = candidates
        .iter()
        .copied()
        .reduce(|a, b| if ahead(b, a) > 1.0 { b } else { a })
    else {
        return vec![false; rows.len()];
    };
    let tied = |row: &ResultRow| match paired(top, row) {
        Some(apart) => !apart,
        None => ahead(top, row) <= 1.0 + margin(top.rounds.min(row.rounds)) || overlap(top, row),
    };
    rows.iter()
        .map(|row| row.is_some_and(|row| candidates.len() > 1 && rankable(row) && tied(row)))
        .collect()
}

/// Whether two rows of one case were told apart round by round; `None` when neither has a ratio to the other. This is
/// better evidence than the two medians: what disturbed a round disturbed both.
fn paired(a: &ResultRow, b: &ResultRow) -> Option<bool> {
    let of = |x: &ResultRow, y: &ResultRow| {
        let ratio = x
            .ratio
            .as_ref()
            .filter(|ratio| ratio.to == y.subject && x.case == y.case)?;
        let apart = matches!(ratio.verdict.as_str(), "faster" | "slower");
        Some(apart && rankable(x) && rankable(y))
    };
    of(a, b).or_else(|| of(b, a))
}

/// How many times better the median of `a` is than that of `b`.
pub fn ahead(a: &ResultRow, b: &ResultRow) -> f64 {
    let (a, b, lower) = (a.median.get(), b.median.get(), a.better == "lower");
    if lower { b / a } else { a / b }
}

fn overlap(a: &ResultRow, b: &ResultRow) -> bool {
    let intervals = [a, b]
        .iter()
        .all(|row| row.rounds >= ROUNDS_FOR_INTERVAL && row.how != "range");
    intervals && a.low.get() <= b.high.get() && b.low.get() <= a.high.get()
}

fn margin(rounds: u32) -> f64 {
    if rounds >= ROUNDS_FOR_INTERVAL {
        MARGIN
    } else {
        QUICK_MARGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Num;
    use crate::store::tests::row;

    #[test]
    fn figures_that_depend_on_more_than_the_subject_win_nothing() {
        let other = row("xray", 1.0);
        for mark in [
            "unusable",
            "overloaded",
            "generator-bound",
            "unauthenticated",
            "link-late",
        ] {
            let mut first = row("sealway", 9.0);
            assert!(rankable(&first));
            first.flags.push(mark.to_owned());
            assert!(!rankable(&first), "{mark}");
            assert_eq!(barred(&first).collect::<Vec<_>>(), [mark]);
            assert_eq!(
                best(&[Some(&first), Some(&other), Some(&row("v2ray", 0.5))]),
                [false, true, false],
                "{mark}"
            );
        }
    }

    #[test]
    fn noise_leaves_a_winner_far_ahead_and_other_marks_leave_none() {
        let settled = |low: f64, mark: &str, rounds: u32, verdict: &str| {
            let [mut ours, mut theirs] = [row("sealway", 5.0), row("v2ray", 1.0)];
            theirs.flags.push(mark.to_owned());
            (ours.rounds, theirs.rounds) = (9, rounds);
            ours.ratio = Some(Ratio {
                to: "v2ray".to_owned(),
                estimate: Num(low * 1.1),
                low: Num(low),
                high: Num(low * 1.2),
                verdict: verdict.to_owned(),
                ..Ratio::default()
            });
            let mut rows = [ours, theirs];
            settle_all(&mut rows);
            speed(&rows[0]).expect("a ratio").verdict.to_owned()
        };
        let found = |low: f64, mark: &str, rounds: u32| settled(low, mark, rounds, "faster");
        assert_eq!(found(4.5, "unusable", 9), "faster");
        assert_eq!(found(1.1, "unusable", 9), "unknown", "within 20 %");
        assert_eq!(found(4.5, "unusable", 2), "unknown", "two rounds");
        assert_eq!(found(4.5, "unauthenticated", 9), "unknown");
        assert_eq!(found(1.1, "noisy", 9), "faster", "what may be ranked keeps its own");
        let taken_back = settled(4.5, "unusable", 9, "unknown");
        assert_eq!(taken_back, "unknown", "what was not decided stays so");
    }
}
