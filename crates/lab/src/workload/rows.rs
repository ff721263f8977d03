//! From windows to rows.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::metric::{self, Metric};
use crate::lens::rank::{rankable, settle};
use crate::measure::WarningCode;
use crate::measure::cpu::Method;
use crate::plan::Profile;
use crate::result::{Case, Num, ResultRow, Window};
use crate::run::{Cell, Outcome};
use crate::stats::latency::Tail;
use crate::stats::{Better, Rules, Summary, confirm, flags, log_ratios, median, ratio, signed_rank_p};

/// Figures of a window that are no metrics: a row of whose windows one has such a figure carries its name as a mark.
const MARKS: [&str; 3] = ["overloaded", "generator-bound", "link-late"];

/// Which peer the ratios of a case are to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reference {
    /// The first of these that took part.
    First(&'static [&'static str]),
    /// Of these, the one with the best median in this case: what a user who knew would take.
    Best(&'static [&'static str]),
    /// The same, or the second where none of them took part.
    BestOr(&'static [&'static str], &'static str),
}

/// How a workload reads its windows.
pub(crate) struct Scheme {
    /// The workload.
    pub(crate) name: &'static str,
    /// Hash of the numbers that define it.
    pub(crate) def: String,
    /// Metrics of a case. The first carries the ratio, and those that are `related`; one that says the same another way needs
    /// none.
    pub(crate) metrics: fn(&Case) -> &'static [Metric],
    pub(crate) reference: Reference,
    /// Peers that the user brought along: they may be the best as well as those of `reference`.
    pub(crate) guests: Vec<String>,
    /// The clock that the cost of a window is read from.
    pub(crate) method: fn(&Case, &str) -> Method,
    /// How the outputs of a cell are checked.
    pub(crate) verified: fn(&Case, &str) -> &'static str,
    /// Looks at all rows together, when each is known and none has a ratio yet.
    pub(crate) finish: fn(&mut [ResultRow]),
}

impl Scheme {
    /// A scheme that reads windows by the wall, of outputs that are all compared.
    pub(crate) fn new(
        name: &'static str,
        def: String,
        metrics: fn(&Case) -> &'static [Metric],
        reference: Reference,
    ) -> Scheme {
        Scheme {
            name,
            def,
            metrics,
            reference,
            guests: Vec::new(),
            method: |_, _| Method::Wall,
            verified: |_, _| "full",
            finish: |_| {},
        }
    }
}

/// The cells of a run, by name, and how to summarise them.
pub(crate) struct Table {
    cells: Vec<(Case, String)>,
    scheme: Scheme,
    intervals: bool,
}

impl Table {
    pub(crate) fn new(cells: &[Cell], scheme: Scheme, profile: Profile) -> Table {
        let cells = cells
            .iter()
            .map(|cell| (cell.case.clone(), cell.subject.clone()))
            .collect();
        Table {
            cells,
            scheme,
            intervals: profile.intervals(),
        }
    }

    /// One row per cell and metric, by suite, operation, size or batch, and subject as the cells stand; cells without a
    /// figure have none.
    pub(crate) fn rows(&self, outcome: &Outcome) -> Vec<ResultRow> {
        let mut cases: BTreeMap<(String, String, i64, String), Vec<usize>> = BTreeMap::new();
        for (index, (case, _)) in self.cells.iter().enumerate() {
            let text = |name| case.text(name).unwrap_or_default().to_owned();
            let number = case.int("bytes").or(case.int("batch")).unwrap_or(0);
            let key = (text("suite"), text("op"), number, case.canonical());
            cases.entry(key).or_default().push(index);
        }
        let mut rows: Vec<ResultRow> = Vec::new();
        let mut related: Vec<(Range<usize>, &Metric)> = Vec::new();
        for cells in cases.values() {
            for (metric, ratios, mut table) in self.case_tables(cells, outcome) {
                let start = rows.len();
                rows.append(&mut table);
                if ratios {
                    related.push((start..rows.len(), metric));
                }
            }
        }
        // Marks come first: they say who may be ranked, and who may be the reference.
        (self.scheme.finish)(&mut rows);
        for (table, metric) in related {
            self.relate(&mut rows[table], metric);
        }
        self.confirm(&mut rows);
        rows
    }

    /// The rows of one case: its metrics, whether they have ratios, and in each of them its subjects.
    fn case_tables(&self, cells: &[usize], outcome: &Outcome) -> Vec<(&'static Metric, bool, Vec<ResultRow>)> {
        let by_round = |&cell: &usize| -> (usize, BTreeMap<u32, &Window>) {
            let windows = outcome.counted(cell);
            (cell, windows.map(|window| (window.round, window)).collect())
        };
        let mut windows: Vec<_> = cells.iter().map(by_round).collect();
        windows.retain(|(_, windows)| !windows.is_empty());
        // A round that one subject has and another has not keeps its place, or pairs would shift.
        let rounds: BTreeSet<u32> = windows
            .iter()
            .flat_map(|(_, windows)| windows.keys().copied())
            .collect();
        let Some(&first) = cells.first() else { return Vec::new() };
        let metrics = (self.scheme.metrics)(&self.cells[first].0);
        let mut tables = Vec::new();
        for (i, metric) in metrics.iter().chain(metric::counters(metrics)).enumerate() {
            let table: Vec<ResultRow> = windows
                .iter()
                .filter_map(|(cell, windows)| {
                    let method = self.method(*cell);
                    // Cycles are one thread's. Elsewhere others work as well, and their part would be missing.
                    if metric.method == Some(Method::Counter) && method != Method::Thread {
                        return None;
                    }
                    let case = &self.cells[*cell].0;
                    let value = |window: &Window| match metric.percentile {
                        Some(percentile) => {
                            let tail = outcome.tail_of(window, percentile.of);
                            tail.map_or(f64::NAN, |tail| percentile.of_round(tail, case))
                        }
                        None => metric.value(window, cost(window, method)),
                    };
                    let value = |round| windows.get(round).map_or(f64::NAN, |window| value(window));
                    let values: Vec<f64> = rounds.iter().map(value).collect();
                    let pooled = match metric.percentile {
                        Some(percentile) => {
                            let tails = windows.values().filter_map(|w| outcome.tail_of(w, percentile.of));
                            Some(percentile.of_all(&Tail::merged(tails), case)?)
                        }
                        None => None,
                    };
                    let known = values.iter().any(|value| !value.is_nan());
                    known.then(|| {
                        let mut row = self.row(*cell, metric, values);
                        if let Some(pooled) = pooled {
                            of_samples(&mut row, pooled);
                        }
                        let marked = |mark: &&str| windows.values().any(|window| window.figures.contains_key(*mark));
                        let marks = MARKS.iter().copied().filter(marked);
                        row.flags.extend(marks.map(str::to_owned));
                        row
                    })
                })
                .collect();
            // The others are the first read another way, or have no peer: one ratio says it all.
            tables.push((metric, i == 0 || metric.related, table));
        }
        tables
    }

    fn row(&self, cell: usize, metric: &Metric, values: Vec<f64>) -> ResultRow {
        let (case, subject) = &self.cells[cell];
        let method = metric.method.unwrap_or(self.method(cell));
        let mut row = ResultRow {
            workload: self.scheme.name.to_owned(),
            workload_def: self.scheme.def.clone(),
            subject: subject.clone(),
            case: case.clone(),
            metric: metric.name.to_owned(),
            unit: metric.unit.to_owned(),
            better: metric.better.as_str().to_owned(),
            over: "rounds".to_owned(),
            values: values.iter().copied().map(Num).collect(),
            method: method.letter().to_string(),
            verified: (self.scheme.verified)(case, subject).to_owned(),
            flags: flags(&values),
            ..ResultRow::default()
        };
        let summarise = if self.intervals { Summary::of } else { Summary::range };
        summarise(&values).store(&mut row);
        row
    }

    fn method(&self, cell: usize) -> Method {
        let (case, subject) = &self.cells[cell];
        (self.scheme.method)(case, subject)
    }

    /// The row that the ratios of a case are to.
    fn reference(&self, table: &[ResultRow], better: Better) -> Option<usize> {
        let place = |name: &str| table.iter().position(|row| row.subject == name);
        let guests = || self.scheme.guests.iter().map(String::as_str);
        let best = |names: &[&str]| {
            let mut places: Vec<usize> = names.iter().copied().chain(guests()).filter_map(place).collect();
            // Who does not do the work of the others is nothing to stand to, whoever else there is.
            places.retain(|i| {
                table[*i]
                    .flags
                    .iter()
                    .all(|flag| flag != WarningCode::Unauthenticated.code())
            });
            // Figures that mean nothing are what others stand to only where there is nothing else.
            if places.iter().any(|i| rankable(&table[*i])) {
                places.retain(|i| rankable(&table[*i]));
            }
            places
                .into_iter()
                .filter_map(|i| Some((i, better.goodness(median(&table[i].numbers())?.ln()))))
                // A figure of nothing, or of less, has no ratios.
                .filter(|(_, goodness)| goodness.is_finite())
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map(|(i, _)| i)
        };
        match self.scheme.reference {
            Reference::First(names) => names.iter().copied().find_map(place),
            Reference::Best(names) => best(names),
            Reference::BestOr(names, other) => best(names).or_else(|| place(other)),
        }
    }

    /// Gives every row but the reference its ratio to the reference.
    fn relate(&self, table: &mut [ResultRow], metric: &Metric) {
        let Some(reference) = self.reference(table, metric.better) else {
            return;
        };
        let theirs = table[reference].clone();
        let numbers = theirs.numbers();
        let rules = Rules {
            intervals: self.intervals,
            ..Rules::of(metric.name)
        };
        for (_, row) in table.iter_mut().enumerate().filter(|(i, _)| *i != reference) {
            let mut found = ratio(&theirs.subject, &row.numbers(), &numbers, metric.better, rules);
            settle(&mut found, row, &theirs);
            row.ratio = Some(found);
        }
    }

    /// With many ratios in a table, some would win by luck: those are taken back.
    fn confirm(&self, rows: &mut [ResultRow]) {
        if !self.intervals {
            return;
        }
        let key = |row: &ResultRow, subject: &str| (row.case.canonical(), row.metric.clone(), subject.to_owned());
        let values = rows.iter().map(|row| (key(row, &row.subject), row.numbers()));
        let values: BTreeMap<_, Vec<f64>> = values.collect();
        let ratios = rows.iter_mut().filter_map(|row| {
            let theirs = values.get(&key(row, &row.ratio.as_ref()?.to))?;
            let p = log_ratios(&row.numbers(), theirs).and_then(|logs| signed_rank_p(&logs));
            Some((row.ratio.as_mut()?, p))
        });
        confirm(&mut ratios.collect::<Vec<_>>());
    }
}

/// Makes the figure of a row that of all samples together. Its ends are those of the rounds, between which it lies.
fn of_samples(row: &mut ResultRow, pooled: f64) {
    Summary::range(&row.numbers()).store(row);
    row.median = Num(pooled);
    "samples".clone_into(&mut row.over);
}

/// Seconds that the work of a window took: CPU time, unless the case is read by the wall or there is no clock for it.
fn cost(window: &Window, method: Method) -> f64 {
    if method != Method::Wall && window.cpu_s > 0.0 {
        window.cpu_s
    } else {
        window.wall_s
    }
}

#[cfg(test)]
mod tests;
