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

/// What only a run with a GPU has.
fn add_gpu(run: &mut RunResult) {
    let routed = serde_json::json!({
        "name": "sealway:routed", "version": "0", "kind": "in-process", "sha256": "", "role_argv": {}, "setup": "default",
        "differs": ["other", "the GPU has a part in batches of 700 packets"], "error": "",
    });
    run.subjects.push(serde_json::from_value(routed).unwrap());
    let pairs: Vec<ResultRow> = run
        .results
        .iter()
        .filter(|row| row.workload == "bip324")
        .cloned()
        .collect();
    for row in &pairs {
        let mut share = ResultRow {
            metric: "gpu_share".into(),
            unit: "1".into(),
            ratio: None,
            ..row.clone()
        };
        (share.median, share.low, share.high) = (Num(0.5), Num(0.5), Num(0.5));
        run.results.push(share);
        let mut decoyed = row.clone();
        decoyed.case = decoyed.case.with("decoys", 5_i64);
        decoyed.values.fill(Num(row.median.get() / 2.0));
        run.results.push(decoyed);
    }
}

fn run(subject: &str, to: &str) -> RunResult {
    let mut run: RunResult = serde_json::from_str(
        r#"{"schema":1,"run":"r","started":"","ended":"","complete":true,"sealway":"0","profile":"quick","seed":"1",
            "command":[],"machine":{},"plan":{},"warnings":[],"subjects":[],"results":[],"windows":[],"recommendation":[]}"#,
    )
    .unwrap();
    for batch in [1024_usize, 4096] {
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
    if to == "sealway" {
        add_gpu(&mut run);
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
        let with_gpu = words == "sealway";
        for (report, share) in [(&text, "packets that the GPU did, %"), (&page, "done by the GPU")] {
            assert_eq!(report.contains(share), with_gpu, "{report}");
            assert_eq!(report.contains("the GPU has a part in batches of 700"), with_gpu);
            assert_eq!(report.contains("5 % decoys take 50"), with_gpu);
        }
        assert_eq!(page.contains("sealway is the processor alone"), with_gpu);
        for other in ["sealway", "the best peer of the case"]
            .iter()
            .filter(|other| **other != words)
        {
            assert!(!text.contains(&format!("ratio to {other}")) && !page.contains(&format!(">to {other}<")));
        }
    }
}
