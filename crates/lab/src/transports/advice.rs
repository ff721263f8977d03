//! What to use for bulk data, from measured figures only.

use crate::format::{gap, sig3_or};
use crate::lens::choice::Choice;
use crate::result::{Recommendation, ResultRow};
use crate::route::Stack;
use crate::workload::advice::{OURS, PassedOver, largest, places};

/// The metric that decides: where generator, programs and sink share the CPUs, throughput follows from it.
const METRIC: &str = "cpu_per_gb";

/// The stack of a row.
pub(super) fn name(row: &ResultRow) -> String {
    row.case.text("stack").unwrap_or_default().to_owned()
}

/// The stack that moves one stream down at the least CPU time, of those that encrypt what they carry.
pub(super) fn bulk(rows: &[ResultRow]) -> Vec<Recommendation> {
    let wanted = |row: &ResultRow| {
        row.subject == OURS
            && row.metric == METRIC
            && row.case.int("streams") == Some(1)
            && row.case.text("direction") == Some("down")
            && row.case.text("suite").is_some_and(|suite| suite != "none")
            && Stack::named(row.case.text("stack").unwrap_or_default()).is_none_or(|stack| stack.is_proxy())
    };
    let mut found = largest(rows, wanted);
    found.reverse();
    let ranked: Vec<&ResultRow> = found.iter().map(|&i| &rows[i]).collect();
    let Some(choice) = Choice::of(&ranked) else {
        return Vec::new();
    };
    let passed = PassedOver::of(rows, ranked[0], wanted, name);
    let cost = |row: &ResultRow| format!("{} s/GB", sig3_or(row.median.get(), "?"));
    let costs: Vec<String> = ranked
        .iter()
        .map(|row| format!("{} {}", name(row), cost(row)))
        .collect();
    let [lead, over] = choice.gain(name, |name| format!("the bytes of {name} for the same CPU time"));
    vec![Recommendation {
        scenario: "bulk".to_owned(),
        choice: choice.names(name),
        reason: format!(
            "One download, CPU time of client and server together, for transports that encrypt: {}. Gain: {lead}{}{over}.{}",
            costs.join(", "),
            gap(&lead),
            passed.sentence(),
        ),
        because: places(rows, choice.rows()),
        confidence: passed.confidence(choice.grade().stored()).to_owned(),
    }]
}
