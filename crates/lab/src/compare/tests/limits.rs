//! From which change on a row counts as changed.

use std::collections::BTreeMap;

use super::*;
use crate::stats::MetricKind;

#[test]
fn thresholds() {
    let kinds = [
        MetricKind::Instructions,
        MetricKind::Wall,
        MetricKind::Cpu,
        MetricKind::Tail,
        MetricKind::Memory,
    ];
    assert_eq!(kinds.map(|kind| threshold(kind, &[])), [0.002, 0.05, 0.05, 0.15, 0.02]);
    assert_eq!(
        kinds.map(|kind| threshold(kind, &[0.0; 10])),
        [0.002, 0.01, 0.01, 0.05, 0.01]
    );
    assert_eq!(threshold(MetricKind::Wall, &[0.5; 9]), 0.05, "nine are too few");
    let past: Vec<f64> = (1..=13).map(|i| -f64::from(i) / 100.0).collect();
    assert!((threshold(MetricKind::Wall, &past) - (0.10 + 3.0 * 0.06)).abs() < 1e-12);
    let mut holes = vec![f64::NAN; 5];
    holes.extend([0.5; 9]);
    assert_eq!(threshold(MetricKind::Wall, &holes), 0.05);
    let key = |found: &Comparison| found.rows[0].key.clone();
    let (old, new) = (run("a", 110.0, 100.0), run("b", 107.0, 100.0));
    let plain = compared(&old, &new);
    assert_eq!(plain.rows[0].verdict, Verdict::Same, "2.7 % is within the fixed 5 %");
    let options = Options {
        history: BTreeMap::from([(key(&plain), vec![0.002; 10])]),
        ..Options::default()
    };
    let found = compare(&old, &new, &options).unwrap();
    assert_eq!(found.rows[0].threshold, 0.01);
    assert_eq!(found.rows[0].verdict, Verdict::Slower);
}

#[test]
fn errors_of_both_runs_add_in_squares() {
    let (old, new) = (run("a", 110.0, 100.0), run("b", 110.0, 100.0));
    let found = compared(&old, &new);
    let values = |row: &ResultRow| row.values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let of = |subject: &str| {
        old.results
            .iter()
            .find(|row| row.subject == subject)
            .map(values)
            .unwrap()
    };
    let logs = crate::stats::log_ratios(&of("sealway"), &of("ring")).unwrap();
    let one = crate::stats::smallest_detectable(&logs).unwrap();
    let both = (one.ln_1p() * 2_f64.sqrt()).exp_m1();
    let row = found
        .rows
        .iter()
        .find(|row| row.key.case == old.results[0].case)
        .unwrap();
    assert!((row.mde.get() - both).abs() < 1e-12, "{row:?}");
}

#[test]
fn more_than_half_of_the_controls_must_move() {
    let moved = |count: usize| {
        let mut new = run("b", 110.0, 100.0);
        for &bytes in &SIZES[..count] {
            set(&mut new, "ring", bytes, 70.0);
            set(&mut new, "sealway", bytes, 77.0);
        }
        noted(&compared(&run("a", 110.0, 100.0), &new), "control-moved")
    };
    assert_eq!([3, 4].map(moved), [false, true]);
}
