//! Tables of the workload `bip324`.

use std::collections::BTreeSet;

use super::packets::{figures, names};
use super::table::Table;
use super::{Text, ratio_cell};
use crate::report::bip324::{Section, findings, sections};
use crate::report::finding;
use crate::report::view::View;

/// All tables of a run; nothing without rows.
pub(super) fn tables(out: &mut Text, view: &View<'_>, used: &mut BTreeSet<char>) {
    for section in sections(view.run) {
        table(out, view, &section, used);
    }
    for text in findings(view.run) {
        out.text.push('\n');
        out.prose("", &text);
    }
}

fn table(out: &mut Text, view: &View<'_>, section: &Section<'_>, used: &mut BTreeSet<char>) {
    let family = &section.family;
    for (place, &(metric, scale, title)) in section.blocks.iter().enumerate() {
        let subjects = family.subjects(&view.subjects, metric);
        if subjects.is_empty() {
            continue;
        }
        let compared: Vec<&str> = subjects
            .iter()
            .copied()
            .filter(|name| {
                let mut rows = family.columns.iter().filter_map(|column| column.row(name, metric));
                rows.any(|row| row.ratio.is_some())
            })
            .collect();
        let (mut table, mut ratios) = (Table::new(names(&subjects)), Table::new(names(&compared)));
        for (number, column) in family.columns.iter().enumerate() {
            table.push(&column.title, figures(family, number, &subjects, (metric, scale), used));
            let cells = compared.iter().map(|name| ratio_cell(column.row(name, metric), used));
            ratios.push(&column.title, cells.collect());
        }
        if place == 0 {
            out.heading(&format!("{}: {title}", family.title));
        } else {
            out.heading(&format!("  {title}"));
        }
        if !compared.is_empty() {
            let rows = family.columns.iter().flat_map(|column| column.all(metric));
            table.below(&format!("  speed as a ratio to {}", finding::reference(rows)), ratios);
        }
        for line in table.lines(out.width, out.style.color) {
            out.line(&line);
        }
    }
}
