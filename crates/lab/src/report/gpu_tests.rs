//! Both reports of a run with a GPU, from rows made by hand.

#![allow(clippy::unwrap_used)]

use super::html;
use super::terminal::{Style, render};
use crate::result::{Case, Num, Ratio, ResultRow, RunResult};

fn row(workload: &str, case: &Case, subject: &str, rate: f64, to: Option<&str>) -> ResultRow {
    ResultRow {
        workload: workload.into(),
        workload_def: "1".into(),
        subject: subject.into(),
        case: case.clone(),
        metric: "rate".into(),
        unit: "1/s".into(),
        better: "higher".into(),
        median: Num(rate),
        mad: Num(0.0),
        low: Num(rate),
        high: Num(rate),
        how: "range".into(),
        rounds: 4,
        values: vec![Num(rate); 4],
        method: "T".into(),
        verified: "full".into(),
        ratio: to.map(|to| Ratio {
            to: to.into(),
            estimate: Num(2.0),
            low: Num(1.5),
            high: Num(2.5),
            level: 0.0,
            how: "range".into(),
            mde: Num(0.1),
            verdict: "faster".into(),
        }),
        flags: Vec::new(),
    }
}

fn run(subject: &str, to: &str) -> RunResult {
    let mut run: RunResult = serde_json::from_str(
        r#"{"schema":1,"run":"r","started":"","ended":"","complete":true,"sealway":"0","profile":"quick","seed":"1",
            "command":[],"machine":{},"plan":{},"warnings":[],"subjects":[],"results":[],"windows":[],"recommendation":[]}"#,
    )
    .unwrap();
    for batch in [1024_usize, 16_384] {
        let case = Case::new().with("op", "pair").with("sizes", "mix");
        let case = case
            .with("connections", 1000_usize)
            .with("batch", batch)
            .with("decoys", 0_i64)
            .with("threads", 1_i64);
        run.results.push(row("bip324", &case, to, 1e6, None));
        run.results.push(row("bip324", &case, subject, 2e6, Some(to)));
        let case = Case::new()
            .with("mode", "call")
            .with("suite", "chacha20-poly1305")
            .with("op", "seal");
        let case = case.with("sizes", "mix").with("batch", batch).with("keys", "resident");
        run.results.push(row("packets", &case, to, 1e6, None));
        run.results.push(row("packets", &case, subject, 2e6, Some(to)));
    }
    run
}

/// What the processor does is no peer.
#[test]
fn ratios_say_what_they_are_to() {
    for (subject, to, words) in [
        ("sealway:gpu", "sealway", "sealway"),
        ("sealway", "aws-lc-rs", "the best peer of the case"),
    ] {
        let run = run(subject, to);
        let text = render(&run, &Style::default(), &[]);
        let told = text.matches(&format!("speed as a ratio to {words}\n")).count();
        assert!(told >= 2, "{told}: {text}");
        let standing = format!(
            "{subject} runs at 2.00x the speed of {}",
            words.trim_end_matches(" of the case")
        );
        assert_eq!(text.matches(&standing).count(), 2, "{text}");
        let page = html::render(&run);
        assert_eq!(page.matches(&format!(">to {words}<")).count(), 2);
        for other in ["sealway", "the best peer of the case"]
            .iter()
            .filter(|other| **other != words)
        {
            assert!(!text.contains(&format!("ratio to {other}")) && !page.contains(&format!(">to {other}<")));
        }
    }
}
