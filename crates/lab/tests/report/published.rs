//! A run that was made to check published measurements.

use sealway_lab::report::html;
use sealway_lab::report::terminal::{Style, render};
use sealway_lab::reproduce;
use sealway_lab::result::{ResultRow, RunResult, Subject, Window};

use crate::json::{check, validator};
use crate::terminal::golden;

/// A stack with the rates of both programs in B/s.
const STACKS: [(&str, f64, f64); 6] = [
    ("vless-tcp", 9.1e8, 5.2e8),
    ("vless-tcp-tls", 5.2e8, 2.6e8),
    ("vmess-none-tcp", 8.9e8, 5.2e8),
    ("vmess-none-tcp-tls", 5.1e8, 2.2e8),
    ("vless-ws", 6.0e8, 3.1e8),
    ("vless-ws-tls", 4.3e8, 1.9e8),
];

/// A run of the recipe that never was, with a source that is hostile.
pub(crate) fn run() -> RunResult {
    let mut run = crate::common::empty();
    run.complete = true;
    for name in ["sealway", "v2ray"] {
        run.subjects.push(Subject {
            name: name.to_owned(),
            ..Subject::default()
        });
    }
    for (stack, ours, theirs) in STACKS {
        for (subject, rate) in [("sealway", ours), ("v2ray", theirs)] {
            run.windows.extend((0..9).map(|round| window(stack, subject, round)));
            for (process, busy) in [("client", 0.71), ("server", 0.48)] {
                let average = format!("cpu_busy_{process}");
                run.results.push(row(stack, subject, &average, "lower", busy));
                let peak = format!("cpu_busy_peak_{process}");
                run.results.push(row(stack, subject, &peak, "lower", busy + 0.2));
            }
            for (metric, better, value) in [("throughput", "higher", rate), ("cpu_per_gb", "lower", 1e9 / rate)] {
                run.results.push(row(stack, subject, metric, better, value));
                if subject == "sealway" && metric == "cpu_per_gb" {
                    let (estimate, verdict) = if stack == "vless-ws-tls" {
                        (1.2, "slower")
                    } else {
                        (0.5, "faster")
                    };
                    let ratio = serde_json::json!({
                        "to": "v2ray", "estimate": estimate, "low": estimate, "high": estimate, "level": 0.96,
                        "how": "signed-rank", "mde": 0.01, "verdict": verdict,
                    });
                    run.results.last_mut().unwrap().ratio = serde_json::from_value(ratio).unwrap();
                }
            }
        }
    }
    let mut found = reproduce::evaluate(reproduce::named("vless-vmess").unwrap(), &run);
    found.claims.truncate(6);
    found.sources[1].method.push_str(crate::common::HOSTILE);
    run.reproduction = Some(found);
    run
}

fn window(stack: &str, subject: &str, round: u32) -> Window {
    serde_json::from_value(serde_json::json!({
        "workload": "transports", "subject": subject, "round": round, "order": round, "t": 0.0, "wall_s": 1.0,
        "case": { "stack": stack, "streams": 1, "direction": "down", "suite": "none" },
    }))
    .unwrap()
}

fn row(stack: &str, subject: &str, metric: &str, better: &str, value: f64) -> ResultRow {
    let values: Vec<f64> = (0..9)
        .map(|round| value * (1.0 + 0.002 * f64::from(round % 4)))
        .collect();
    serde_json::from_value(serde_json::json!({
        "workload": "transports", "subject": subject, "metric": metric, "unit": if better == "higher" { "B/s" } else { "s/GB" }, "better": better,
        "case": { "stack": stack, "streams": 1, "direction": "down", "suite": "none" },
        "median": value, "low": value, "high": value, "rounds": 9, "values": values,
    }))
    .unwrap()
}

#[test]
fn claims_stand_before_the_tables() {
    let text = render(&run(), &sealway_lab::catalogue::ALL, &Style::default(), &[]);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(line.is_ascii() && !line.contains('\x1b'), "{line:?}");
    }
    let claims = text.find("Published and measured").unwrap();
    assert!(claims < text.find("VLESS over TCP (vless-tcp), 1 download").unwrap());
    golden("published.txt", &text);
}

#[test]
fn the_page_has_claims_orders_and_differences() {
    let page = html::render(&run(), &sealway_lab::catalogue::ALL);
    for words in [
        "id=\"published\"",
        "href=\"#published\"",
        "VLESS is faster than VMess over TLS.",
        "confirmed",
        "not measured",
        "Where this program stands",
        "What differs from the sources",
        "Not here, and how to get it",
        "Every combination of the table",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<script>alert"), "foreign text is escaped");
    let other = html::render(&crate::common::sample(), &sealway_lab::catalogue::ALL);
    assert!(!other.contains("id=\"published\""));
}

#[test]
fn the_file_keeps_it_and_keeps_to_the_schema() {
    check(&validator(), &run());
    let value = serde_json::to_value(run()).unwrap();
    let back: RunResult = serde_json::from_value(value).unwrap();
    assert_eq!(back.reproduction, run().reproduction);
}
