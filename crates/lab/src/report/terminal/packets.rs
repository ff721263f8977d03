//! Tables of the workload `packets`.

use std::collections::BTreeSet;

use super::table::{Cell, Table};
use super::{Text, ratio_cell, signs};
use crate::format::{clean, sig3};
use crate::report::finding;
use crate::report::packets::{Family, families, lanes, link};
use crate::report::view::View;
use crate::result::ResultRow;

/// All tables of a run; nothing without rows.
pub(super) fn tables(out: &mut Text, view: &View<'_>, used: &mut BTreeSet<char>) {
    for family in families(view.run) {
        rates(out, view, &family, used);
        if family.sweep {
            times(out, view, &family, used);
        }
    }
    for text in [lanes(view.run), link(view.run)].into_iter().flatten() {
        out.text.push('\n');
        out.prose("", &text);
    }
}

pub(super) fn names(subjects: &[&str]) -> Vec<String> {
    subjects.iter().map(|name| clean(name)).collect()
}

/// Figures of a metric in thousandths or millionths of its unit, and the marks of each.
pub(super) fn figures(
    family: &Family<'_>,
    column: usize,
    subjects: &[&str],
    (metric, scale): (&str, f64),
    used: &mut BTreeSet<char>,
) -> Vec<Cell> {
    let column = &family.columns[column];
    let rows: Vec<Option<&ResultRow>> = subjects.iter().map(|name| column.row(name, metric)).collect();
    let best = finding::best(&rows);
    let cells = rows.iter().zip(best).map(|(row, best)| match row {
        Some(row) => Cell {
            number: sig3(row.median.get() * scale).unwrap_or_else(|| "?".to_owned()),
            marks: signs(row, best, used),
            bold: best,
        },
        None => Cell::empty(),
    });
    cells.collect()
}

fn rates(out: &mut Text, view: &View<'_>, family: &Family<'_>, used: &mut BTreeSet<char>) {
    let subjects = family.subjects(&view.subjects, "rate");
    // The best peer can be another one in each case, so every subject that has a ratio somewhere has a line.
    let compared: Vec<&str> = subjects
        .iter()
        .copied()
        .filter(|name| {
            let mut rows = family.columns.iter().filter_map(|column| column.row(name, "rate"));
            rows.any(|row| row.ratio.is_some())
        })
        .collect();
    if subjects.is_empty() {
        return;
    }
    let (mut table, mut ratios) = (Table::new(names(&subjects)), Table::new(names(&compared)));
    for (place, column) in family.columns.iter().enumerate() {
        table.push(&column.title, figures(family, place, &subjects, ("rate", 1e-6), used));
        let cells = compared.iter().map(|name| ratio_cell(column.row(name, "rate"), used));
        ratios.push(&column.title, cells.collect());
    }
    out.heading(&format!("{}: 10^6/s", family.title));
    if !compared.is_empty() {
        let rows = family.columns.iter().flat_map(|column| column.all("rate"));
        table.below(&format!("  speed as a ratio to {}", finding::reference(rows)), ratios);
    }
    for line in table.lines(out.width, out.style.color) {
        out.line(&line);
    }
}

fn times(out: &mut Text, view: &View<'_>, family: &Family<'_>, used: &mut BTreeSet<char>) {
    let (middle, tail) = (
        family.subjects(&view.subjects, "latency_p50"),
        family.subjects(&view.subjects, "latency_p99"),
    );
    if middle.is_empty() {
        return;
    }
    let (mut table, mut below) = (Table::new(names(&middle)), Table::new(names(&tail)));
    for (place, column) in family.columns.iter().enumerate() {
        table.push(
            &column.title,
            figures(family, place, &middle, ("latency_p50", 1e6), used),
        );
        below.push(&column.title, figures(family, place, &tail, ("latency_p99", 1e6), used));
    }
    out.heading("  A batch from submission to done, in us: median");
    if !tail.is_empty() {
        table.below("  99th percentile, where a window had 1,000 batches", below);
    }
    for line in table.lines(out.width, out.style.color) {
        out.line(&line);
    }
}
