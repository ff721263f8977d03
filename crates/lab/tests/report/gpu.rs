//! Both reports of a run with a GPU, from rows made by hand.

use sealway_lab::result::{Case, Num, Ratio, ResultRow, RunResult};

fn row(workload: &str, case: &Case, subject: &str, rate: f64, to: Option<&str>) -> ResultRow {
    ResultRow {
        workload: workload.into(),
        subject: subject.into(),
        case: case.clone(),
        metric: "rate".into(),
        unit: "1/s".into(),
        better: "higher".into(),
        median: Num(rate),
        low: Num(rate),
        high: Num(rate),
        how: "range".into(),
        rounds: 4,
        values: vec![Num(rate); 4],
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
        ..ResultRow::default()
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
    let mut run = crate::common::empty();
    run.complete = true;
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

/// One of the GPU beside the processor, for pages that are looked at.
pub(crate) fn sample() -> RunResult {
    run("sealway:gpu", "sealway")
}

/// What the processor does is no peer.
#[test]
fn ratios_say_what_they_are_to() {
    for (subject, to, words) in [
        ("sealway:gpu", "sealway", "sealway"),
        ("sealway", "aws-lc-rs", "the best peer of the case"),
    ] {
        let run = run(subject, to);
        let text = crate::text_of(&run);
        let told = text.matches(&format!("speed as a ratio to {words}\n")).count();
        assert!(told >= 2, "{told}: {text}");
        let standing = format!(
            "{subject} runs at 2.00x the speed of {}",
            words.trim_end_matches(" of the case")
        );
        assert_eq!(text.matches(&standing).count(), 2, "{text}");
        let page = crate::page_of(&run);
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

/// Kernels alone, packets in pinned memory and whole calls once stood in one table, told apart by nothing.
#[test]
fn modes_have_tables_of_their_own_and_say_which_they_are() {
    let mut run = run("sealway:gpu", "sealway");
    let resident = |mode: &str, batch: usize| {
        let case = Case::new().with("mode", mode).with("suite", "chacha20-poly1305");
        let case = case.with("op", "seal").with("sizes", "mix").with("decoys", 0_i64);
        case.with("batch", batch).with("keys", "resident")
    };
    run.results.clear();
    for batch in [4096, 65_536] {
        for (mode, rate) in [("kernel", 3e6), ("call", 1e6)] {
            run.results
                .push(row("packets", &resident(mode, batch), "sealway:gpu", rate, None));
        }
    }
    for (streams, rate) in [(1_i64, 4e6), (8, 5e6)] {
        let case = resident("pinned", 16_384).with("streams", streams);
        run.results.push(row("packets", &case, "sealway:gpu", rate, None));
        for (metric, value) in [("link_rate", rate * 1e4), ("copy_share", 0.748)] {
            let mut besides = row("packets", &case, "sealway:gpu", value, None);
            besides.metric = metric.into();
            run.results.push(besides);
        }
    }
    let call = resident("call", 65_536);
    run.results.push(row("packets", &call, "sealway:all", 6e6, None));
    let mut decoyed = resident("kernel", 65_536);
    decoyed = decoyed.with("decoys", 20_i64);
    run.results.push(row("packets", &decoyed, "sealway:gpu", 6e6, None));
    let link = Case::new()
        .with("mode", "link")
        .with("op", "both")
        .with("streams", 4_i64);
    let mut carried = row("packets", &link, "sealway:gpu", 93e9, None);
    carried.metric = "throughput".into();
    run.results.push(carried);

    let text = crate::text_of(&run);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for mode in ["kernels alone: 10^6/s 4096 65536", "whole calls: 10^6/s 4096 65536"] {
        assert!(flat.contains(mode), "{mode}: {text}");
    }
    assert!(
        flat.contains("pinned memory: 10^6/s seal 1 stream seal 8 streams"),
        "{text}"
    );
    assert!(flat.contains("seal 20 % decoys"), "{text}");
    for columns in [
        "GB/s across the link, the busier way seal 1 stream seal 8 streams sealway:gpu 40.0 50.0",
        "copies, % of the device's time without overlap seal 1 stream seal 8 streams sealway:gpu 74.8 74.8",
    ] {
        assert!(flat.contains(columns), "{columns}: {text}");
    }
    assert!(flat.contains("copies of 4 MiB: 93.0 GB/s both ways together"), "{text}");
    assert!(!flat.contains("65536 65536"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");

    let page = crate::page_of(&run);
    for words in ["kernels alone", "whole calls", "pinned memory", "20 % decoys"] {
        assert!(page.contains(words), "{words}");
    }
    for words in [
        "copies of 4 MiB: 93.0 GB/s",
        "Packets in pinned memory go fastest at 5.00 million a second",
        "the link then carries 50.0 GB/s on its busier way, and copies would take 74.8 % of the device",
        "Whole calls, each at its best: 1.00 million a second by sealway:gpu, 6.00 million a second by sealway:all.",
    ] {
        assert!(flat.contains(words) && page.contains(words), "{words}: {text}");
    }
    let titles = page.matches("class=\"title\"").count();
    assert!(titles >= 2, "{titles}");
}

/// How much a node gains by a GPU, and from which batch on, for each number of threads.
#[test]
fn a_node_says_from_which_batch_a_gpu_pays() {
    let mut run = run("sealway:gpu", "sealway");
    run.results.clear();
    for (threads, batch, rate) in [
        (16_i64, 256_i64, 0.5e6),
        (16, 1024, 1.25e6),
        (16, 4096, 1.5e6),
        (1, 256, 0.5e6),
        (1, 1024, 1.5e6),
        (1, 4096, 0.75e6),
    ] {
        let case = Case::new().with("op", "node").with("sizes", "mix");
        let case = case.with("connections", 1000_usize).with("batch", batch);
        let case = case.with("decoys", 0_i64).with("threads", threads);
        run.results.push(row("bip324", &case, "sealway", 1e6, None));
        run.results
            .push(row("bip324", &case, "sealway:gpu", rate, Some("sealway")));
    }
    let flat = |report: String| report.split_whitespace().collect::<Vec<_>>().join(" ");
    let (text, page) = (flat(crate::text_of(&run)), flat(crate::page_of(&run)));
    for words in [
        "A node on 16 threads: 1.50 million pairs a second with the GPU in batches of 4096, 1.50x the processor alone; it pays \
         from batches of 1024 packets on.",
        "A node on 1 thread: 1.50 million pairs a second with the GPU in batches of 1024, 1.50x the processor alone; it does \
         not pay.",
        "Pairs of a node on 16 threads, the mix by batch, 1000 connections",
    ] {
        assert!(text.contains(words) && page.contains(words), "{words}: {text}");
    }
    assert!(
        text.contains("Pairs of a node by threads, the mix, x4096, 1000 connections"),
        "{text}"
    );
}
