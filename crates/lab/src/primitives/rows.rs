//! From windows to rows.

use std::collections::BTreeMap;

use super::{NAME, openssl};
use crate::measure::cpu::Method;
use crate::plan::Profile;
use crate::result::{Case, Num, ResultRow, Window};
use crate::run::{Cell, Outcome};
use crate::stats::{Better, Rules, Summary, confirm, flags, log_ratios, ratio, signed_rank_p};

/// Peers in the order in which they are taken as the reference of a case.
const REFERENCES: [&str; 4] = ["aws-lc-rs", "ring", "rustcrypto", "openssl"];

/// What a metric makes of a window.
struct Metric {
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&Window, f64) -> f64,
}

const THROUGHPUT: Metric = Metric {
    name: "throughput",
    unit: "B/s",
    better: Better::Higher,
    value: |window, s| window.bytes as f64 / s,
};
const CPU_PER_OP: Metric = Metric {
    name: "cpu_per_op",
    unit: "s/op",
    better: Better::Lower,
    value: |window, s| s / window.ops as f64,
};
const SETUP_TIME: Metric = Metric {
    name: "setup_time",
    ..CPU_PER_OP
};

/// The cells of a run, by name, and how to summarise them.
pub(super) struct Table {
    cells: Vec<(Case, String)>,
    workload_def: String,
    intervals: bool,
}

impl Table {
    pub(super) fn new(cells: &[Box<dyn Cell>], workload_def: String, profile: Profile) -> Table {
        let cells = cells
            .iter()
            .map(|cell| (cell.case().clone(), cell.subject().to_owned()))
            .collect();
        Table {
            cells,
            workload_def,
            intervals: profile.intervals(),
        }
    }

    /// One row per cell and metric, by suite, operation, size and subject as the cells stand; cells without a figure have
    /// none.
    pub(super) fn rows(&self, outcome: &Outcome) -> Vec<ResultRow> {
        let mut cases: BTreeMap<(String, String, i64), Vec<usize>> = BTreeMap::new();
        for (index, (case, _)) in self.cells.iter().enumerate() {
            let text = |name| case.text(name).unwrap_or_default().to_owned();
            let key = (text("suite"), text("op"), case.int("bytes").unwrap_or(0));
            cases.entry(key).or_default().push(index);
        }
        let mut rows: Vec<ResultRow> = cases
            .values()
            .flat_map(|cells| self.case_rows(cells, outcome))
            .collect();
        self.confirm(&mut rows);
        rows
    }

    /// The rows of one case: its metrics, and in each of them its subjects.
    fn case_rows(&self, cells: &[usize], outcome: &Outcome) -> Vec<ResultRow> {
        let windows: Vec<(usize, BTreeMap<u32, &Window>)> = cells
            .iter()
            .map(|&cell| {
                (
                    cell,
                    outcome
                        .counted(cell)
                        .map(|window| (window.round, window))
                        .collect::<BTreeMap<_, _>>(),
                )
            })
            .filter(|(_, windows)| !windows.is_empty())
            .collect();
        // A round that one subject has and another has not keeps its place, or pairs would shift.
        let mut rounds: Vec<u32> = windows
            .iter()
            .flat_map(|(_, windows)| windows.keys().copied())
            .collect();
        rounds.sort_unstable();
        rounds.dedup();
        let op = cells.first().and_then(|&cell| self.cells[cell].0.text("op"));
        let metrics: &[Metric] = match op {
            Some("key-setup") => &[SETUP_TIME],
            Some("fresh-key") => &[CPU_PER_OP],
            _ => &[THROUGHPUT, CPU_PER_OP],
        };
        let mut rows = Vec::new();
        for (i, metric) in metrics.iter().enumerate() {
            let mut table: Vec<ResultRow> = windows
                .iter()
                .map(|(cell, windows)| {
                    let value = |round| {
                        windows
                            .get(round)
                            .map_or(f64::NAN, |window| (metric.value)(window, cost(window)))
                    };
                    self.row(*cell, metric, rounds.iter().map(value).collect())
                })
                .collect();
            // The time of a message is its throughput read the other way: one ratio says both.
            if i == 0 {
                self.relate(&mut table, metric);
            }
            rows.append(&mut table);
        }
        rows
    }

    fn row(&self, cell: usize, metric: &Metric, values: Vec<f64>) -> ResultRow {
        let (case, subject) = &self.cells[cell];
        let is_program = subject == openssl::NAME;
        let method = if is_program { Method::Wall } else { Method::Thread };
        let mut row = ResultRow {
            workload: NAME.to_owned(),
            workload_def: self.workload_def.clone(),
            subject: subject.clone(),
            case: case.clone(),
            metric: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            better: metric.better.as_str().to_owned(),
            median: Num(f64::NAN),
            mad: Num(f64::NAN),
            low: Num(f64::NAN),
            high: Num(f64::NAN),
            how: String::new(),
            rounds: 0,
            values: values.iter().copied().map(Num).collect(),
            method: method.letter().to_string(),
            verified: verified(case, is_program).to_owned(),
            ratio: None,
            flags: flags(&values),
        };
        let summary = if self.intervals {
            Summary::of(&values)
        } else {
            Summary::range(&values)
        };
        summary.store(&mut row);
        row
    }

    /// Gives every row but the reference its ratio to the reference.
    fn relate(&self, table: &mut [ResultRow], metric: &Metric) {
        let reference = REFERENCES
            .iter()
            .find_map(|name| table.iter().position(|row| row.subject == *name));
        let Some(reference) = reference else { return };
        let theirs = numbers(&table[reference]);
        let name = table[reference].subject.clone();
        let rules = Rules::of(metric.name);
        let rules = if self.intervals {
            rules
        } else {
            rules.without_intervals()
        };
        for (_, row) in table.iter_mut().enumerate().filter(|(i, _)| *i != reference) {
            row.ratio = Some(ratio(&name, &numbers(row), &theirs, metric.better, rules));
        }
    }

    /// With many ratios in a table, some would win by luck: those are taken back.
    fn confirm(&self, rows: &mut [ResultRow]) {
        if !self.intervals {
            return;
        }
        let references: BTreeMap<(String, String, String), Vec<f64>> = rows
            .iter()
            .map(|row| {
                (
                    (row.case.canonical(), row.metric.clone(), row.subject.clone()),
                    numbers(row),
                )
            })
            .collect();
        let mut table: Vec<_> = rows
            .iter_mut()
            .filter_map(|row| {
                let ours = numbers(row);
                let key = (row.case.canonical(), row.metric.clone(), row.ratio.as_ref()?.to.clone());
                let p = log_ratios(&ours, references.get(&key)?).and_then(|logs| signed_rank_p(&logs));
                row.ratio.as_mut().map(|ratio| (ratio, p))
            })
            .collect();
        confirm(&mut table);
    }
}

/// How the outputs of a cell are checked.
fn verified(case: &Case, is_program: bool) -> &'static str {
    match case.text("op") {
        _ if is_program => "self",
        Some("key-setup") => "sampled",
        _ => "full",
    }
}

/// Seconds that the work of a window took: CPU time where there is a clock for it.
fn cost(window: &Window) -> f64 {
    if window.cpu_s > 0.0 {
        window.cpu_s
    } else {
        window.wall_s
    }
}

fn numbers(row: &ResultRow) -> Vec<f64> {
    row.values.iter().map(|value| value.get()).collect()
}
