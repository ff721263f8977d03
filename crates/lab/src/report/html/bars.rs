//! Key set-up and a fresh key for each message: bars from zero, a group for each suite.

use super::figure::{DataTable, Entry, Figure};
use super::scale::linear_ticks;
use super::svg::{Anchor, Svg};
use super::throughput::trim;
use crate::format::{clean, list_range, sig3_or, size};
use crate::report::finding;
use crate::report::view::{View, series};
use crate::result::ResultRow;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 408.0;
const ROW: f64 = 21.0;
const HEAD: f64 = 32.0;

/// What figures are multiplied by for a panel, and what they are then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) factor: f64,
    pub(super) unit: &'static str,
}

const NS: Scale = Scale {
    factor: 1e9,
    unit: "ns",
};

/// One group of bars: its title and a row for each subject.
pub(super) struct Bars<'a> {
    pub(super) title: String,
    pub(super) rows: Vec<(&'a str, &'a ResultRow)>,
}

/// The figure; `None` when neither was measured.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let mut figure = Figure {
        id: "keys".to_owned(),
        ..Figure::default()
    };
    let columns = [
        ("case", false),
        ("subject", false),
        ("ns", true),
        ("from to", true),
        ("rounds", true),
        ("marks", false),
    ];
    figure.table = DataTable::new("Time for a key", &columns);
    let mut captions = Vec::new();
    for (op, metric, title) in [
        ("key-setup", "setup_time", "Key set-up"),
        ("fresh-key", "cpu_per_op", "A fresh key and one message"),
    ] {
        let groups = groups(view, op, metric);
        if groups.is_empty() {
            continue;
        }
        captions.extend(caption(title, &groups));
        for group in &groups {
            for (name, row) in &group.rows {
                let ns = row.median.get() * 1e9;
                figure.table.rows.push(vec![
                    Entry::text(finding::case(row)),
                    Entry::text(clean(name)),
                    Entry::number(sig3_or(ns, "not known"), ns),
                    Entry::number(list_range(row.low.get() * 1e9, row.high.get() * 1e9), row.low.get()),
                    Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
                    Entry::text(row.flags.join(", ")),
                ]);
            }
        }
        figure.drawings.push(panel(&format!("keys-{op}"), title, &groups, NS));
    }
    figure.caption = captions.join(" ");
    figure.reading = "Bars start at zero; shorter is better. The thin line is the interval, or the range with few \
                      rounds. Time on one thread."
        .to_owned();
    (!figure.drawings.is_empty()).then_some(figure)
}

fn groups<'a>(view: &View<'a>, op: &str, metric: &'static str) -> Vec<Bars<'a>> {
    let mut groups = Vec::new();
    for (index, group) in view.of_op(op) {
        let sizes: Vec<Option<i64>> = if group.sizes.is_empty() {
            vec![None]
        } else {
            group.sizes.iter().map(|bytes| Some(*bytes)).collect()
        };
        for bytes in sizes {
            let mut title = clean(group.suite);
            if let Some(bytes) = bytes {
                title.push_str(&format!(", {}", size(bytes)));
            }
            if !group.extra.is_empty() {
                title.push_str(&format!(", {}", clean(&group.extra)));
            }
            let rows: Vec<(&str, &ResultRow)> = view
                .subjects
                .iter()
                .filter_map(|name| Some((*name, view.row(index, bytes, name, metric)?)))
                .collect();
            if !rows.is_empty() {
                groups.push(Bars { title, rows });
            }
        }
    }
    groups
}

fn caption(title: &str, groups: &[Bars<'_>]) -> Option<String> {
    let best: Vec<String> = groups
        .iter()
        .filter_map(|group| {
            let rows: Vec<Option<&ResultRow>> = group.rows.iter().map(|(_, row)| Some(*row)).collect();
            let marks = finding::best(&rows);
            let named: Vec<String> = group
                .rows
                .iter()
                .zip(marks)
                .filter(|(_, best)| *best)
                .map(|((name, _), _)| clean(name))
                .collect();
            let least = group
                .rows
                .iter()
                .map(|(_, row)| row.median.get())
                .filter(|v| v.is_finite())
                .fold(f64::MAX, f64::min);
            let lead = format!("{} at {} ns", finding::list(&named), sig3_or(least * 1e9, "?"));
            (!named.is_empty()).then(|| format!("{}: {lead}", group.title))
        })
        .collect();
    (!best.is_empty()).then(|| format!("{title}, quickest: {}.", best.join("; ")))
}

/// Bars from zero, all on one scale.
pub(super) fn panel(id: &str, title: &str, groups: &[Bars<'_>], scale: Scale) -> String {
    let Scale { factor, unit } = scale;
    let drawable = |row: &ResultRow| row.median.get().is_finite() && row.median.get() >= 0.0;
    let all = groups
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|(_, row)| drawable(row));
    let most = all.map(|(_, row)| row.median.get() * factor).fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.05 } else { 1.0 };
    let lines: usize = groups.iter().map(|group| group.rows.len() + 1).sum();
    let bottom = HEAD + ROW * lines as f64 + 8.0 * groups.len() as f64;
    let description = format!(
        "Horizontal bars of {} in {} for each group and subject.",
        title.to_lowercase(),
        if unit == "ns" { "nanoseconds" } else { unit }
    );
    let mut svg = Svg::new(id, "bars", WIDTH, bottom + 40.0, title, &description);
    svg.text("title", (0.0, 16.0), Anchor::Start, title);
    let x = |value: f64| LEFT + (value / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
    for tick in linear_ticks(0.0, most, 5) {
        svg.line("gridline", (x(tick), HEAD), (x(tick), bottom));
        svg.text("tick", (x(tick), bottom + 16.0), Anchor::Middle, &trim(tick));
    }
    svg.text(
        "axis",
        (f64::midpoint(LEFT, RIGHT), bottom + 34.0),
        Anchor::Middle,
        &format!("{unit}, from zero"),
    );
    let mut y = HEAD;
    for group in groups {
        svg.text("rowhead", (0.0, y + 15.0), Anchor::Start, &group.title);
        y += ROW;
        for (name, row) in &group.rows {
            svg.text("row", (LEFT - 8.0, y + 14.0), Anchor::End, &clean(name));
            let value = row.median.get() * factor;
            if drawable(row) {
                let class = if row.flags.is_empty() { "bar" } else { "bar hollow" };
                let tip = format!(
                    "{}, {}: {} {unit} ({})",
                    clean(name),
                    group.title,
                    sig3_or(value, "?"),
                    list_range(row.low.get() * factor, row.high.get() * factor)
                );
                svg.open(&format!("series s{}", series(name)), name);
                svg.bar(class, (LEFT, y + 3.0), ((x(value) - LEFT).max(1.0), ROW - 7.0), &tip);
                svg.line(
                    "error",
                    (x(row.low.get() * factor), y + ROW / 2.0 - 0.5),
                    (x(row.high.get() * factor), y + ROW / 2.0 - 0.5),
                );
                svg.close();
            }
            // A percentile that falls among failures.
            let text = match value {
                f64::INFINITY => "no answer in time".to_owned(),
                value => sig3_or(value, "not known"),
            };
            let end = if drawable(row) {
                x(value).max(x(row.high.get() * factor))
            } else {
                LEFT
            };
            svg.text("number strong", (end + 7.0, y + 14.0), Anchor::Start, &text);
            y += ROW;
        }
        let height = ROW * group.rows.len() as f64;
        svg.line("axisline", (LEFT, y - height), (LEFT, y));
        y += 8.0;
    }
    svg.finish()
}
