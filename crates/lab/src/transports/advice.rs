//! What to use for bulk data, from measured figures only.

use super::lens::kind;
use crate::format::sig3_or;
use crate::result::{Recommendation, ResultRow};
use crate::workload::stacks::Question;

/// Where generator, programs and sink share the CPUs, throughput follows from what the programs cost.
const BULK: Question = Question {
    scenario: "bulk",
    metric: "cpu_per_gb",
    what: "CPU time of client and server together",
    figure: |cost| format!("{} s/GB", sig3_or(cost, "?")),
    over: |name| format!("the bytes of {name} for the same CPU time"),
};

/// The stack that moves streams down at the least CPU time, of those that encrypt what they carry: one stream, or the fewest that
/// were measured.
pub(super) fn bulk(rows: &[ResultRow]) -> Vec<Recommendation> {
    let is_down = |row: &&ResultRow| BULK.is_about(row) && row.case.text("direction") == Some("down");
    let streams = |row: &ResultRow| row.case.int("streams");
    let Some(fewest) = rows.iter().filter(is_down).min_by_key(|row| streams(row)) else {
        return Vec::new();
    };
    let alike = |row: &ResultRow| is_down(&row) && streams(row) == streams(fewest);
    BULK.answer(rows, &kind(&fewest.case), alike).into_iter().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(stack: &str, streams: i64, cost: f64) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "workload": super::super::NAME, "subject": "sealway", "metric": "cpu_per_gb", "unit": "s/GB", "better": "lower",
            "case": { "stack": stack, "streams": streams, "direction": "down" },
            "median": cost, "low": cost, "high": cost, "rounds": 9, "values": vec![cost; 9],
        }))
        .unwrap()
    }

    #[test]
    fn the_fewest_streams_that_were_measured_decide() {
        let of_four = [
            row("vless-tcp-tls", 4, 0.8),
            row("ss-aes-256-gcm", 4, 0.4),
            row("vless-tcp", 4, 0.1),
        ];
        let found = &bulk(&of_four)[0];
        assert_eq!(
            (found.choice.as_str(), found.because.as_slice()),
            ("ss-aes-256-gcm", &[1, 0][..])
        );
        assert!(
            found.reason.starts_with("4 downloads at once, CPU time of client"),
            "{}",
            found.reason
        );
        let with_one = [
            &of_four[..],
            &[row("vless-tcp-tls", 1, 0.3), row("ss-aes-256-gcm", 1, 0.6)],
        ]
        .concat();
        let found = &bulk(&with_one)[0];
        assert_eq!(
            (found.choice.as_str(), found.because.as_slice()),
            ("vless-tcp-tls", &[3, 4][..])
        );
        assert!(
            found.reason.contains("Gain: 2.00x the bytes of ss-aes-256-gcm"),
            "{}",
            found.reason
        );
        assert!(bulk(&of_four[1..]).is_empty(), "one that encrypts is no choice");
    }
}
