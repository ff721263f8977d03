//! The lines of a table: decimals aligned, marks in a column of their own, wide tables continued instead of wrapped.

use std::ops::Range;

use crate::report::tables::{Block, Cell, Table};

/// The widest name that is shown whole.
const NAME: usize = 16;
const GAP: usize = 2;

/// Characters before the point, and after it (with it).
fn digits(cell: &Cell) -> (usize, usize) {
    let (whole, fraction) = cell
        .number
        .split_once('.')
        .map_or((&*cell.number, None), |(a, b)| (a, Some(b)));
    (
        whole.chars().count(),
        fraction.map_or(0, |digits| 1 + digits.chars().count()),
    )
}

/// The most characters before the point, after it (with it), and of marks.
fn shape(cells: &[Cell]) -> (usize, usize, usize) {
    let most = |count: &dyn Fn(&Cell) -> usize| cells.iter().map(count).max().unwrap_or(0);
    (
        most(&|cell| digits(cell).0),
        most(&|cell| digits(cell).1),
        most(&|cell| cell.marks.chars().count()),
    )
}

/// The lines, none longer than `width`; columns that do not fit follow in further parts.
pub(super) fn lines(table: &Table<'_>, width: usize, bold: bool) -> Vec<String> {
    let below = table.below.iter().map(|(_, block)| block);
    let blocks: Vec<&Block<'_>> = [&table.block].into_iter().chain(below).collect();
    let names = blocks.iter().flat_map(|block| &block.names);
    let name_width = names.map(|name| name.chars().count()).max().unwrap_or(0).min(NAME) + 2;
    // A common width keeps the parts of one table in step with each other.
    let widest = blocks.iter().flat_map(|block| &block.columns).map(|(title, cells)| {
        let (whole, fraction, marks) = shape(cells);
        (whole + fraction + marks).max(title.chars().count() + 1)
    });
    let cell = widest.max().unwrap_or(0) + GAP;
    let per_part = (width.saturating_sub(name_width) / cell).max(1);
    let columns = &table.block.columns;
    let mut lines = Vec::new();
    for start in (0..columns.len()).step_by(per_part) {
        let part = start..(start + per_part).min(columns.len());
        if start > 0 {
            lines.push(String::new());
        }
        let mut head = " ".repeat(name_width);
        for (title, _) in &columns[part.clone()] {
            // The last place of a cell is for a mark, so titles end one before it.
            head.push_str(&format!("{title:>0$} ", cell - 1));
        }
        lines.push(head);
        rows(&table.block, part.clone(), name_width, cell, bold, &mut lines);
        if let Some((title, block)) = &table.below {
            lines.push(title.chars().take(width).collect());
            rows(block, part, name_width, cell, bold, &mut lines);
        }
    }
    lines
}

fn rows(block: &Block<'_>, part: Range<usize>, name_width: usize, cell: usize, bold: bool, lines: &mut Vec<String>) {
    for (row, name) in block.names.iter().enumerate() {
        let name: String = name.chars().take(NAME).collect();
        let mut line = format!("{:<1$}", format!("  {name}"), name_width);
        for (_, cells) in block.columns.get(part.clone()).unwrap_or_default() {
            let (_, fraction, marks) = shape(cells);
            let marks = marks.max(1);
            let Some(figure) = cells.get(row).filter(|figure| !figure.number.is_empty()) else {
                let dash = format!("-{}", " ".repeat(fraction + marks));
                line.push_str(&format!("{dash:>cell$}"));
                continue;
            };
            let pad = " ".repeat(fraction - digits(figure).1 + marks - figure.marks.chars().count());
            let shown = format!("{}{}", figure.number, figure.marks);
            let before = cell.saturating_sub(shown.chars().count() + pad.len());
            line.push_str(&" ".repeat(before));
            if figure.best && bold {
                line.push_str(&format!("\x1b[1m{shown}\x1b[0m"));
            } else {
                line.push_str(&shown);
            }
            line.push_str(&pad);
        }
        lines.push(line);
    }
}
