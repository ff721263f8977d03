//! One rule for what may be ranked, wherever a figure is shown.

use sealway_lab::result::RunResult;

/// Our engine in four cases: far ahead in one, and in three the rounds do not agree.
fn run() -> RunResult {
    let stacks = [
        ("vless-tcp", 0.31, false),
        ("vless-ws", 1.7, true),
        ("vless-tcp-tls", 1.5, true),
        ("vless-ws-tls", 1.05, true),
    ];
    let rows: Vec<serde_json::Value> = stacks
        .iter()
        .flat_map(|(stack, factor, wild)| {
            let row = |subject: &str, median: f64| {
                serde_json::json!({
                    "workload": "transports", "workload_def": "1", "subject": subject, "metric": "cpu_per_gb", "unit": "s/GB",
                    "case": { "stack": stack, "streams": 1, "direction": "down", "suite": "none" },
                    "better": "lower", "median": median, "low": median, "high": median, "rounds": 9,
                    "values": vec![median; 9], "method": "P", "verified": "full", "flags": []
                })
            };
            let mut ours = row("sealway", *factor);
            ours["ratio"] = serde_json::json!({
                "to": "xray", "estimate": factor, "low": factor * 0.9, "high": factor * 1.1, "level": 0.96,
                "how": "signed-rank", "mde": 0.02, "verdict": if *factor < 1.0 { "faster" } else { "slower" }
            });
            if *wild {
                ours["flags"] = serde_json::json!(["unusable"]);
            }
            [ours, row("xray", 1.0)]
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "schema": 1, "run": "r", "started": "", "ended": "", "complete": true, "sealway": "0", "profile": "standard",
        "seed": "1", "command": [], "machine": {}, "plan": {}, "warnings": [], "subjects": [], "results": rows,
        "windows": [], "recommendation": []
    }))
    .unwrap()
}

#[test]
fn no_mean_is_taken_over_those_that_happen_to_be_calm() {
    let wanted = "sealway against the best peer: 1 of 4 cases may be ranked, so no mean is given. Cheaper in 1, dearer in 2, \
                  the same in 0, not decided in 1.";
    let page = crate::page_of(&run());
    assert!(page.contains(wanted), "{page}");
    let text = crate::text_of(&run());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(wanted), "{text}");
    assert!(!text.contains("geometric mean"), "{text}");
}

#[test]
fn a_row_that_is_too_noisy_to_be_ranked_has_a_verdict_only_from_far() {
    let text = crate::text_of(&run());
    for ratio in ["0.588-", "0.667-", "0.952?"] {
        assert!(text.contains(ratio), "{ratio}:\n{text}");
    }
    assert!(!text.contains("0.952-"), "{text}");
    // Other marks leave none, whatever the file says.
    let mut run = run();
    for row in run.results.iter_mut().filter(|row| row.subject == "xray") {
        row.flags.push("unauthenticated".to_owned());
    }
    let page = crate::page_of(&run);
    let verdicts = ["slower", "faster"].map(|word| page.matches(&format!("<td>{word}</td>")).count());
    assert_eq!(verdicts, [0, 0]);
}
