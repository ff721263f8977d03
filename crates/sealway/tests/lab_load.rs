//! The workloads that put load on proxied paths, with our program as client and server. A program of its
//! own: other tests beside it would leave windows that hold nothing.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use common::{run, words};
use serde_json::Value;

/// Runs a workload on two stacks without peers; its result. With more of them a busy machine would have windows that hold nothing.
fn measured(workload: &str) -> Value {
    let line = format!("lab {workload} --quick --peers none --stack vless-tcp,vless-tcp-tls --budget 20s --json -");
    let ran = run(&words(&line));
    ran.says(0, &["loopback"]);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn has(result: &Value, subject: &str, metric: &str) -> bool {
    let rows = result["results"].as_array().unwrap();
    rows.iter().any(|row| {
        // Of memory there may be none in most rounds: a program uses again what it has freed.
        let mut rounds = row["values"].as_array().into_iter().flatten();
        let figure = rounds.any(|value| value.as_f64().is_some_and(|value| value > 0.0));
        row["subject"] == subject && row["metric"] == metric && row["verified"] == "full" && figure
    })
}

#[test]
fn requests_go_through_our_program() {
    let result = measured("requests");
    for metric in ["rate", "cpu_per_op", "cpu_per_op_client", "cpu_per_op_server"] {
        assert!(has(&result, "sealway", metric), "{metric}: {result}");
    }
    assert!(
        has(&result, "direct", "rate") && !has(&result, "direct", "cpu_per_op"),
        "{result}"
    );
    let case = &result["results"][0]["case"];
    assert_eq!(case["load"], "closed");
    assert!(case["stack"].as_str().unwrap().contains("-tcp"), "{case}");
}

#[test]
fn flows_go_through_our_program_and_idle_ones_stay() {
    let result = measured("flows");
    for metric in [
        "rate",
        "cpu_per_op",
        "memory_per_connection",
        "memory_per_connection_client",
    ] {
        assert!(has(&result, "sealway", metric), "{metric}: {result}");
    }
}
