//! Recommendations from rows made by hand.

use sealway_aead::cpu::FeatureSet;

use super::*;
use crate::result::{Case, Num};

const ROUNDS: usize = 9;

fn row(subject: &str, suite: Suite, op: &str, bytes: Option<i64>, metric: &str, value: f64) -> ResultRow {
    let mut case = Case::new().with("suite", suite.name()).with("op", op);
    if let Some(bytes) = bytes {
        case = case.with("bytes", bytes);
    }
    // A tenth of a per cent of noise, the same for everyone.
    let values = (0..ROUNDS)
        .map(|i| Num(value * (1.0 + 0.001 * (i % 3) as f64)))
        .collect();
    ResultRow {
        workload: "primitives".to_owned(),
        workload_def: String::new(),
        subject: subject.to_owned(),
        case,
        metric: metric.to_owned(),
        unit: String::new(),
        better: if metric == "throughput" { "higher" } else { "lower" }.to_owned(),
        over: "rounds".to_owned(),
        median: Num(value),
        mad: Num(0.0),
        low: Num(value),
        high: Num(value),
        how: "order-statistics".to_owned(),
        rounds: ROUNDS as u32,
        values,
        method: "C".to_owned(),
        verified: if subject == "openssl" { "self" } else { "full" }.to_owned(),
        ratio: None,
        flags: Vec::new(),
    }
}

/// Our rows of a suite: nanoseconds to seal and to open 16 KiB, and for a fresh key.
fn ours(suite: Suite, seal: f64, open: f64, fresh: f64) -> Vec<ResultRow> {
    let mut rows = Vec::new();
    for (op, ns) in [("seal", seal), ("open", open)] {
        rows.push(row("sealway", suite, op, Some(BULK), "cpu_per_op", ns * 1e-9));
        rows.push(row(
            "sealway",
            suite,
            op,
            Some(BULK),
            "throughput",
            BULK as f64 / (ns * 1e-9),
        ));
    }
    rows.push(row(
        "sealway",
        suite,
        "fresh-key",
        Some(256),
        "cpu_per_op",
        fresh * 1e-9,
    ));
    rows
}

fn openssl(soft_aes: f64, chacha: f64) -> Vec<ResultRow> {
    vec![
        row(
            "openssl",
            Suite::Aes256Gcm,
            "seal-without-aes",
            Some(BULK),
            "throughput",
            soft_aes,
        ),
        row(
            "openssl",
            Suite::ChaCha20Poly1305,
            "seal",
            Some(BULK),
            "throughput",
            chacha,
        ),
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

fn find<'a>(all: &'a [Recommendation], scenario: &str) -> &'a Recommendation {
    all.iter().find(|advice| advice.scenario == scenario).unwrap()
}

#[test]
fn the_dearer_end_decides_and_the_least_cost_wins() {
    let all = recommend(&usual(), &with_aes());
    let server = find(&all, "server");
    assert_eq!(
        (server.choice.as_str(), server.confidence.as_str()),
        ("aes-128-gcm", "clear")
    );
    // 1500 ns is opening, the slower end; 16384 B in 1.5 us.
    assert!(
        server
            .reason
            .contains("with aes-128-gcm each end does 10.9 GB/s or more"),
        "{}",
        server.reason
    );
    assert!(
        server
            .reason
            .contains("aes-256-gcm takes 1.13 times as long, chacha20-poly1305 4.07 times"),
        "{}",
        server.reason
    );
    assert!(
        server
            .reason
            .contains("two such ends take aes-256-gcm, for its longer key."),
        "{}",
        server.reason
    );
    // Opening dearer than sealing by far turns the order round.
    let mut rows = usual();
    rows.retain(|row| row.case.text("suite") != Some("aes-128-gcm"));
    rows.extend(ours(Suite::Aes128Gcm, 1000.0, 9000.0, 270.0));
    assert_eq!(find(&recommend(&rows, &with_aes()), "server").choice, "aes-256-gcm");
}

#[test]
fn a_tie_is_told_and_too_few_rounds_decide_nothing() {
    let mut rows = usual();
    rows.retain(|row| row.case.text("suite") != Some("aes-256-gcm"));
    rows.extend(ours(Suite::Aes256Gcm, 1401.0, 1501.0, 290.0));
    let all = recommend(&rows, &with_aes());
    let server = find(&all, "server");
    assert_eq!(
        (server.choice.as_str(), server.confidence.as_str()),
        ("aes-128-gcm or aes-256-gcm", "clear")
    );
    // With nobody clearly behind there is only the tie.
    rows.retain(|row| row.case.text("suite") != Some("chacha20-poly1305"));
    assert_eq!(find(&recommend(&rows, &with_aes()), "server").confidence, "tie");
    let mut rows = usual();
    for row in &mut rows {
        row.rounds = 2;
        row.values.truncate(2);
    }
    assert_eq!(find(&recommend(&rows, &with_aes()), "server").confidence, "unknown");
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
    let all = recommend(&rows, &with_aes());
    let server = find(&all, "server");
    assert_eq!(
        (server.choice.as_str(), server.confidence.as_str()),
        ("aes-128-gcm or aes-256-gcm", "clear")
    );
    rows.retain(|row| row.case.text("suite") != Some("aes-256-gcm"));
    assert_eq!(find(&recommend(&rows, &with_aes()), "server").confidence, "clear");
}

#[test]
fn marked_rows_do_not_decide() {
    let mut rows = usual();
    for row in rows
        .iter_mut()
        .filter(|row| row.case.text("suite") == Some("aes-128-gcm"))
    {
        row.flags.push("noisy".to_owned());
    }
    assert_eq!(find(&recommend(&rows, &with_aes()), "server").confidence, "slight");
    for row in rows
        .iter_mut()
        .filter(|row| row.case.text("suite") == Some("aes-128-gcm"))
    {
        row.flags.push("unusable".to_owned());
    }
    let all = recommend(&rows, &with_aes());
    assert_eq!(find(&all, "server").choice, "aes-256-gcm");
    assert_eq!(find(&all, "short-connections").choice, "aes-256-gcm");
}

#[test]
fn a_mixed_fleet_takes_what_loses_less() {
    let all = recommend(&usual(), &with_aes());
    let fleet = find(&all, "mixed-fleet");
    // ChaCha20 loses 3.6 times with hardware, AES 12 times without; openssl's own figures keep it from being clear.
    assert_eq!(
        (fleet.choice.as_str(), fleet.confidence.as_str()),
        ("chacha20-poly1305", "slight")
    );
    let mut rows = usual();
    rows.retain(|row| row.subject != "openssl");
    rows.extend(openssl(3.0e9, 3.6e9));
    let all = recommend(&rows, &with_aes());
    assert_eq!(find(&all, "mixed-fleet").choice, "aes-256-gcm");
    rows.retain(|row| row.subject != "openssl");
    let all = recommend(&rows, &with_aes());
    let fleet = find(&all, "mixed-fleet");
    assert_eq!(
        (fleet.choice.as_str(), fleet.confidence.as_str()),
        ("chacha20-poly1305", "unknown")
    );
    assert!(fleet.reason.contains("was not measured"));
    assert!(
        all.iter().all(|advice| advice.scenario != "mobile"),
        "nothing to say about machines without AES"
    );
}

#[test]
fn mobile_follows_the_figures() {
    let all = recommend(&usual(), &with_aes());
    let mobile = find(&all, "mobile");
    assert_eq!(mobile.choice, "chacha20-poly1305");
    assert!(
        mobile.reason.contains("0.300 GB/s") && mobile.reason.contains("12.0 times as fast"),
        "{}",
        mobile.reason
    );
}

#[test]
fn hidden_hardware_is_not_called_missing() {
    let hidden = Cpu::new(FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq), "aes");
    let all = recommend(&usual(), &hidden);
    assert!(find(&all, "server").reason.contains("SEALWAY_CPU_DISABLE hides it"));
    let none = Cpu::new(FeatureSet::EMPTY, "");
    assert!(
        find(&recommend(&usual(), &none), "server")
            .reason
            .contains("does not have AES")
    );
}

#[test]
fn short_connections_rank_by_fresh_keys() {
    let mut rows = usual();
    rows.retain(|row| row.case.text("suite") != Some("chacha20-poly1305"));
    rows.extend(ours(Suite::ChaCha20Poly1305, 6000.0, 6100.0, 100.0));
    let all = recommend(&rows, &with_aes());
    let short = find(&all, "short-connections");
    assert_eq!(
        (short.choice.as_str(), short.confidence.as_str()),
        ("chacha20-poly1305", "clear")
    );
    assert_eq!(short.because.len(), 3);
}
