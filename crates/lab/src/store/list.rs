//! Kept runs as a table.

use super::Kept;
use crate::format::clean;
use crate::report::terminal::Style;

/// Titles of the columns.
const TITLES: [&str; 8] = [
    "run",
    "started (UTC)",
    "workload",
    "profile",
    "branch",
    "commit",
    "name",
    "processor",
];

/// Widest that a column gets, but for the last, which takes what is left.
const WIDEST: [usize; 8] = [8, 16, 24, 9, 20, 8, 20, usize::MAX];

/// What says that a run was cut short.
const CUT: char = '*';

/// Runs as a table, in the order given; a column in which nothing stands is left out. Lines are cut at the width of the style.
pub fn render(kept: &[Kept], style: &Style) -> String {
    let rows: Vec<[String; 8]> = kept.iter().map(cells).collect();
    let widths: Vec<usize> = (0..TITLES.len())
        .map(|column| {
            let longest = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
            match longest {
                0 => 0,
                _ => longest.max(TITLES[column].chars().count()).min(WIDEST[column]),
            }
        })
        .collect();
    let titles = TITLES.map(str::to_owned);
    let mut out = String::new();
    for row in std::iter::once(&titles).chain(&rows) {
        let cells = row.iter().zip(&widths).filter(|(_, width)| **width > 0);
        let line: Vec<String> = cells.map(|(text, width)| fit(text, *width)).collect();
        let line: String = line.join("  ").chars().take(style.width).collect();
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if kept.iter().any(|run| !run.complete) {
        out.push_str(&format!("\n{CUT} cut short\n"));
    }
    match style.unicode {
        true => out,
        false => out.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect(),
    }
}

fn cells(run: &Kept) -> [String; 8] {
    let or_nothing = |text: &Option<String>| clean(text.as_deref().unwrap_or_default());
    let profile = match run.complete {
        true => run.profile.clone(),
        false => format!("{}{CUT}", run.profile),
    };
    [
        run.id.to_string(),
        minute(&run.started),
        clean(&run.workloads),
        clean(&profile),
        or_nothing(&run.label.branch),
        or_nothing(&run.label.commit).chars().take(8).collect(),
        or_nothing(&run.label.name),
        clean(&run.cpu),
    ]
}

/// `2026-11-20 10:11` of `2026-11-20T10:11:12Z`.
pub(crate) fn minute(started: &str) -> String {
    clean(started).replacen('T', " ", 1).chars().take(16).collect()
}

/// Text in exactly so many columns, as far as characters are columns; the last column is not filled up.
fn fit(text: &str, width: usize) -> String {
    if width == usize::MAX || text.chars().count() <= width {
        return format!("{text:<width$}", width = if width == usize::MAX { 0 } else { width });
    }
    let head: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{head}..")
}
