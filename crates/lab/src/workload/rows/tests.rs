#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::run::{CellError, Counted, Timed};
use crate::stats::latency::Latency;
use crate::workload::metric;

struct Still;

impl Timed for Still {
    fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
        Err(CellError::failed("not visited here"))
    }
}

const METRICS: &[Metric] = &[
    metric::RATE,
    Metric::lower("latency_p99", "s").percentile("latency", 0.99).related(),
    Metric::lower("latency_p99.9", "s").percentile("latency", 0.999),
    Metric::lower("latency_max", "s").percentile("latency", 1.0),
];

fn table(subjects: &[&str]) -> Table {
    let cells: Vec<Cell> = subjects
        .iter()
        .map(|name| Cell::new(Case::new(), name, Still))
        .collect();
    let scheme = Scheme::new("requests", String::new(), |_| METRICS, Reference::First(&["peer"]));
    Table::new(&cells, scheme, Profile::Standard)
}

/// One more window of a cell: so many exchanges of so many microseconds each, and one that took longer.
fn add(outcome: &mut Outcome, cell: usize, round: u32, exchanges: u64, us: u64, longest_us: u64) {
    let mut latency = Latency::new();
    (1..exchanges).for_each(|_| latency.record(us * 1000));
    latency.record(longest_us * 1000);
    outcome.windows.push(Window {
        round,
        order: u32::try_from(outcome.windows.len()).unwrap(),
        wall_s: 1.0,
        ops: exchanges,
        ..Window::default()
    });
    outcome.cells.push(cell);
    outcome.tails.push(vec![("latency", latency.tail())]);
}

fn named<'a>(rows: &'a [ResultRow], subject: &str, metric: &str) -> &'a ResultRow {
    rows.iter()
        .find(|row| row.subject == subject && row.metric == metric)
        .unwrap()
}

#[test]
fn a_slow_round_with_few_samples_stays_in_the_tail() {
    let mut outcome = Outcome::default();
    for round in 0..3 {
        // The second round stood still: too few samples for a percentile of its own.
        let (exchanges, us) = if round == 1 { (90, 12_000) } else { (5000, 1000) };
        add(
            &mut outcome,
            0,
            round,
            exchanges,
            us,
            if round == 1 { 110_000 } else { us },
        );
    }
    let rows = table(&["sealway"]).rows(&outcome);
    let figure = |metric: &str| named(&rows, "sealway", metric).median.get() * 1e6;
    let near = |metric: &str, us: f64| (figure(metric) / us - 1.0).abs() < 0.001;
    assert!(near("latency_p99", 1000.0), "{}", figure("latency_p99"));
    assert!(near("latency_p99.9", 12_000.0), "{}", figure("latency_p99.9"));
    assert_eq!(figure("latency_max").round(), 110_000.0);
    let row = named(&rows, "sealway", "latency_p99.9");
    assert_eq!((row.over.as_str(), row.how.as_str()), ("samples", "range"));
    assert_eq!(row.rounds, 3, "{:?}", row.values);
    assert!(row.low.get() <= row.median.get() && row.median.get() <= row.high.get());
    assert_eq!(named(&rows, "sealway", "rate").over, "rounds");
}

#[test]
fn a_percentile_without_enough_samples_in_all_rounds_has_no_row() {
    let mut outcome = Outcome::default();
    (0..3).for_each(|round| add(&mut outcome, 0, round, 400, 1000, 1000));
    let rows = table(&["sealway"]).rows(&outcome);
    assert!(
        rows.iter().any(|row| row.metric == "latency_p99"),
        "1,200 samples in all"
    );
    assert!(rows.iter().all(|row| row.metric != "latency_p99.9"));
}

#[test]
fn every_round_has_its_place_in_the_ratio_of_tails() {
    let mut outcome = Outcome::default();
    for round in 0..9 {
        // Half of our rounds are slow and have few samples; the peer is calm.
        let slow = round % 2 == 0;
        add(
            &mut outcome,
            0,
            round,
            if slow { 200 } else { 5000 },
            if slow { 4000 } else { 1000 },
            5000,
        );
        add(&mut outcome, 1, round, 5000, 1000, 1000);
    }
    let rows = table(&["sealway", "peer"]).rows(&outcome);
    let ratio = named(&rows, "sealway", "latency_p99").ratio.clone().unwrap();
    assert!(ratio.high.get() > 3.5, "{ratio:?}");
}

/// Rates of nine rounds of a subject, as windows.
fn rates(outcome: &mut Outcome, cell: usize, of: impl Fn(u32) -> u64) {
    (0..9).for_each(|round| add(outcome, cell, round, of(round), 1000, 1000));
}

#[test]
fn who_may_not_be_ranked_is_no_reference_and_wins_only_from_far() {
    let scheme = || {
        let reference = Reference::Best(&["steady", "wild"]);
        Scheme::new("requests", String::new(), |_| &METRICS[..1], reference)
    };
    let cells = ["sealway", "wild", "steady"].map(|name| Cell::new(Case::new(), name, Still));
    let mut outcome = Outcome::default();
    rates(&mut outcome, 0, |_| 4000);
    rates(&mut outcome, 1, |round| 3000 + 400 * u64::from(round));
    rates(&mut outcome, 2, |_| 2000);
    let rows = Table::new(&cells, scheme(), Profile::Standard).rows(&outcome);
    assert_eq!(named(&rows, "wild", "rate").flags, ["unusable"]);
    let ratio = |subject: &str| named(&rows, subject, "rate").ratio.clone().unwrap();
    assert_eq!(ratio("sealway").to.as_str(), "steady");
    assert_eq!(ratio("sealway").verdict.as_str(), "faster");
    assert_eq!(ratio("wild").to.as_str(), "steady");
    // Slowest and fastest round alike are far ahead: noise says nothing against that.
    assert_eq!(ratio("wild").verdict.as_str(), "faster");

    // One that the user brought along is a peer as well.
    let brought = Scheme {
        guests: vec!["wild".to_owned(), "steady".to_owned()],
        reference: Reference::Best(&["absent"]),
        ..scheme()
    };
    let rows = Table::new(&cells, brought, Profile::Standard).rows(&outcome);
    assert_eq!(named(&rows, "sealway", "rate").ratio.clone().unwrap().to, "steady");

    // With nobody else to stand to, nothing is decided.
    let rows = Table::new(&cells[..2], scheme(), Profile::Standard).rows(&Outcome {
        windows: outcome.windows[..18].to_vec(),
        cells: outcome.cells[..18].to_vec(),
        tails: outcome.tails[..18].to_vec(),
        ..Outcome::default()
    });
    let ratio = named(&rows, "sealway", "rate").ratio.clone().unwrap();
    assert_eq!((ratio.to.as_str(), ratio.verdict.as_str()), ("wild", "unknown"));
}

#[test]
fn energy_has_rows_where_windows_have_it() {
    let mut outcome = Outcome::default();
    for round in 0..3 {
        add(&mut outcome, 0, round, 1000, 10, 10);
        add(&mut outcome, 1, round, 1000, 10, 10);
    }
    let rows = |outcome: &Outcome| table(&["sealway", "peer"]).rows(outcome);
    assert!(rows(&outcome).iter().all(|row| !row.metric.starts_with("energy")));
    for window in &mut outcome.windows {
        window.figures.insert("energy".to_owned(), Num(2.5));
    }
    let found = rows(&outcome);
    let row = named(&found, "sealway", "energy_per_op");
    assert_eq!(row.median.get(), 0.0025);
    assert_eq!(row.unit.as_str(), "J/op");
    assert_eq!(row.better.as_str(), "lower");
    assert_eq!(row.method.as_str(), "E");
    assert!(row.ratio.is_none());
    // It is shared out over what the case is about.
    let over =
        |first: Metric| -> Vec<&'static str> { metric::counters(&[first]).iter().map(|metric| metric.name).collect() };
    assert_eq!(over(metric::THROUGHPUT), ["energy_per_byte", "cycles_per_byte"]);
    assert_eq!(over(metric::SETUP_TIME), ["energy_per_op", "cycles_per_op"]);
    assert!(over(Metric::lower("memory_per_connection", "B")).is_empty());
}

#[test]
fn cycles_have_rows_where_one_thread_does_the_work() {
    let scheme = Scheme {
        method: |_, subject| match subject {
            "sealway" => Method::Thread,
            _ => Method::Wall,
        },
        ..Scheme::new("requests", String::new(), |_| METRICS, Reference::First(&["peer"]))
    };
    let cells = ["sealway", "peer"].map(|name| Cell::new(Case::new(), name, Still));
    let mut outcome = Outcome::default();
    for round in 0..3 {
        add(&mut outcome, 0, round, 1000, 10, 10);
        add(&mut outcome, 1, round, 1000, 10, 10);
    }
    // One round without: counters took turns.
    for window in &mut outcome.windows[2..] {
        window.figures.insert("cycles".to_owned(), Num(5000.0));
    }
    let rows = Table::new(&cells, scheme, Profile::Standard).rows(&outcome);
    let cycles: Vec<&ResultRow> = rows.iter().filter(|row| row.metric == "cycles_per_op").collect();
    let [row] = cycles[..] else { panic!("{cycles:?}") };
    assert_eq!((row.subject.as_str(), row.unit.as_str()), ("sealway", "cycles/op"));
    assert_eq!((row.median.get(), row.method.as_str()), (5.0, "H"));
    assert!(row.ratio.is_none());
    assert!(row.values[0].get().is_nan(), "{:?}", row.values);
}

#[test]
fn who_does_not_seal_is_never_the_reference() {
    let scheme = |reference| Scheme {
        finish: |rows| {
            let forged = rows.iter_mut().filter(|row| row.subject == "open");
            forged.for_each(|row| row.flags.push("unauthenticated".to_owned()));
        },
        ..Scheme::new("requests", String::new(), |_| &METRICS[..1], reference)
    };
    let cells = ["sealway", "open", "direct"].map(|name| Cell::new(Case::new(), name, Still));
    let mut outcome = Outcome::default();
    for (cell, rate) in [2000, 3000, 9000].into_iter().enumerate() {
        rates(&mut outcome, cell, |_| rate);
    }
    let rows = |reference| Table::new(&cells, scheme(reference), Profile::Standard).rows(&outcome);
    let alone = rows(Reference::Best(&["open"]));
    assert!(alone.iter().all(|row| row.ratio.is_none()), "{alone:?}");
    let beside = rows(Reference::BestOr(&["open"], "direct"));
    assert_eq!(named(&beside, "sealway", "rate").ratio.clone().unwrap().to, "direct");
    assert_eq!(named(&beside, "open", "rate").ratio.clone().unwrap().verdict, "unknown");
}

#[test]
fn who_was_late_over_a_link_is_no_reference() {
    let scheme = Scheme::new(
        "requests",
        String::new(),
        |_| &METRICS[..1],
        Reference::Best(&["late", "kept"]),
    );
    let cells = ["sealway", "late", "kept"].map(|name| Cell::new(Case::new(), name, Still));
    let mut outcome = Outcome::default();
    for (cell, rate) in [4000, 3000, 2000].into_iter().enumerate() {
        rates(&mut outcome, cell, |_| rate);
    }
    // In one of its nine windows.
    outcome.windows[12].figures.insert("link-late".to_owned(), Num(1.0));
    let rows = Table::new(&cells, scheme, Profile::Standard).rows(&outcome);
    assert_eq!(named(&rows, "late", "rate").flags, ["link-late"]);
    assert_eq!(named(&rows, "sealway", "rate").ratio.clone().unwrap().to, "kept");
    assert_eq!(named(&rows, "late", "rate").ratio.clone().unwrap().verdict, "unknown");
}
