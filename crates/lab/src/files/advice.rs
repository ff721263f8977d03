//! What to use for files, from measured figures only.

use crate::format::{sig3_or, times};
use crate::result::{Recommendation, ResultRow};
use crate::stats::{Better, Rules, ratio};

/// Rounds below which nothing is called better.
const LEAST_ROUNDS: u32 = 3;

/// Subjects that encrypt nothing: nobody is told to use them.
const PLAIN: [&str; 2] = ["rsync-plain", "grpc-plain"];

/// The fastest of those that encrypt, for one big file and for many small ones.
pub(super) fn advise(rows: &[ResultRow]) -> Vec<Recommendation> {
    [("one big file", "file"), ("many small files", "small")]
        .into_iter()
        .filter_map(|(scenario, shape)| fastest(rows, scenario, shape))
        .collect()
}

fn fastest(rows: &[ResultRow], scenario: &str, shape: &str) -> Option<Recommendation> {
    let candidate = |row: &ResultRow| {
        row.metric == "throughput"
            && row.case.text("way") == Some("send")
            && row.case.text("shape") == Some(shape)
            && row.case.text("place") == Some("memory")
            && row.case.text("suite") == Some("default")
            && !PLAIN.contains(&row.subject.as_str())
            && row.median.get().is_finite()
            && row.rounds >= LEAST_ROUNDS
            && !row.flags.iter().any(|flag| flag == "unusable")
    };
    let mut found: Vec<usize> = (0..rows.len()).filter(|&i| candidate(&rows[i])).collect();
    found.sort_by(|&a, &b| rows[b].median.get().total_cmp(&rows[a].median.get()));
    let [mut best, mut second, ..] = found[..] else {
        return None;
    };
    let cost = |i: usize| {
        let of =
            |row: &&ResultRow| row.metric == "cpu_per_gb" && row.subject == rows[i].subject && row.case == rows[i].case;
        rows.iter().find(of).map_or(f64::NAN, |row| row.median.get())
    };
    let numbers = |i: usize| rows[i].values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let rules = Rules::of("throughput");
    let rules = if rows[best].how == "range" {
        rules.without_intervals()
    } else {
        rules
    };
    let (ours, theirs) = (numbers(best), numbers(second));
    let verdict = ratio("", &ours, &theirs, Better::Higher, rules).verdict;
    let leads = ours.iter().zip(&theirs).all(|(a, b)| a > b || a.is_nan() || b.is_nan());
    let noisy = [best, second]
        .iter()
        .any(|&i| rows[i].flags.iter().any(|flag| flag == "noisy"));
    let confidence = match (verdict.as_str(), leads, noisy) {
        ("faster", _, false) => "clear",
        ("faster", ..) | (_, true, _) => "slight",
        _ => "tie",
    };
    // Of two that are as fast, the one that leaves more of the machine to others.
    if confidence == "tie" && cost(second) < cost(best) {
        std::mem::swap(&mut best, &mut second);
    }
    let speed = |i: usize| {
        format!(
            "{} GB/s for {} s/GB",
            sig3_or(rows[i].median.get() / 1e9, "?"),
            sig3_or(cost(i), "?")
        )
    };
    Some(Recommendation {
        scenario: scenario.to_owned(),
        choice: rows[best].subject.clone(),
        reason: format!(
            "From start to end {} moves {} of CPU time, {} the rate of {} ({}), the next of those that encrypt.",
            rows[best].subject,
            speed(best),
            times(rows[best].median.get() / rows[second].median.get()),
            rows[second].subject,
            speed(second),
        ),
        because: vec![best, second],
        confidence: confidence.to_owned(),
    })
}
