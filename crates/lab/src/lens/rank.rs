//! Which of several rows is best, and what may be said of two.

use crate::result::ResultRow;
use crate::stats::{QUICK_MARGIN, Verdict};

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
    /// As the result has it, of a row that may be ranked.
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
        verdict: if rankable(row) { &ratio.verdict } else { unknown },
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

/// Whether a row may be ranked: the one rule of tables, charts, headlines, standings and recommendations. A ratio of a row
/// that may not, or to one that may not, is not decided.
pub fn rankable(row: &ResultRow) -> bool {
    let figure = row.median.get();
    figure.is_finite() && figure > 0.0 && barred(row).next().is_none()
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
}
