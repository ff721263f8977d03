//! What recommendations have in common: which rows count, and how sure a comparison is.

use crate::result::ResultRow;
use crate::stats::{Better, Rules, median, ratio};

/// The subject a recommendation is for: what the user will run.
pub(crate) const OURS: &str = "sealway";

/// Rounds below which nothing is called better.
const LEAST_ROUNDS: u32 = 3;

/// The rows of which `wanted` is true and whose figures mean something, those with the largest figure first.
pub(crate) fn largest(rows: &[ResultRow], wanted: impl Fn(&ResultRow) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = (0..rows.len())
        .filter(|&i| wanted(&rows[i]) && usable(&rows[i]))
        .collect();
    found.sort_by(|&a, &b| rows[b].median.get().total_cmp(&rows[a].median.get()));
    found
}

/// Whether the figures of a row mean something.
pub(crate) fn usable(row: &ResultRow) -> bool {
    row.median.get().is_finite() && row.rounds >= LEAST_ROUNDS && !flagged(row, "unusable")
}

fn flagged(row: &ResultRow, mark: &str) -> bool {
    row.flags.iter().any(|flag| flag == mark)
}

/// How sure it is that one row is better than another of the same metric, and the median of their ratios by rounds.
pub(crate) fn compare(one: &ResultRow, other: &ResultRow) -> (f64, &'static str) {
    let numbers = |row: &ResultRow| row.values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let (ours, theirs) = (numbers(one), numbers(other));
    let better = if one.better == "lower" {
        Better::Lower
    } else {
        Better::Higher
    };
    let rules = Rules::of(&one.metric);
    let rules = if one.how == "range" {
        rules.without_intervals()
    } else {
        rules
    };
    let verdict = ratio("", &ours, &theirs, better, rules).verdict;
    let pairs: Vec<f64> = ours
        .iter()
        .zip(&theirs)
        .map(|(a, b)| a / b)
        .filter(|ratio| ratio.is_finite())
        .collect();
    let leads = |&ratio: &f64| (ratio > 1.0) == (better == Better::Higher) && ratio != 1.0;
    let leads = !pairs.is_empty() && pairs.iter().all(leads);
    let noisy = flagged(one, "noisy") || flagged(other, "noisy");
    let confidence = match (verdict.as_str(), leads, noisy) {
        ("faster", _, false) => "clear",
        ("faster", ..) | (_, true, _) => "slight",
        _ => "tie",
    };
    (median(&pairs).unwrap_or(f64::NAN), confidence)
}
