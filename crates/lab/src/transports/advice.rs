//! What to use for bulk data, from measured figures only.

use crate::format::{sig3_or, times};
use crate::result::{Recommendation, ResultRow};
use crate::stats::{Better, Rules, ratio};

/// The subject a recommendation is for: what the user will run.
const OURS: &str = "sealway";

/// The metric that decides: where generator, programs and sink share the CPUs, throughput follows from it.
const METRIC: &str = "cpu_per_gb";

/// Rounds below which nothing is called better.
const LEAST_ROUNDS: u32 = 3;

/// The stack that moves one stream down at the least CPU time, of those that seal what they carry.
pub(super) fn bulk(rows: &[ResultRow]) -> Vec<Recommendation> {
    let candidate = |row: &ResultRow| {
        row.subject == OURS
            && row.metric == METRIC
            && row.case.int("streams") == Some(1)
            && row.case.text("direction") == Some("down")
            && row.case.text("suite").is_some_and(|suite| suite != "none")
            && row.median.get().is_finite()
            && row.rounds >= LEAST_ROUNDS
            && !row.flags.iter().any(|flag| flag == "unusable")
    };
    let mut found: Vec<usize> = (0..rows.len()).filter(|&i| candidate(&rows[i])).collect();
    found.sort_by(|&a, &b| rows[a].median.get().total_cmp(&rows[b].median.get()));
    let [best, second, ..] = found[..] else {
        return Vec::new();
    };
    let name = |i: usize| rows[i].case.text("stack").unwrap_or_default().to_owned();
    let numbers = |i: usize| rows[i].values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let rules = Rules::of(METRIC);
    let rules = if rows[best].how == "range" {
        rules.without_intervals()
    } else {
        rules
    };
    let (ours, theirs) = (numbers(best), numbers(second));
    let verdict = ratio("", &ours, &theirs, Better::Lower, rules).verdict;
    let leads = ours.iter().zip(&theirs).all(|(a, b)| a < b || a.is_nan() || b.is_nan());
    let noisy = [best, second]
        .iter()
        .any(|&i| rows[i].flags.iter().any(|flag| flag == "noisy"));
    let confidence = match (verdict.as_str(), leads, noisy) {
        ("faster", _, false) => "clear",
        ("faster", ..) | (_, true, _) => "slight",
        _ => "tie",
    };
    let cost = |i: usize| format!("{} s/GB", sig3_or(rows[i].median.get(), "?"));
    vec![Recommendation {
        scenario: "bulk".to_owned(),
        choice: name(best),
        reason: format!(
            "One stream down through {} costs {} of CPU time at client and server together, {} of {} ({}), the next of \
             the stacks that seal.",
            name(best),
            cost(best),
            times(rows[best].median.get() / rows[second].median.get()),
            name(second),
            cost(second),
        ),
        because: vec![best, second],
        confidence: confidence.to_owned(),
    }]
}
