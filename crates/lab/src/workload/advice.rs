//! What recommendations have in common: which rows count, and how sure a comparison is.

use crate::lens::choice::Lead;
use crate::lens::rank::{ahead, rankable};
use crate::result::ResultRow;
use crate::stats::{MIN_RANGE_ROUNDS, median};

/// The subject a recommendation is for: what the user will run.
pub(crate) use crate::lens::OURS;

/// The rows of which `wanted` is true and whose figures mean something, those with the largest figure first.
pub(crate) fn largest(rows: &[ResultRow], wanted: impl Fn(&ResultRow) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = (0..rows.len())
        .filter(|&i| wanted(&rows[i]) && usable(&rows[i]))
        .collect();
    found.sort_by(|&a, &b| rows[b].median.get().total_cmp(&rows[a].median.get()));
    found
}

/// The places of these rows among `rows`, of which they are.
pub(crate) fn places<'a>(rows: &'a [ResultRow], of: impl IntoIterator<Item = &'a ResultRow>) -> Vec<usize> {
    let place = |row: &'a ResultRow| rows.iter().position(|known| std::ptr::eq(known, row));
    of.into_iter().filter_map(place).collect()
}

/// Whether a row may be ranked, and has the rounds to be.
pub(crate) fn usable(row: &ResultRow) -> bool {
    rankable(row) && row.rounds as usize >= MIN_RANGE_ROUNDS
}

/// What a choice must say of the rows that it passed over: those of which `wanted` is true and that may not be ranked or have
/// too few rounds, by `name`, and whether the chart beside it shows one of them ahead of the chosen.
pub(crate) struct PassedOver {
    pub(crate) names: Vec<String>,
    pub(crate) ahead: bool,
}

impl PassedOver {
    pub(crate) fn of(
        rows: &[ResultRow],
        chosen: &ResultRow,
        wanted: impl Fn(&ResultRow) -> bool,
        name: impl Fn(&ResultRow) -> String,
    ) -> PassedOver {
        let passed: Vec<&ResultRow> = rows.iter().filter(|row| wanted(row) && !usable(row)).collect();
        PassedOver {
            names: passed.iter().map(|row| name(row)).collect(),
            ahead: passed.iter().any(|row| ahead(row, chosen) > 1.0),
        }
    }

    /// A sentence with a space before it; empty when nothing was passed over.
    pub(crate) fn sentence(&self) -> String {
        if self.names.is_empty() {
            return String::new();
        }
        let rest = if self.ahead { "; one of them looks better" } else { "" };
        format!(" Not ranked: {}{rest}.", self.names.join(", "))
    }

    /// How sure the choice is then: not known where it may be one of those.
    pub(crate) fn confidence(&self, found: &'static str) -> &'static str {
        if self.ahead { "unknown" } else { found }
    }
}

/// How sure it is that one row is better than another of the same metric, and the median of their ratios by rounds.
pub(crate) fn compare(one: &ResultRow, other: &ResultRow) -> (f64, &'static str) {
    let pairs = one.values.iter().zip(&other.values).map(|(a, b)| a.get() / b.get());
    let pairs: Vec<f64> = pairs.filter(|ratio| ratio.is_finite()).collect();
    (
        median(&pairs).unwrap_or(f64::NAN),
        Lead::between(one, other).grade.stored(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(subject: &str, median: f64, flags: &str) -> ResultRow {
        let text = format!(
            r#"{{"workload":"x","subject":"{subject}","case":{{}},"metric":"cpu_per_gb","unit":"s/GB","better":"lower",
                "median":{median},"low":1,"high":1,"rounds":9,"flags":[{flags}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_choice_names_those_it_passed_over() {
        let rows = [
            row("a", 2.0, ""),
            row("b", 3.0, ""),
            row("c", 2.5, r#""unusable""#),
            row("d", 1.0, r#""generator-bound""#),
        ];
        assert_eq!(largest(&rows, |_| true), [1, 0]);
        let name = |row: &ResultRow| row.subject.clone();
        let passed = PassedOver::of(&rows[..3], &rows[0], |_| true, name);
        assert_eq!(passed.sentence(), " Not ranked: c.");
        assert_eq!(passed.confidence("clear"), "clear");
        let passed = PassedOver::of(&rows, &rows[0], |_| true, name);
        assert_eq!(passed.sentence(), " Not ranked: c, d; one of them looks better.");
        assert_eq!(passed.confidence("clear"), "unknown");
        let passed = PassedOver::of(&rows[..2], &rows[0], |_| true, name);
        assert_eq!((passed.sentence().as_str(), passed.confidence("tie")), ("", "tie"));
    }
}
