//! What to use for files, from measured figures only.

use crate::format::{sig3_or, times};
use crate::result::{Recommendation, ResultRow};
use crate::workload::advice::{PassedOver, compare, largest};

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
    let wanted = |row: &ResultRow| {
        row.metric == "throughput"
            && row.case.text("way") == Some("send")
            && row.case.text("shape") == Some(shape)
            && row.case.text("place") == Some("memory")
            && row.case.text("suite") == Some("default")
            && !PLAIN.contains(&row.subject.as_str())
    };
    let found = largest(rows, wanted);
    let [mut best, mut second, ..] = found[..] else {
        return None;
    };
    let cost = |i: usize| {
        let of =
            |row: &&ResultRow| row.metric == "cpu_per_gb" && row.subject == rows[i].subject && row.case == rows[i].case;
        rows.iter().find(of).map_or(f64::NAN, |row| row.median.get())
    };
    let (_, confidence) = compare(&rows[best], &rows[second]);
    // Of two that are as fast, the one that leaves more of the machine to others.
    if confidence == "tie" && cost(second) < cost(best) {
        std::mem::swap(&mut best, &mut second);
    }
    let passed = PassedOver::of(rows, &rows[best], wanted, |row| row.subject.clone());
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
            "From start to end {} moves {} of CPU time, {} the rate of {} ({}), the next of those that encrypt.{}",
            rows[best].subject,
            speed(best),
            times(rows[best].median.get() / rows[second].median.get()),
            rows[second].subject,
            speed(second),
            passed.sentence(),
        ),
        because: vec![best, second],
        confidence: passed.confidence(confidence).to_owned(),
    })
}
