//! A comparison as text for a terminal or a log: plain ASCII, 80 columns.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Comparison, Row, RunRef, Side};
use crate::result::{Case, CaseValue};
use crate::stats::Verdict;

/// Columns of the terminal.
const WIDTH: usize = 80;

/// Columns of the case.
const LABEL: usize = 35;

pub(super) fn render(comparison: &Comparison) -> String {
    let mut out = String::new();
    wrap(&mut out, "", &comparison.headline.text);
    out.push('\n');
    for (side, run) in [(Side::Old, &comparison.old), (Side::New, &comparison.new)] {
        wrap(&mut out, "", &format!("{}: {}", side.as_str(), describe(run)));
    }
    for note in &comparison.notes {
        wrap(&mut out, "", &format!("note: {}", note.text));
    }
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in &comparison.rows {
        let key = (
            !row.counts,
            &row.key.subject,
            &row.key.workload,
            &row.key.metric,
            &row.control,
        );
        groups.entry(key).or_default().push(row);
    }
    let grouped = !groups.is_empty();
    for rows in groups.into_values() {
        group(&mut out, rows);
    }
    if grouped {
        out.push('\n');
        wrap(
            &mut out,
            "",
            "own, control: change of the absolute figure. ratio: change of the figure over the control, which the \
             verdict rests on. sees: smallest change of the ratio that these rounds would show. limit: change from \
             which a row is not the same.",
        );
    }
    if !comparison.unmatched.is_empty() {
        let _ = writeln!(out, "\nNot compared ({}):", comparison.unmatched.len());
        for row in &comparison.unmatched {
            let key = &row.key;
            let case = label(&key.case, &Case::new());
            let text = format!(
                "{} {}, {}, {}: {}",
                key.workload, key.metric, key.subject, case, row.reason
            );
            wrap(&mut out, "  ", &format!("{} only: {text}", row.side.as_str()));
        }
    }
    out
}

fn describe(run: &RunRef) -> String {
    format!(
        "{} on {}, {} profile, run {}",
        run.sealway, run.started, run.profile, run.run
    )
}

fn group(out: &mut String, mut rows: Vec<&Row>) {
    let Some(first) = rows.first().copied() else { return };
    let common = if rows.len() > 1 { common(&rows) } else { Case::new() };
    let control = first
        .control
        .as_deref()
        .map_or("no control".to_owned(), |name| format!("control {name}"));
    let mut title = format!(
        "{}: {} of {}, {} is better, {control}",
        first.key.workload, first.key.metric, first.key.subject, first.better
    );
    if !first.counts {
        title.push_str(", for information");
    }
    if !common.0.is_empty() {
        let _ = write!(title, "; {common}");
    }
    out.push('\n');
    wrap(out, "", &title);
    let _ = writeln!(
        out,
        "{:<LABEL$} {:>7} {:>7} {:>7} {:>6} {:>5} verdict",
        "case", "own", "control", "ratio", "sees", "limit"
    );
    rows.sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| size(b).total_cmp(&size(a))));
    for row in &rows {
        let _ = writeln!(
            out,
            "{:<LABEL$} {:>7} {:>7} {:>7} {:>6} {:>5} {}",
            elide(&plain(&label(&row.key.case, &common))),
            signed(row.own.factor.get()),
            signed(row.control_change.map_or(f64::NAN, |change| change.factor.get())),
            signed(row.ratio.map_or(f64::NAN, |change| change.factor.get())),
            unsigned(row.mde.get()),
            unsigned(row.threshold),
            row.verdict.as_str(),
        );
    }
    let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        *notes.entry(&row.note).or_default() += 1;
    }
    for (note, count) in notes {
        wrap(out, "  ", &format!("{count} of {} rows: {note}", rows.len()));
    }
}

/// Slower first: what must be acted on.
fn order(row: &Row) -> u8 {
    match row.verdict {
        Verdict::Slower => 0,
        Verdict::Faster => 1,
        Verdict::Unknown => 2,
        Verdict::Same => 3,
    }
}

fn size(row: &Row) -> f64 {
    row.ratio.map_or(0.0, |change| change.factor.get().ln().abs())
}

/// Parameters that all rows share.
fn common(rows: &[&Row]) -> Case {
    let Some((first, rest)) = rows.split_first() else {
        return Case::new();
    };
    let shared =
        |(name, value): &(&String, &CaseValue)| rest.iter().all(|row| row.key.case.0.get(*name) == Some(*value));
    Case(
        first
            .key
            .case
            .0
            .iter()
            .filter(shared)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// The parameters of a case that are not in `common`, names first: `aes-128-gcm seal 16384 B`.
fn label(case: &Case, common: &Case) -> String {
    let shown = || case.0.iter().filter(|(name, _)| !common.0.contains_key(*name));
    let names = shown().rev().filter_map(|(_, value)| match value {
        CaseValue::Text(text) => Some(text.clone()),
        CaseValue::Bool(_) | CaseValue::Int(_) => None,
    });
    let numbers = shown().rev().filter_map(|(name, value)| match value {
        CaseValue::Text(_) => None,
        CaseValue::Int(bytes) if name == "bytes" => Some(format!("{bytes} B")),
        CaseValue::Int(_) | CaseValue::Bool(_) => Some(format!("{name}={value}")),
    });
    let label = names.chain(numbers).collect::<Vec<_>>().join(" ");
    if label.is_empty() {
        "(no parameters)".to_owned()
    } else {
        label
    }
}

/// Text of a file, safe for a terminal: one column per character, no control sequences.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' })
        .collect()
}

/// ASCII text cut to the label column.
fn elide(text: &str) -> String {
    match text.get(..LABEL) {
        Some(head) if text.len() > LABEL => format!("{}..", &head[..LABEL - 2]),
        _ => text.to_owned(),
    }
}

/// A factor as a signed percentage of at most seven characters.
fn signed(factor: f64) -> String {
    let percent = (factor - 1.0) * 100.0;
    match percent {
        _ if percent.is_nan() => "?".to_owned(),
        _ if percent.abs() < 99.95 => format!("{percent:+.1} %"),
        _ if percent < 9_999.5 => format!("{percent:+.0} %"),
        _ => ">9999 %".to_owned(),
    }
}

/// A fraction as a percentage of at most five characters, the sign `%` without a space to keep the column narrow.
fn unsigned(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent {
        _ if percent.is_nan() => "?".to_owned(),
        _ if percent < 99.95 => format!("{percent:.1}%"),
        _ if percent < 999.5 => format!("{percent:.0}%"),
        _ => ">999%".to_owned(),
    }
}

/// Adds `text` in lines of at most [`WIDTH`] characters, the first with `indent`, the others with two spaces more.
pub(crate) fn wrap(out: &mut String, indent: &str, text: &str) {
    let text = plain(text);
    let mut line = indent.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let space = usize::from(!empty);
            if line.len() + space + word.len() <= WIDTH {
                line.extend(std::iter::repeat_n(' ', space));
                line.push_str(word);
                empty = false;
                break;
            }
            if empty {
                // A word longer than a line is cut; `word` is ASCII, so every index is a boundary.
                let (head, rest) = word.split_at(WIDTH - line.len());
                line.push_str(head);
                word = rest;
            }
            out.push_str(&line);
            out.push('\n');
            line = format!("{indent}  ");
            empty = true;
        }
    }
    out.push_str(&line);
    out.push('\n');
}
