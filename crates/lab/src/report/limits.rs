//! What the numbers of a run cannot show: what holds for all of them, and what is peculiar to each workload.

use crate::catalogue;
use crate::result::RunResult;

/// What every reader of any figure should know that it does not show.
const ALWAYS: [&str; 3] = [
    "The speed of a virtual machine or a laptop changes with neighbours, heat and power; ratios of one run hold better than absolute rates.",
    "Sizes and loads that were not measured are not interpolated; lines between points only guide the eye.",
    "Side channels, code size and build effort are not measured; a fast row says nothing about them.",
];

/// The limits of what a run measured, by workload in the order of its rows, each with its name; what holds for all comes
/// last, without a name.
pub(crate) fn limits(run: &RunResult) -> Vec<(&str, &'static [&'static str])> {
    let mut found: Vec<(&str, &'static [&'static str])> = Vec::new();
    for row in &run.results {
        let name = row.workload.as_str();
        if found.iter().any(|(known, _)| *known == name) {
            continue;
        }
        found.extend(catalogue::named(name).map(|workload| (name, workload.limits)));
    }
    found.push(("", &ALWAYS));
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::report::html;

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
        let page = html::render(&run(&["primitives"]));
        assert!(page.contains(cipher) || page.contains("the cipher's share"), "{page}");
        for name in ["transports", "requests", "flows", "files"] {
            let page = html::render(&run(&[name]));
            assert!(
                !page.contains("No system calls") && !page.contains("no system calls"),
                "{name}"
            );
            assert!(page.contains("over loopback: no loss"), "{name}");
            assert!(page.contains(ALWAYS[0]), "{name}");
        }
    }

    #[test]
    fn every_workload_says_what_it_cannot_show() {
        for workload in catalogue::ALL {
            let run = run(&[workload.name, workload.name]);
            let told = limits(&run);
            assert_eq!(told.len(), 2, "{}", workload.name);
            assert_eq!(told[0].0, workload.name);
            assert!(!workload.limits.is_empty() && !workload.summary.is_empty());
        }
        assert_eq!(limits(&run(&["later"])).len(), 1);
    }
}
