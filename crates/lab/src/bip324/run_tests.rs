//! A real run, short, fills the result and both reports; no time is asserted.

use super::*;
use crate::ending::Ending;
use crate::packets::tests::{Watcher, shown};
use crate::result::{ResultRow, RunResult};
use crate::workload::{Peers, run};

fn request(peers: Peers, budget: u64) -> Request {
    Request {
        peers,
        ..packets::tests::request(&[], budget)
    }
}

#[test]
fn a_short_run_fills_the_result() {
    // No more cases than there is time for: packets are made of each before the first window.
    let measured = |case: &Case| match case.text("op") {
        Some("pair" | "seal" | "open") => case.text("sizes") == Some("mix") && case.int("batch") == Some(4096),
        _ => true,
    };
    let wanted = Request {
        cases: Some(measured),
        ..request(Peers::Auto, 10)
    };
    let result = run(&[&WORKLOAD], &wanted, &mut Watcher::default()).unwrap();
    assert_eq!(Ending::of(&result, false), Ending::Done, "{:?}", result.warnings);
    assert!(result.complete);
    let rows: Vec<&ResultRow> = result.results.iter().collect();
    assert!(rows.iter().all(|row| row.workload == NAME && row.verified == "full"));
    for row in &rows {
        assert!(row.median.get() > 0.0 && row.low <= row.high, "{row:?}");
        let leading = row.metric == "rate" || row.metric == "setup_time";
        assert!(leading || row.ratio.is_none(), "{row:?}");
    }
    for (op, metric) in [
        ("pair", "rate"),
        ("pair", "throughput"),
        ("pair", "wire_throughput"),
        ("pair", "overhead"),
        ("handshake", "setup_time"),
        ("loopback", "cpu_per_gb"),
        ("loopback", "throughput"),
    ] {
        for subject in ["sealway"]
            .into_iter()
            .chain(PEERS.into_iter().take(usize::from(cfg!(feature = "peers"))))
        {
            let there =
                |row: &&&ResultRow| row.metric == metric && row.case.text("op") == Some(op) && row.subject == subject;
            assert!(rows.iter().any(|row| there(&row)), "{op} {metric} {subject}");
        }
    }
    // On a busy machine every row may be marked too noisy to be looked at, which is no fault of what is tested here.
    let mut result = result.clone();
    result.results.iter_mut().for_each(|row| row.flags.clear());
    #[cfg(feature = "peers")]
    {
        let advice = advice::advice(&result.results);
        assert!(
            advice.iter().any(|advice| advice.scenario == "bip324-connections"),
            "{advice:?}"
        );
        assert!(
            advice
                .iter()
                .all(|advice| advice.because.iter().all(|&i| i < rows.len()))
        );
    }
    reports_show(&result);
}

/// Both reports have the sections, within 80 columns.
fn reports_show(result: &RunResult) {
    let words = [
        "The mix, x4096, 1000 connections: 10^6/s",
        "Two endpoints over loopback, TCP",
        "Once a connection: us",
        "Protocol overhead, bytes on the wire",
        "Over all cases of bip324",
    ];
    let there = if cfg!(feature = "peers") { &words[..] } else { &[] };
    let page = shown(result, there);
    assert!(page.contains("id=\"bip324-section\"") && page.contains("CPU of both ends"));
    assert!(page.contains("million BIP324 packets a second"));
}

#[test]
fn only_suites_and_peers_of_the_protocol_take_part() {
    let mut wanted = request(Peers::Auto, 6);
    wanted.suites = vec![Suite::Aes128Gcm];
    let error = run(&[&WORKLOAD], &wanted, &mut Watcher::default()).unwrap_err();
    assert_eq!(error.ending(), Ending::Misused);
    let wanted = request(Peers::Named(vec!["ring".to_owned()]), 6);
    let error = run(&[&WORKLOAD], &wanted, &mut Watcher::default()).unwrap_err();
    assert!(error.to_string().contains("bip324, aws-lc-rs"), "{error}");
}
