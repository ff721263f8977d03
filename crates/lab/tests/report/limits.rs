//! What a page says its numbers cannot show.

use sealway_lab::catalogue::ALL;
use sealway_lab::result::RunResult;

/// Holds for all figures.
const ALWAYS: &str = "The speed of a virtual machine or a laptop changes with neighbours";

fn run(workloads: &[&str]) -> RunResult {
    let rows: Vec<serde_json::Value> = workloads
        .iter()
        .map(|name| {
            serde_json::json!({
                "workload": name, "workload_def": "1", "subject": "sealway", "case": {}, "metric": "rate", "unit": "1/s",
                "better": "higher", "median": 1.0, "mad": 0.0, "low": 1.0, "high": 1.0, "how": "range", "rounds": 1,
                "values": [1.0], "method": "T", "verified": "full", "flags": []
            })
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "schema": 1, "run": "r", "started": "", "ended": "", "complete": true, "sealway": "0", "profile": "quick",
        "seed": "1", "command": [], "machine": {}, "plan": {}, "warnings": [], "subjects": [], "results": rows,
        "windows": [], "recommendation": []
    }))
    .unwrap()
}

/// Pages about proxies and files said that there were no system calls in their figures.
#[test]
fn a_page_tells_the_limits_of_what_was_measured_and_of_nothing_else() {
    let cipher = "the cipher&#39;s share";
    let page = crate::page_of(&run(&["primitives"]));
    assert!(page.contains(cipher) || page.contains("the cipher's share"), "{page}");
    for name in ["transports", "requests", "flows", "files"] {
        let page = crate::page_of(&run(&[name]));
        assert!(
            !page.contains("No system calls") && !page.contains("no system calls"),
            "{name}"
        );
        assert!(page.contains("over loopback: no loss"), "{name}");
        assert!(page.contains(ALWAYS), "{name}");
    }
}

#[test]
fn every_workload_says_what_it_cannot_show() {
    for workload in ALL.iter() {
        let page = crate::page_of(&run(&[workload.name, workload.name]));
        for limit in workload.limits {
            let limit = limit.replace('\'', "&#39;");
            assert_eq!(page.matches(&limit).count(), 1, "{}: {limit}", workload.name);
        }
        assert!(page.contains(ALWAYS), "{}", workload.name);
        assert!(!page.contains("Of all figures:"), "{}", workload.name);
        assert!(!workload.limits.is_empty() && !workload.summary.is_empty());
    }
    // Of two each is named, and a later one has none.
    let page = crate::page_of(&run(&["primitives", "files"]));
    assert!(page.contains("Of primitives:") && page.contains("Of files:") && page.contains("Of all figures:"));
    let page = crate::page_of(&run(&["later"]));
    assert_eq!(page.matches("<ul class=\"prose\">").count(), 1);
}
