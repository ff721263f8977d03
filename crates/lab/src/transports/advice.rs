//! What to use for bulk data, from measured figures only.

use crate::format::{sig3_or, times};
use crate::result::{Recommendation, ResultRow};
use crate::route::Stack;
use crate::workload::advice::{OURS, PassedOver, compare, largest};

/// The metric that decides: where generator, programs and sink share the CPUs, throughput follows from it.
const METRIC: &str = "cpu_per_gb";

/// The stack that moves one stream down at the least CPU time, of proxies that seal what they carry.
pub(super) fn bulk(rows: &[ResultRow]) -> Vec<Recommendation> {
    let wanted = |row: &ResultRow| {
        row.subject == OURS
            && row.metric == METRIC
            && row.case.int("streams") == Some(1)
            && row.case.text("direction") == Some("down")
            && row.case.text("suite").is_some_and(|suite| suite != "none")
            && Stack::named(row.case.text("stack").unwrap_or_default()).is_none_or(|stack| stack.is_proxy())
    };
    let found = largest(rows, wanted);
    let [.., second, best] = found[..] else {
        return Vec::new();
    };
    let name = |i: usize| rows[i].case.text("stack").unwrap_or_default().to_owned();
    let (_, confidence) = compare(&rows[best], &rows[second]);
    let stack = |row: &ResultRow| row.case.text("stack").unwrap_or_default().to_owned();
    let passed = PassedOver::of(rows, &rows[best], wanted, stack);
    let cost = |i: usize| format!("{} s/GB", sig3_or(rows[i].median.get(), "?"));
    vec![Recommendation {
        scenario: "bulk".to_owned(),
        choice: name(best),
        reason: format!(
            "One stream down through {} costs {} of CPU time at client and server together, {} of {} ({}), the next of \
             the stacks that seal.{}",
            name(best),
            cost(best),
            times(rows[best].median.get() / rows[second].median.get()),
            name(second),
            cost(second),
            passed.sentence(),
        ),
        because: vec![best, second],
        confidence: passed.confidence(confidence).to_owned(),
    }]
}
