//! The rows of a comparison as people read them: what belongs together, and each case in plain words.

use std::collections::BTreeMap;

use super::{Comparison, Key, Row};
use crate::result::{Case, CaseValue};
use crate::stats::Verdict;
use crate::workload::Catalogue;

/// The rows of a figure of a subject.
pub(super) struct Group<'a> {
    pub(super) title: String,
    /// Each with its case in words; those that must be acted on first.
    pub(super) rows: Vec<(String, &'a Row)>,
    /// What must be known of some of them.
    pub(super) notes: Vec<String>,
}

/// All compared rows, those that count first.
pub(super) fn groups<'a>(comparison: &'a Comparison, catalogue: &Catalogue) -> Vec<Group<'a>> {
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in &comparison.rows {
        let (key, control) = (&row.key, &row.control);
        let key = (!row.counts, &key.subject, &key.workload, &key.metric, control);
        groups.entry(key).or_default().push(row);
    }
    let group = |rows: Vec<&'a Row>| {
        let title = title(rows.first()?, catalogue);
        let notes = notes(&rows);
        let mut rows = named(rows, catalogue);
        rows.sort_by(|(_, a), (_, b)| order(a).cmp(&order(b)).then_with(|| size(b).total_cmp(&size(a))));
        Some(Group { title, rows, notes })
    };
    groups.into_values().filter_map(group).collect()
}

/// A figure in words: of which workload, which metric and whose.
pub(super) fn figure(key: &Key, catalogue: &Catalogue) -> String {
    let workload = catalogue.named(&key.workload);
    let shown = workload.and_then(|workload| workload.lens.shown(&key.metric));
    // One without words of its own has the title of its table for them.
    let words = shown.filter(|shown| shown.words != shown.title);
    let metric = words.map_or(key.metric.as_str(), |shown| shown.words);
    format!("{}: {metric} of {}", key.workload, key.subject)
}

/// A case in the words of reports.
pub(super) fn case(key: &Key, catalogue: &Catalogue) -> String {
    if key.case.0.is_empty() {
        return "(no parameters)".to_owned();
    }
    match catalogue.named(&key.workload) {
        Some(workload) => (workload.lens.case)(&key.case),
        None => key.case.to_string(),
    }
}

fn title(row: &Row, catalogue: &Catalogue) -> String {
    let control = row.control.as_deref();
    let control = control.map_or("no control".to_owned(), |name| format!("control {name}"));
    let rest = if row.counts { "" } else { ", for information" };
    let figure = figure(&row.key, catalogue);
    format!("{figure}, {} is better, {control}{rest}", row.better)
}

fn notes(rows: &[&Row]) -> Vec<String> {
    let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        *notes.entry(&row.note).or_default() += 1;
    }
    let of = |(note, count)| format!("{count} of {} rows: {note}", rows.len());
    notes.into_iter().map(of).collect()
}

/// Rows with their cases in words; where the words of several are the same, with what tells them apart.
fn named<'a>(rows: Vec<&'a Row>, catalogue: &Catalogue) -> Vec<(String, &'a Row)> {
    let mut alike: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        alike.entry(case(&row.key, catalogue)).or_default().push(row);
    }
    let mut named = Vec::new();
    for (words, rows) in alike {
        let common = common(&rows);
        let name = |row: &Row| {
            let own = row.key.case.0.iter().filter(|(name, _)| !common.0.contains_key(*name));
            let own: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
            if own.is_empty() {
                words.clone()
            } else {
                format!("{words} ({})", own.join(", "))
            }
        };
        named.extend(rows.into_iter().map(|row| (name(row), row)));
    }
    named
}

/// Parameters that all rows share.
fn common(rows: &[&Row]) -> Case {
    let Some((first, rest)) = rows.split_first() else {
        return Case::new();
    };
    let shared =
        |(name, value): &(&String, &CaseValue)| rest.iter().all(|row| row.key.case.0.get(*name) == Some(*value));
    let own = |(name, value): (&String, &CaseValue)| (name.clone(), value.clone());
    Case(first.key.case.0.iter().filter(shared).map(own).collect())
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
