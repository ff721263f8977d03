//! What to use for requests and connections, from measured figures only.

use crate::format::{seconds, sig3_or};
use crate::result::{Recommendation, ResultRow};
use crate::workload::stacks::Question;

/// Titles of the scenarios.
pub(super) const SCENARIOS: &[(&str, &str)] = &[
    ("proxied-requests", "Requests through a proxy"),
    ("proxied-latency", "Quick answers through a proxy"),
    ("proxied-connections", "Short connections through a proxy"),
    ("proxied-idle", "Idle connections through a proxy"),
];

/// What is asked of each mode, closed or idle: an open loop asks for what the slowest can do, and so all do the same.
const QUESTIONS: [(&str, &str, Question); 4] = [
    (
        "keep",
        "Requests on kept connections",
        Question {
            scenario: "proxied-requests",
            metric: "cpu_per_op",
            what: "CPU time of client and server together for each",
            figure: seconds,
            over: |name| format!("the requests of {name} for the same CPU time"),
        },
    ),
    (
        "keep",
        "Requests on kept connections as fast as answers come",
        Question {
            scenario: "proxied-latency",
            metric: "latency_p99",
            what: "the time within which 99 % are answered",
            figure: seconds,
            over: |name| format!("as quick as {name}"),
        },
    ),
    (
        "flow",
        "Short connections",
        Question {
            scenario: "proxied-connections",
            metric: "cpu_per_op",
            what: "CPU time of client and server together for each",
            figure: seconds,
            over: |name| format!("the connections of {name} for the same CPU time"),
        },
    ),
    (
        "hold",
        "Idle connections",
        Question {
            scenario: "proxied-idle",
            metric: "memory_per_connection",
            what: "memory of the server for each",
            figure: |bytes| format!("{} KiB", sig3_or(bytes / 1024.0, "?")),
            over: |name| format!("the connections of {name} in the same memory"),
        },
    ),
];

/// For each scenario that was measured the stack that does best, of those that encrypt what they carry.
pub(super) fn by_scenario(rows: &[ResultRow]) -> Vec<Recommendation> {
    let answer = |(mode, done, question): &(&str, &str, Question)| {
        question.answer(rows, done, |row| {
            row.case.text("mode") == Some(*mode) && matches!(row.case.text("load"), Some("closed" | "idle"))
        })
    };
    QUESTIONS.iter().filter_map(answer).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn row(stack: &str, [mode, load]: [&str; 2], metric: &str, value: f64) -> ResultRow {
        serde_json::from_value(serde_json::json!({
            "workload": "requests", "subject": "sealway", "metric": metric, "unit": "s/op", "better": "lower",
            "case": { "stack": stack, "mode": mode, "load": load, "connections": 32 },
            "median": value, "low": value, "high": value, "rounds": 9, "values": vec![value; 9],
        }))
        .unwrap()
    }

    #[test]
    fn each_scenario_has_the_stack_that_does_best_in_it() {
        const TLS: &str = "vless-tcp-tls";
        const VMESS: &str = "vmess-aes-128-gcm-tcp";
        let rows = [
            row(TLS, ["keep", "closed"], "cpu_per_op", 30e-6),
            row(VMESS, ["keep", "closed"], "cpu_per_op", 40e-6),
            row("vless-tcp", ["keep", "closed"], "cpu_per_op", 10e-6),
            row(TLS, ["keep", "open-50"], "cpu_per_op", 90e-6),
            row(TLS, ["keep", "closed"], "latency_p99", 3e-3),
            row(VMESS, ["keep", "closed"], "latency_p99", 2e-3),
            row(TLS, ["flow", "closed"], "cpu_per_op", 900e-6),
            row(VMESS, ["flow", "closed"], "cpu_per_op", 300e-6),
            row(TLS, ["hold", "idle"], "memory_per_connection", 20_480.0),
            row(VMESS, ["hold", "idle"], "memory_per_connection", 10_240.0),
        ];
        let advice = by_scenario(&rows);
        let found: Vec<_> = advice
            .iter()
            .map(|item| (item.scenario.as_str(), item.choice.as_str()))
            .collect();
        let names: Vec<_> = SCENARIOS.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            found,
            names.into_iter().zip([TLS, VMESS, VMESS, VMESS]).collect::<Vec<_>>()
        );
        assert_eq!(advice[0].because, [0, 1]);
        for (item, words) in advice.iter().zip([
            "vless-tcp-tls 30.0 us, vmess-aes-128-gcm-tcp (sealed by VMess, no TLS) 40.0 us. Gain: 1.33x the requests of vmess-aes",
            "Gain: 1.50x as quick as vless-tcp-tls.",
            "Gain: 3.00x the connections of vless-tcp-tls for the same CPU time.",
            "vmess-aes-128-gcm-tcp (sealed by VMess, no TLS) 10.0 KiB, vless-tcp-tls 20.0 KiB.",
        ]) {
            assert!(item.reason.contains(words), "{}", item.reason);
        }
        for (item, words) in advice.iter().zip([
            r#"For vless-tcp-tls, set "protocol": "vless", "network": "tcp", "security": "tls"."#,
            r#""protocol": "vmess", "network": "tcp", and for the user "security": "aes-128-gcm"."#,
        ]) {
            assert!(item.reason.contains(words), "{}", item.reason);
        }
        assert!(by_scenario(&rows[..1]).is_empty());
    }
}
