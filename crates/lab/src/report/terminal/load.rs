//! Tables of the workloads `requests`, `flows` and `files`: one for each case, a row for each subject.

use std::collections::BTreeSet;

use super::table::{Cell, Table};
use super::{Text, ratio_cell, signs};
use crate::format::clean;
use crate::report::finding;
use crate::report::load::{COMPARED, DIRECT, Family, LOADS, Shown, families, number, reading};
use crate::report::view::View;
use crate::result::ResultRow;

/// All tables of a run; nothing without rows.
pub(super) fn tables(out: &mut Text, view: &View<'_>, used: &mut BTreeSet<char>) {
    let mut said = "";
    for workload in LOADS {
        let families = families(view.run, workload);
        if families.is_empty() {
            continue;
        }
        let words = reading(workload);
        if words != said {
            out.text.push('\n');
            out.prose("", words);
            said = words;
        }
        for family in &families {
            case(out, view, family, used);
        }
    }
}

fn case(out: &mut Text, view: &View<'_>, family: &Family<'_>, used: &mut BTreeSet<char>) {
    let subjects = family.subjects(&view.subjects);
    let mut table = Table::new(subjects.iter().map(|name| clean(name)).collect());
    for shown in family.shown() {
        table.push(shown.title, figures(family, &subjects, shown, used));
        if COMPARED.contains(&shown.metric) {
            let cells: Vec<Cell> = subjects
                .iter()
                .map(|name| ratio_cell(family.row(name, shown.metric).filter(|_| *name != DIRECT), used))
                .collect();
            if cells.iter().any(|cell| !cell.number.is_empty()) {
                table.push("ratio", cells);
            }
        }
    }
    out.heading(&family.title);
    for line in table.lines(out.width, out.style.color) {
        out.line(&line);
    }
}

fn figures(family: &Family<'_>, subjects: &[&str], shown: Shown, used: &mut BTreeSet<char>) -> Vec<Cell> {
    let rows: Vec<Option<&ResultRow>> = subjects.iter().map(|name| family.row(name, shown.metric)).collect();
    let ranked: Vec<Option<&ResultRow>> = rows.iter().map(|row| row.filter(|row| row.subject != DIRECT)).collect();
    let best = finding::best(&ranked);
    let cells = rows.iter().zip(best).map(|(row, best)| match row {
        Some(row) => Cell {
            number: number(row, shown.scale),
            marks: signs(row, best, used),
            bold: best,
        },
        None => Cell::empty(),
    });
    cells.collect()
}
