//! What to use for files, from measured figures only.

use crate::format::{gap, sig3_or};
use crate::lens::choice::{Choice, Lead};
use crate::result::{Recommendation, ResultRow};
use crate::workload::advice::{PassedOver, largest, places};

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
    let mut ranked: Vec<&ResultRow> = found.iter().map(|&i| &rows[i]).collect();
    let cost = |row: &ResultRow| {
        let of =
            |other: &&ResultRow| other.metric == "cpu_per_gb" && other.subject == row.subject && other.case == row.case;
        rows.iter().find(of).map_or(f64::NAN, |row| row.median.get())
    };
    // Of two that are as fast, the one that leaves more of the machine to others.
    if let [first, second, ..] = &mut ranked[..]
        && !Lead::between(first, second).apart
        && cost(second) < cost(first)
    {
        std::mem::swap(first, second);
    }
    let choice = Choice::of(&ranked)?;
    let name = |row: &ResultRow| row.subject.clone();
    let passed = PassedOver::of(rows, ranked[0], wanted, name);
    let speeds: Vec<String> = choice
        .rows()
        .map(|row| {
            let (rate, cost) = (sig3_or(row.median.get() / 1e9, "?"), sig3_or(cost(row), "?"));
            format!("{} moves {rate} GB/s for {cost} s/GB of CPU time", name(row))
        })
        .collect();
    let [lead, over] = choice.gain(name, |name| format!("the rate of {name}"));
    Some(Recommendation {
        scenario: scenario.to_owned(),
        choice: choice.names(name),
        reason: format!(
            "From start to end, of those that encrypt: {}. Gain: {lead}{}{over}.{}",
            speeds.join("; "),
            gap(&lead),
            passed.sentence(),
        ),
        because: places(rows, choice.rows()),
        confidence: passed.confidence(choice.grade().stored()).to_owned(),
    })
}
