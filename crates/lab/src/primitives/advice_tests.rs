//! Recommendations from rows made by hand.

use sealway_aead::cpu::FeatureSet;

use super::*;
use crate::result::{Case, Num};

const ROUNDS: usize = 9;

fn row(subject: &str, suite: Suite, op: &str, bytes: i64, metric: &str, value: f64) -> ResultRow {
    let case = Case::new()
        .with("suite", suite.name())
        .with("op", op)
        .with("bytes", bytes);
    // A tenth of a per cent of noise, the same for everyone.
    let values = (0..ROUNDS)
        .map(|i| Num(value * (1.0 + 0.001 * (i % 3) as f64)))
        .collect();
    ResultRow {
        workload: "primitives".to_owned(),
        subject: subject.to_owned(),
        case,
        metric: metric.to_owned(),
        better: if metric == "throughput" { "higher" } else { "lower" }.to_owned(),
        median: Num(value),
        low: Num(value),
        high: Num(value),
        how: "order-statistics".to_owned(),
        rounds: ROUNDS as u32,
        values,
        verified: if subject == "openssl" { "self" } else { "full" }.to_owned(),
        ..ResultRow::default()
    }
}

/// Our rows of a suite: nanoseconds to seal and to open 16 KiB, and for a fresh key.
fn ours(suite: Suite, seal: f64, open: f64, fresh: f64) -> Vec<ResultRow> {
    let row = |op, bytes, metric, value| row("sealway", suite, op, bytes, metric, value);
    let mut rows = vec![row("fresh-key", 256, "cpu_per_op", fresh * 1e-9)];
    for (op, ns) in [("seal", seal), ("open", open)] {
        rows.push(row(op, BULK, "cpu_per_op", ns * 1e-9));
        rows.push(row(op, BULK, "throughput", BULK as f64 / (ns * 1e-9)));
    }
    rows
}

fn openssl(soft_aes: f64, chacha: f64) -> Vec<ResultRow> {
    let row = |suite, op, rate| row("openssl", suite, op, BULK, "throughput", rate);
    vec![
        row(Suite::Aes256Gcm, "seal-without-aes", soft_aes),
        row(Suite::ChaCha20Poly1305, "seal", chacha),
    ]
}

fn usual() -> Vec<ResultRow> {
    [
        ours(Suite::Aes128Gcm, 1400.0, 1500.0, 270.0),
        ours(Suite::Aes256Gcm, 1700.0, 1600.0, 290.0),
        ours(Suite::ChaCha20Poly1305, 6000.0, 6100.0, 300.0),
        ours(Suite::XChaCha20Poly1305, 6200.0, 6300.0, 350.0),
        openssl(0.3e9, 3.6e9),
    ]
    .concat()
}

fn with_aes() -> Cpu {
    Cpu::new(FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq), "")
}

/// What is advised on a machine with AES.
fn advised(rows: &[ResultRow], scenario: &str) -> Recommendation {
    let mut all = recommend(rows, &with_aes()).into_iter();
    all.find(|advice| advice.scenario == scenario).unwrap()
}

/// The choice, and how sure it is.
fn chosen(rows: &[ResultRow], scenario: &str) -> [String; 2] {
    let advice = advised(rows, scenario);
    [advice.choice, advice.confidence]
}

/// The usual rows but those of a suite.
fn without(suite: Suite) -> Vec<ResultRow> {
    let mut rows = usual();
    rows.retain(|row| row.case.text("suite") != Some(suite.name()));
    rows
}

#[test]
fn the_dearer_end_decides_and_the_least_cost_wins() {
    assert_eq!(chosen(&usual(), "server"), ["aes-128-gcm", "clear"]);
    let reason = advised(&usual(), "server").reason;
    // 1500 ns is opening, the slower end; 16384 B in 1.5 us.
    for words in [
        "with aes-128-gcm each end does 10.9 GB/s or more",
        "aes-256-gcm takes 1.13 times as long, chacha20-poly1305 4.07 times",
        "two ends of `sealway send` take aes-256-gcm, for its longer key.",
    ] {
        assert!(reason.contains(words), "{reason}");
    }
    // Opening dearer than sealing by far turns the order round.
    let mut rows = without(Suite::Aes128Gcm);
    rows.extend(ours(Suite::Aes128Gcm, 1000.0, 9000.0, 270.0));
    assert_eq!(advised(&rows, "server").choice, "aes-256-gcm");
}

#[test]
fn a_tie_is_told_and_too_few_rounds_decide_nothing() {
    let mut rows = without(Suite::Aes256Gcm);
    rows.extend(ours(Suite::Aes256Gcm, 1401.0, 1501.0, 290.0));
    assert_eq!(chosen(&rows, "server"), ["aes-128-gcm or aes-256-gcm", "clear"]);
    // With nobody clearly behind there is only the tie.
    rows.retain(|row| row.case.text("suite") != Some("chacha20-poly1305"));
    assert_eq!(advised(&rows, "server").confidence, "tie");
    let mut rows = usual();
    for row in &mut rows {
        row.rounds = 2;
        row.values.truncate(2);
    }
    assert_eq!(advised(&rows, "server").confidence, "unknown");
}

#[test]
fn a_quick_run_needs_a_fifth() {
    let mut rows = usual();
    for row in &mut rows {
        row.rounds = 3;
        row.values.truncate(3);
        row.how = "range".to_owned();
    }
    // 13 % in every round are no lead over aes-256-gcm; both lead over ChaCha20.
    assert_eq!(chosen(&rows, "server"), ["aes-128-gcm or aes-256-gcm", "clear"]);
    rows.retain(|row| row.case.text("suite") != Some("aes-256-gcm"));
    assert_eq!(advised(&rows, "server").confidence, "clear");
}

#[test]
fn marked_rows_do_not_decide() {
    let mut rows = usual();
    let mut mark = |mark: &str| {
        let marked = |row: &&mut ResultRow| row.case.text("suite") == Some("aes-128-gcm");
        rows.iter_mut()
            .filter(marked)
            .for_each(|row| row.flags.push(mark.to_owned()));
        rows.clone()
    };
    assert_eq!(advised(&mark("noisy"), "server").confidence, "slight");
    let rows = mark("unusable");
    for scenario in ["server", "short-connections"] {
        assert_eq!(advised(&rows, scenario).choice, "aes-256-gcm");
    }
}

#[test]
fn a_mixed_fleet_takes_what_loses_less() {
    // ChaCha20 loses 3.6 times with hardware, AES 12 times without; openssl's own figures keep it from being clear.
    assert_eq!(chosen(&usual(), "mixed-fleet"), ["chacha20-poly1305", "slight"]);
    let mut rows = usual();
    rows.retain(|row| row.subject != "openssl");
    let with_openssl = [rows.clone(), openssl(3.0e9, 3.6e9)].concat();
    assert_eq!(advised(&with_openssl, "mixed-fleet").choice, "aes-256-gcm");
    assert_eq!(chosen(&rows, "mixed-fleet"), ["chacha20-poly1305", "unknown"]);
    assert!(advised(&rows, "mixed-fleet").reason.contains("was not measured"));
    assert!(
        recommend(&rows, &with_aes())
            .iter()
            .all(|advice| advice.scenario != "mobile"),
        "nothing to say about machines without AES"
    );
}

#[test]
fn mobile_follows_the_figures() {
    let mobile = advised(&usual(), "mobile");
    assert_eq!(mobile.choice, "chacha20-poly1305");
    assert!(
        mobile.reason.contains("0.300 GB/s") && mobile.reason.contains("12.0 times as fast"),
        "{}",
        mobile.reason
    );
}

#[test]
fn hidden_hardware_is_not_called_missing() {
    let aes = FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq);
    for (features, hidden, words) in [
        (aes, "aes", "SEALWAY_CPU_DISABLE hides it"),
        (FeatureSet::EMPTY, "", "does not have AES"),
    ] {
        let all = recommend(&usual(), &Cpu::new(features, hidden));
        let server = all.iter().find(|advice| advice.scenario == "server").unwrap();
        assert!(server.reason.contains(words), "{}", server.reason);
    }
}

#[test]
fn short_connections_rank_by_fresh_keys() {
    let mut rows = without(Suite::ChaCha20Poly1305);
    rows.extend(ours(Suite::ChaCha20Poly1305, 6000.0, 6100.0, 100.0));
    assert_eq!(chosen(&rows, "short-connections"), ["chacha20-poly1305", "clear"]);
    assert_eq!(advised(&rows, "short-connections").because.len(), 3);
}
