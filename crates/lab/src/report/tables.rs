//! Tables of figures: subjects down, cases or metrics across.

use super::model::View;
use crate::format::sig3;
use crate::lens::rank::{best, speed, verdict};
use crate::lens::{Against, Column, Family, Layout, OURS, Shown};
use crate::result::ResultRow;
use crate::stats::is_judged;

/// Marks of a row, with the sign used in tables and what it means.
pub(crate) const FLAGS: [(&str, char, &str); 9] = [
    ("noisy", '~', "noisy: spread over rounds above 5 %"),
    ("unusable", '!', "unusable: spread above 10 %, not ranked"),
    (
        "two-modes",
        '2',
        "two clusters of rounds: the median stands for neither",
    ),
    ("outlier", 'o', "a round far from the others, kept"),
    (
        "generator-bound",
        'g',
        "over two thirds of what the generator does without a path: not the path's limit",
    ),
    (
        "unauthenticated",
        'u',
        "unauthenticated: delivered wrong bytes after a bit was flipped on the wire",
    ),
    (
        "link-late",
        'l',
        "in some windows the machine could not keep the emulated link: not ranked",
    ),
    ("not-steady", '^', "the rate still changed inside the windows"),
    (
        "overloaded",
        '>',
        "overloaded: under 99 % of the schedule was done, percentiles are lower bounds, not ranked",
    ),
];

/// The sign of what is best, and those of verdicts.
pub(crate) const SIGNS: [(char, &str); 5] = [
    ('*', "best of its column, or not told apart from the best"),
    ('+', "faster: the whole interval lies beyond 1 %"),
    ('-', "slower: the whole interval lies beyond 1 %"),
    ('=', "the same within 1 %"),
    ('?', "not decided by these rounds"),
];

/// One figure with its signs; nothing where there is no figure.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) number: String,
    pub(crate) marks: String,
    pub(crate) best: bool,
}

/// A block of a table: a name for each line, and columns of a title and a cell for each name.
pub(crate) struct Block<'a> {
    pub(crate) names: Vec<&'a str>,
    pub(crate) columns: Vec<(String, Vec<Cell>)>,
}

/// A table.
pub(crate) struct Table<'a> {
    pub(crate) heading: String,
    pub(crate) block: Block<'a>,
    /// Ratios with the same columns, and what they are to.
    pub(crate) below: Option<(String, Block<'a>)>,
    /// What it says.
    pub(crate) finding: Option<String>,
}

impl Table<'_> {
    /// All signs in it.
    pub(crate) fn marks(&self) -> impl Iterator<Item = char> {
        let below = self.below.iter().flat_map(|(_, block)| &block.columns);
        let cells = self.block.columns.iter().chain(below).flat_map(|(_, cells)| cells);
        cells.flat_map(|cell| cell.marks.chars())
    }
}

/// The tables of a workload.
pub(crate) fn tables<'a>(view: &View<'a>) -> Vec<Table<'a>> {
    let mut tables = Vec::new();
    for family in &view.families {
        match family.layout {
            Layout::Cases(blocks) => {
                let blocks = blocks.iter().enumerate();
                tables.extend(blocks.filter_map(|(place, shown)| by_case(view, family, shown, place == 0)));
            }
            Layout::Figures => tables.push(by_figure(view, family)),
        }
        if let Some(last) = tables.last_mut().filter(|_| view.lens.beneath) {
            last.finding = (view.lens.finding)(&view.scope, family);
        }
    }
    tables
}

/// One figure of several cases.
fn by_case<'a>(view: &View<'a>, family: &Family<'a>, shown: &Shown, first: bool) -> Option<Table<'a>> {
    let names = family.subjects(&view.scope.subjects, &[shown.metric]);
    if names.is_empty() {
        return None;
    }
    // The best peer can be another one in each case, so every subject that has a ratio somewhere has a line.
    let related = |name: &&str| family.columns.iter().any(|column| ratio(column, name, shown).is_some());
    let compared: Vec<&str> = names.iter().copied().filter(related).collect();
    let block = |names: &[&'a str], cells: &dyn Fn(&Column<'a>) -> Vec<Cell>| Block {
        names: names.to_vec(),
        columns: family
            .columns
            .iter()
            .map(|column| (column.title.clone(), cells(column)))
            .collect(),
    };
    let ratios = |column: &Column<'a>| {
        compared
            .iter()
            .map(|name| ratio_cell(ratio(column, name, shown)))
            .collect()
    };
    let to = || {
        if view.lens.against == Against::Best {
            return reference(family.all(shown.metric)).to_owned();
        }
        let mut to: Vec<&str> = family
            .all(shown.metric)
            .filter_map(speed)
            .map(|speed| speed.to)
            .collect();
        to.sort_unstable();
        to.dedup();
        to.join(", ")
    };
    Some(Table {
        heading: if first {
            format!("{}: {}", family.title, shown.title)
        } else {
            format!("  {}", shown.title)
        },
        block: block(&names, &|column| figures(view, column, &names, shown)),
        below: (!compared.is_empty()).then(|| (format!("  speed as a ratio to {}", to()), block(&compared, &ratios))),
        finding: None,
    })
}

/// All figures of one case.
fn by_figure<'a>(view: &View<'a>, family: &Family<'a>) -> Table<'a> {
    let shown = family.figures(view.lens);
    let metrics: Vec<&str> = shown.iter().map(|shown| shown.metric).collect();
    let names = family.subjects(&view.scope.subjects, &metrics);
    let mut columns = Vec::new();
    for (shown, column) in shown
        .iter()
        .flat_map(|shown| family.columns.iter().map(move |column| (shown, column)))
    {
        columns.push((shown.title.to_owned(), figures(view, column, &names, shown)));
        let ratio_of = |name: &&str| ratio(column, name, shown).filter(|_| *name != view.lens.control);
        let ratios: Vec<Cell> = names.iter().map(|name| ratio_cell(ratio_of(name))).collect();
        if ratios.iter().any(|cell| !cell.number.is_empty()) {
            columns.push(("ratio".to_owned(), ratios));
        }
    }
    Table {
        heading: family.title.clone(),
        block: Block { names, columns },
        below: None,
        finding: None,
    }
}

fn figures(view: &View<'_>, column: &Column<'_>, names: &[&str], shown: &Shown) -> Vec<Cell> {
    let rows: Vec<Option<&ResultRow>> = names.iter().map(|name| column.row(name, shown.metric)).collect();
    let ranked: Vec<Option<&ResultRow>> = rows
        .iter()
        .map(|row| row.filter(|row| row.subject != view.lens.control && is_judged(shown.metric)))
        .collect();
    let cell = |(row, best): (&Option<&ResultRow>, bool)| {
        let Some(row) = row else { return Cell::default() };
        let signs = FLAGS
            .iter()
            .filter(|(flag, _, _)| row.has(flag))
            .map(|(_, sign, _)| *sign);
        Cell {
            number: shown.number(row, view.lens.endless),
            marks: best.then_some('*').into_iter().chain(signs).collect(),
            best,
        }
    };
    rows.iter().zip(best(&ranked)).map(cell).collect()
}

/// The row of a subject if its ratio is shown.
fn ratio<'a>(column: &Column<'a>, subject: &str, shown: &Shown) -> Option<&'a ResultRow> {
    let row = column.row(subject, shown.metric).filter(|_| shown.related)?;
    speed(row).map(|_| row)
}

/// The ratio of a row and its verdict.
fn ratio_cell(row: Option<&ResultRow>) -> Cell {
    let Some(speed) = row.and_then(speed) else {
        return Cell::default();
    };
    Cell {
        number: sig3(speed.estimate).unwrap_or_default(),
        marks: verdict(speed.verdict).1.to_string(),
        best: false,
    }
}

/// What speeds of rows are related to, in words: our engine on this processor where a GPU is measured, else peers.
pub(crate) fn reference<'a>(rows: impl IntoIterator<Item = &'a ResultRow>) -> &'static str {
    let mut related = rows.into_iter().filter_map(speed).peekable();
    if related.peek().is_some() && related.all(|speed| speed.to == OURS) {
        OURS
    } else {
        "the best peer of the case"
    }
}
