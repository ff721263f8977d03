//! A comparison as text for a terminal or a log: plain ASCII, 80 columns.

use std::fmt::Write as _;

use super::groups::{self, Group, groups};
use super::{Comparison, RunRef, Side};
use crate::format::{lines, wrap};
use crate::workload::Catalogue;

/// Columns of the case.
const LABEL: usize = 35;

/// What the columns of the tables mean.
const KEY: &str = "own, control: change of the absolute figure. ratio: change of the figure over the control, which the verdict \
                   rests on. sees: smallest change of the ratio that these rounds would show. limit: change from which a row \
                   is not the same. unknown: not decided, which does not mean the same.";

pub(super) fn render(comparison: &Comparison, catalogue: &Catalogue) -> String {
    let mut out = String::new();
    let (first, rest) = comparison.sorted_notes();
    wrap(&mut out, "", &comparison.headline.text);
    for note in first {
        wrap(&mut out, "  ", &format!("careful: {}", note.text));
    }
    out.push('\n');
    for text in runs(comparison) {
        wrap(&mut out, "", &text);
    }
    for note in rest {
        wrap(&mut out, "  ", &format!("note: {}", note.text));
    }
    let groups = groups(comparison, catalogue);
    for group in &groups {
        table(&mut out, group);
    }
    if !groups.is_empty() {
        out.push('\n');
        wrap(&mut out, "", KEY);
    }
    if !comparison.unmatched.is_empty() {
        let _ = writeln!(out, "\nNot compared ({}):", comparison.unmatched.len());
        for row in &comparison.unmatched {
            let (figure, case) = (groups::figure(&row.key, catalogue), groups::case(&row.key, catalogue));
            let text = format!("{} only: {figure}, {case}: {}", row.side.as_str(), row.reason);
            wrap(&mut out, "  ", &text);
        }
    }
    out
}

/// The two runs, the older first.
pub(super) fn runs(comparison: &Comparison) -> [String; 2] {
    let text = |side: Side, run: &RunRef| {
        format!(
            "{}: {} on {}, {} profile, run {}",
            side.as_str(),
            run.sealway,
            run.started,
            run.profile,
            run.run
        )
    };
    [text(Side::Old, &comparison.old), text(Side::New, &comparison.new)]
}

fn table(out: &mut String, group: &Group<'_>) {
    out.push('\n');
    wrap(out, "", &group.title);
    let _ = writeln!(
        out,
        "{:<LABEL$} {:>7} {:>7} {:>7} {:>6} {:>5} verdict",
        "case", "own", "control", "ratio", "sees", "limit"
    );
    for (case, row) in &group.rows {
        let mut label = lines("", "  ", case, LABEL);
        let last = label.pop().unwrap_or_default();
        for line in label {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(
            out,
            "{last:<LABEL$} {:>7} {:>7} {:>7} {:>6} {:>5} {}",
            signed(row.own.factor.get()),
            signed(row.control_change.map_or(f64::NAN, |change| change.factor.get())),
            signed(row.ratio.map_or(f64::NAN, |change| change.factor.get())),
            unsigned(row.mde.get()),
            unsigned(row.threshold),
            row.verdict.as_str(),
        );
    }
    for note in &group.notes {
        wrap(out, "  ", note);
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
