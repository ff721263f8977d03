//! Tables of the workload `transports`.

use std::collections::BTreeSet;

use super::table::{Cell, Table};
use super::{Text, ratio_cell, signs};
use crate::format::{clean, sig3};
use crate::report::finding;
use crate::report::transports::{Entry, LOOPBACK, ROLES, against, entries};
use crate::report::view::{OURS, View};
use crate::result::ResultRow;

/// A table for each case; nothing without rows.
pub(super) fn tables(out: &mut Text, view: &View<'_>, used: &mut BTreeSet<char>) {
    let entries = entries(view.run);
    if entries.is_empty() {
        return;
    }
    out.text.push('\n');
    out.prose("", LOOPBACK);
    for entry in entries {
        table(out, view, &entry, used);
    }
}

fn table(out: &mut Text, view: &View<'_>, entry: &Entry<'_>, used: &mut BTreeSet<char>) {
    let subjects = entry.subjects(&view.subjects, "throughput");
    let mut table = Table::new(subjects.iter().map(|name| clean(name)).collect());
    let figures = |metric: &str, scale: f64, used: &mut BTreeSet<char>| -> Option<Vec<Cell>> {
        let rows: Vec<Option<&ResultRow>> = subjects.iter().map(|name| entry.row(name, metric)).collect();
        if rows.iter().all(Option::is_none) {
            return None;
        }
        let best = finding::best(&rows);
        let cells = rows.iter().zip(best).map(|(row, best)| match row {
            Some(row) => Cell {
                number: sig3(row.median.get() * scale).unwrap_or_else(|| "?".to_owned()),
                marks: signs(row, best, used),
                bold: best,
            },
            None => Cell::empty(),
        });
        Some(cells.collect())
    };
    let roles = ROLES.map(|(role, metric)| (role, metric, 1.0));
    let columns = [("Gbit/s", "throughput", 8e-9), ("s/GB", "cpu_per_gb", 1.0)]
        .into_iter()
        .chain(roles)
        .chain([("MiB", "memory", 1.0 / f64::from(1 << 20))]);
    for (title, metric, scale) in columns {
        let Some(cells) = figures(metric, scale, used) else {
            continue;
        };
        table.push(title, cells);
        if metric == "cpu_per_gb" {
            let ratios = subjects.iter().map(|name| cost_ratio(entry.row(name, metric), used));
            table.push("ratio", ratios.collect());
        }
    }
    out.heading(&entry.title());
    for line in table.lines(out.width, out.style.color) {
        out.line(&line);
    }
    if let Some(text) = against(entry, OURS) {
        out.prose("  ", &text);
    }
}

/// Cost as a ratio to the cheapest peer's: below 1 is less.
fn cost_ratio(row: Option<&ResultRow>, used: &mut BTreeSet<char>) -> Cell {
    let mut cell = ratio_cell(row, used);
    if let Some(ratio) = row.and_then(|row| row.ratio.as_ref()) {
        cell.number = sig3(ratio.estimate.get()).unwrap_or_default();
    }
    cell
}
