//! `sealway lab files` with the peer that is built in. A program of its own: each subject needs its rounds within the budget, and another
//! lab beside it would take half of the processor.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod common;

use common::{run, words};
use serde_json::Value;

#[test]
fn files_are_sent_verified_and_counted() {
    let ran = run(&words("lab files --quick --peers https-post --json - --no-progress"));
    ran.says(0, &["One file of 67.1 MB sent, in memory"]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = result["results"].as_array().unwrap();
    for (shape, metric) in [
        ("file", "throughput"),
        ("file", "cpu_per_gb"),
        ("file", "cpu_per_gb_sender"),
        ("file", "memory_receiver"),
        ("byte", "setup_time"),
    ] {
        let found = rows
            .iter()
            .find(|row| row["subject"] == "https-post" && row["case"]["shape"] == shape && row["metric"] == metric);
        let row = found.unwrap_or_else(|| panic!("no {metric} of {shape}: {:?}", result["warnings"]));
        assert!(row["median"].as_f64().unwrap() > 0.0, "{row}");
        // Three rounds, or the four that make whole turns of two subjects.
        assert!(row["rounds"].as_u64().unwrap() >= 3, "{:?}", result["warnings"]);
        assert_eq!(row["verified"], "full");
    }
    assert!(rows.iter().all(|row| row["case"]["place"] == "memory"));
    let ours = |row: &Value| row["subject"] == "sealway" && row["case"]["shape"] == "file" && row["verified"] == "full";
    let warnings = &result["warnings"];
    assert!(rows.iter().any(ours), "our own commands did not run: {warnings}");
}

#[test]
fn one_end_of_a_post_says_what_is_wrong() {
    let line = "lab https-post send --to 127.0.0.1:9 --cert /nowhere --file /nowhere";
    run(&words(line)).says(1, &["error: "]);
}
