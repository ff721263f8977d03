//! A published order, with the order of this run beside it.

use super::claim::Figure;
use super::{row_ratio, sound};
use crate::format::count;
use crate::lens::rank::ahead;
use crate::result::{self, Load, Placed, Ranked, ResultRow, RunResult, in_order};
use crate::stats::Better;

/// What was published, best first.
#[derive(Debug)]
pub(super) struct Ranking {
    pub(super) title: &'static str,
    /// Place of its source in the recipe, from 1.
    pub(super) source: u32,
    /// Unit of the published figures.
    pub(super) unit: &'static str,
    /// What each is here, and the published figure.
    pub(super) entries: &'static [(Figure, f64)],
    /// What was named with them, and no figure given of. Here it has a place among them.
    pub(super) unpublished: &'static [Figure],
    /// The metrics by which ours are put in order.
    pub(super) metrics: &'static [&'static str],
}

impl Ranking {
    pub(super) fn evaluate(&self, run: &RunResult) -> result::Ranking {
        let entries = self.figures().map(|(figure, published)| Ranked {
            name: figure.label.to_owned(),
            published,
            places: Vec::new(),
            loads: loads(figure, run),
        });
        let mut ranking = result::Ranking {
            title: self.title.to_owned(),
            source: self.source,
            unit: self.unit.to_owned(),
            entries: entries.collect(),
            agreement: Vec::new(),
        };
        for subject in run.subjects.iter().map(|subject| subject.name.as_str()) {
            for metric in self.metrics {
                let rows = self.rows(run, subject, metric);
                // An order of one says nothing.
                if rows.len() > 1 {
                    self.place(run, &rows, &mut ranking);
                }
            }
        }
        ranking
    }

    /// Every entry, and what was published of it.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&Figure, Option<f64>)> {
        let published = self
            .entries
            .iter()
            .map(|(figure, published)| (figure, Some(*published)));
        published.chain(self.unpublished.iter().map(|figure| (figure, None)))
    }

    /// The rows of a subject that may be ranked, in the published order, with their places in it.
    fn rows<'r>(&self, run: &'r RunResult, subject: &str, metric: &str) -> Vec<(usize, &'r ResultRow)> {
        let entries = self.figures().enumerate();
        let rows = entries.filter_map(|(entry, (figure, _))| {
            let row = figure.rows(run, metric).find(|row| row.subject == subject)?;
            sound(row).then_some((entry, row))
        });
        rows.collect()
    }

    /// Puts the rows of a subject in order.
    fn place(&self, run: &RunResult, rows: &[(usize, &ResultRow)], ranking: &mut result::Ranking) {
        let Some((_, first)) = rows.first() else { return };
        let mut order = rows.to_vec();
        order.sort_by(|(_, a), (_, b)| ahead(a, b).total_cmp(&1.0).reverse());
        let mut before: Option<&ResultRow> = None;
        for (place, (entry, row)) in (1..).zip(order) {
            ranking.entries[entry].places.push(Placed {
                subject: row.subject.clone(),
                metric: row.metric.clone(),
                place,
                tied: before.is_some_and(|before| leads(run, before, row).is_none()),
                median: row.median,
            });
            before = Some(row);
        }
        let (mut kept, mut reversed) = (0, 0);
        let published = |entry: usize| self.entries.get(entry).map(|(_, published)| *published);
        let neighbours = rows.windows(2).filter(|pair| {
            let both = published(pair[0].0).zip(published(pair[1].0));
            both.is_some_and(|(better, worse)| in_order(better, worse))
        });
        let leading: Vec<Option<bool>> = neighbours.map(|pair| leads(run, pair[0].1, pair[1].1)).collect();
        let pairs = leading.len();
        if pairs == 0 {
            return;
        }
        for leads in leading.into_iter().flatten() {
            *if leads { &mut kept } else { &mut reversed } += 1;
        }
        ranking.agreement.push(format!(
            "{} by {}: of {} of neighbours in the published order {kept} stand in it here, {reversed} the other way \
             round, {} are not told apart.",
            first.subject,
            first.metric,
            count(pairs, "pair"),
            pairs - kept - reversed
        ));
    }
}

/// What each process of an entry kept busy, by subject.
fn loads(figure: &Figure, run: &RunResult) -> Vec<Load> {
    let mut loads = Vec::new();
    for subject in run.subjects.iter().map(|subject| subject.name.as_str()) {
        for process in ["client", "front", "server"] {
            let median = |metric: String| {
                let row = figure.rows(run, &metric).find(|row| row.subject == subject)?;
                Some(row.median)
            };
            let average = median(format!("cpu_busy_{process}"));
            if let Some((average, peak)) = average.zip(median(format!("cpu_busy_peak_{process}"))) {
                loads.push(Load {
                    subject: subject.to_owned(),
                    process: process.to_owned(),
                    average,
                    peak,
                });
            }
        }
    }
    loads
}

/// Whether `a` is better than `b` in the same rounds; `None` where these do not tell.
fn leads(run: &RunResult, a: &ResultRow, b: &ResultRow) -> Option<bool> {
    let better = Better::parse(&a.better)?;
    match row_ratio(run, &a.metric, [a, b], better).0.verdict.as_str() {
        "faster" => Some(true),
        "slower" => Some(false),
        _ => None,
    }
}
