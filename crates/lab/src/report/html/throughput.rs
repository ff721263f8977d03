//! Throughput by message size: our suites against each other, and all subjects for each suite.

use super::figure::{DataTable, Entry, Figure};
use super::scale::{Log, spread};
use super::svg::{Anchor, Svg};
use crate::format::{clean, list_range, sig3_or, size};
use crate::report::crossover::crossover;
use crate::report::finding;
use crate::report::view::{PRIMITIVES, View, op_title, series};
use crate::result::ResultRow;

const METRIC: &str = "throughput";
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 352.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 276.0;

/// One line of a panel.
struct Line<'a> {
    name: &'a str,
    label: String,
    /// CSS class that fixes colour and dash.
    class: String,
    shape: usize,
    points: Vec<(i64, &'a ResultRow)>,
}

/// The size axis and the rate axis that all panels share.
struct Axes {
    sizes: (f64, f64),
    rates: (f64, f64),
}

impl Axes {
    fn new(view: &View<'_>) -> Self {
        let (mut sizes, mut rates) = ((f64::MAX, 0.0f64), (f64::MAX, 0.0f64));
        for row in view
            .run
            .results
            .iter()
            .filter(|row| row.workload == PRIMITIVES && row.metric == METRIC)
        {
            if let Some(bytes) = row.case.int("bytes").filter(|bytes| *bytes > 0) {
                sizes = (sizes.0.min(bytes as f64), sizes.1.max(bytes as f64));
            }
            let rate = row.median.get() / 1e9;
            if rate.is_finite() && rate > 0.0 {
                rates = (rates.0.min(rate), rates.1.max(rate));
            }
        }
        Axes {
            sizes: (sizes.0 / 1.25, sizes.1 * 1.25),
            rates: (rates.0 / 1.2, rates.1 * 1.2),
        }
    }
}

/// Our subject's suites, a panel for each operation.
pub(super) fn suites(view: &View<'_>) -> Option<Figure> {
    let ours = view.ours()?;
    let axes = Axes::new(view);
    let mut figure = Figure {
        id: "suites".to_owned(),
        ..Figure::default()
    };
    figure.table = table("Throughput of the suites", "suite");
    for op in ["seal", "open"] {
        let lines: Vec<Line<'_>> = view
            .of_op(op)
            .filter(|(_, group)| group.extra.is_empty())
            .enumerate()
            .map(|(place, (index, group))| Line {
                name: group.suite,
                label: clean(group.suite).replace("-poly1305", ""),
                class: format!("u{}", place.min(4)),
                shape: [0, 1, 2, 3, 4][place.min(4)],
                points: points(view, index, ours),
            })
            .filter(|line| !line.points.is_empty())
            .collect();
        if lines.is_empty() {
            continue;
        }
        fill(&mut figure.table, op, &lines);
        figure.drawings.push(panel(
            &format!("suites-{op}"),
            &format!("{}, {}", op_title(op), clean(ours)),
            &lines,
            &axes,
        ));
    }
    let pairs = [("aes-128-gcm", "chacha20-poly1305"), ("aes-128-gcm", "aes-256-gcm")];
    let findings = ["seal", "open"]
        .iter()
        .flat_map(|op| pairs.map(|(a, b)| crossover(view, op, a, b)));
    figure.caption = findings.flatten().collect::<Vec<_>>().join(" ");
    if figure.caption.is_empty() {
        figure.caption = format!("Throughput of {} by message size.", clean(ours));
    }
    figure.reading = READING.to_owned();
    (!figure.drawings.is_empty()).then_some(figure)
}

const READING: &str = "Each point is the median over rounds, its bar the interval (or the range, with few rounds); \
                       hollow points are noisy. Both axes are logarithmic and the same in every panel.";

/// All subjects, a figure for each suite with a panel for each operation and variant.
pub(super) fn subjects(view: &View<'_>) -> Vec<Figure> {
    let axes = Axes::new(view);
    let mut figures = Vec::new();
    for (place, suite) in view.suites().into_iter().enumerate() {
        let mut figure = Figure {
            id: format!("suite-{place}"),
            ..Figure::default()
        };
        figure.table = table(&format!("Throughput of {}", clean(suite)), "subject");
        let mut captions = Vec::new();
        for (index, group) in view.groups.iter().enumerate().filter(|(_, group)| group.suite == suite) {
            if matches!(group.op, "key-setup" | "fresh-key") || group.sizes.is_empty() {
                continue;
            }
            let lines: Vec<Line<'_>> = view
                .subjects_in(index, METRIC)
                .into_iter()
                .map(|name| Line {
                    name,
                    label: clean(name),
                    class: format!("s{}", series(name)),
                    shape: series(name),
                    points: points(view, index, name),
                })
                .collect();
            if lines.is_empty() {
                continue;
            }
            let label = if group.extra.is_empty() {
                group.op.to_owned()
            } else {
                format!("{} {}", group.op, group.extra)
            };
            fill(&mut figure.table, &label, &lines);
            captions.extend(caption(view, index));
            figure
                .drawings
                .push(panel(&format!("suite-{place}-{index}"), &group.title(), &lines, &axes));
        }
        if !figure.drawings.is_empty() {
            figure.caption = captions.join(" ");
            if figures.is_empty() {
                figure.reading = READING.to_owned();
            }
            figures.push(figure);
        }
    }
    figures
}

/// Who is best at the size that stands for long messages.
fn caption(view: &View<'_>, index: usize) -> Option<String> {
    let group = view.groups.get(index)?;
    let bytes = group
        .sizes
        .iter()
        .copied()
        .find(|b| *b == 16384)
        .or_else(|| group.sizes.last().copied())?;
    let names = view.subjects_in(index, METRIC);
    let rows: Vec<Option<&ResultRow>> = names
        .iter()
        .map(|name| view.row(index, Some(bytes), name, METRIC))
        .collect();
    let best: Vec<String> = names
        .iter()
        .zip(finding::best(&rows))
        .filter(|(_, b)| *b)
        .map(|(n, _)| clean(n))
        .collect();
    let mut rates: Vec<(&str, f64)> = names
        .iter()
        .zip(&rows)
        .filter_map(|(name, row)| Some((*name, row.as_ref()?.median.get() / 1e9)))
        .collect();
    rates.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rates: Vec<String> = rates
        .iter()
        .map(|(name, rate)| format!("{} {}", clean(name), sig3_or(*rate, "?")))
        .collect();
    let lead = match best.len() {
        0 => String::new(),
        1 => format!("{} leads. ", best[0]),
        _ => format!("{} are not told apart. ", finding::list(&best)),
    };
    Some(format!(
        "{} {}: {lead}In GB/s: {}.",
        op_title(group.op),
        size(bytes),
        rates.join(", ")
    ))
}

fn points<'a>(view: &View<'a>, index: usize, subject: &'a str) -> Vec<(i64, &'a ResultRow)> {
    let sizes = view
        .groups
        .get(index)
        .map(|group| group.sizes.as_slice())
        .unwrap_or_default();
    sizes
        .iter()
        .filter_map(|bytes| Some((*bytes, view.row(index, Some(*bytes), subject, METRIC)?)))
        .collect()
}

fn table(caption: &str, name: &str) -> DataTable {
    DataTable::new(
        caption,
        &[
            (name, false),
            ("operation", false),
            ("message", true),
            ("GB/s", true),
            ("from to", true),
            ("rounds", true),
            ("marks", false),
        ],
    )
}

fn fill(table: &mut DataTable, op: &str, lines: &[Line<'_>]) {
    for line in lines {
        for (bytes, row) in &line.points {
            let rate = row.median.get() / 1e9;
            table.rows.push(vec![
                Entry::text(clean(line.name)),
                Entry::text(op),
                Entry::number(size(*bytes), *bytes as f64),
                Entry::number(sig3_or(rate, "not known"), rate),
                Entry::number(list_range(row.low.get() / 1e9, row.high.get() / 1e9), row.low.get()),
                Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
                Entry::text(row.flags.join(", ")),
            ]);
        }
    }
}

fn panel(id: &str, title: &str, lines: &[Line<'_>], axes: &Axes) -> String {
    let x = Log::new(axes.sizes.0, axes.sizes.1, LEFT, RIGHT);
    let y = Log::new(axes.rates.0, axes.rates.1, BOTTOM, TOP);
    let names: Vec<String> = lines.iter().map(|line| clean(line.name)).collect();
    let description = format!(
        "Lines of throughput by message size for {}. The table below has the figures.",
        finding::list(&names)
    );
    let mut svg = Svg::new(id, "panel", WIDTH, HEIGHT, title, &description);
    svg.text("title", (0.0, 16.0), Anchor::Start, title);
    svg.text("axis", (0.0, 36.0), Anchor::Start, "GB/s, log scale");
    for tick in y.ticks() {
        svg.line("gridline", (LEFT, y.at(tick)), (RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, &trim(tick));
    }
    size_axis(&mut svg, lines, x);

    // Ours lies beneath, broader than the others, so that a tie shows both.
    let shown = |row: &ResultRow| row.median.get().is_finite() && row.median.get() > 0.0;
    for line in lines {
        svg.open(&format!("series {}", line.class), line.name);
        let places: Vec<(f64, f64)> = line
            .points
            .iter()
            .filter(|(_, row)| shown(row))
            .map(|(bytes, row)| (x.at(*bytes as f64), y.at(row.median.get() / 1e9)))
            .collect();
        svg.path("line", &places);
        for (bytes, row) in line.points.iter().filter(|(_, row)| shown(row)) {
            let at = (x.at(*bytes as f64), y.at(row.median.get() / 1e9));
            let (low, high) = (y.at(row.low.get() / 1e9), y.at(row.high.get() / 1e9));
            svg.line("whisker", (at.0, low), (at.0, high));
            let hollow = if row.flags.is_empty() { "" } else { "hollow" };
            svg.point(
                hollow,
                line.shape,
                at,
                if line.class == "s0" { 5.5 } else { 3.6 },
                &tip(line.name, *bytes, row),
            );
        }
        svg.close();
    }
    let last: Vec<(&Line<'_>, f64)> = lines
        .iter()
        .filter_map(|line| {
            let (_, row) = line.points.iter().rev().find(|(_, row)| shown(row))?;
            Some((line, y.at(row.median.get() / 1e9)))
        })
        .collect();
    let wanted: Vec<f64> = last.iter().map(|(_, place)| *place).collect();
    for ((line, from), place) in last.iter().zip(spread(&wanted, 15.0, TOP, BOTTOM)) {
        svg.open(&format!("series {}", line.class), line.name);
        svg.line("leader", (RIGHT + 3.0, *from), (RIGHT + 14.0, place));
        svg.point("key", line.shape, (RIGHT + 20.0, place), 3.5, "");
        svg.text("label", (RIGHT + 28.0, place + 4.0), Anchor::Start, &line.label);
        svg.close();
    }
    svg.finish()
}

/// Ticks at the measured sizes, as many as have room.
fn size_axis(svg: &mut Svg, lines: &[Line<'_>], x: Log) {
    let mut sizes: Vec<i64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(bytes, _)| *bytes))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut free_from = f64::MIN;
    for bytes in sizes {
        let place = x.at(bytes as f64);
        svg.line("tickmark", (place, BOTTOM), (place, BOTTOM + 5.0));
        if place - 22.0 >= free_from {
            svg.text("tick", (place, BOTTOM + 19.0), Anchor::Middle, &size(bytes));
            free_from = place + 22.0;
        }
    }
    svg.line("axisline", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.text(
        "axis",
        (f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0),
        Anchor::Middle,
        "message size, log scale",
    );
}

fn tip(name: &str, bytes: i64, row: &ResultRow) -> String {
    let rate = |value: f64| sig3_or(value / 1e9, "?");
    let mut text = format!(
        "{}, {}: {} GB/s ({})",
        clean(name),
        size(bytes),
        rate(row.median.get()),
        list_range(row.low.get() / 1e9, row.high.get() / 1e9)
    );
    if !row.flags.is_empty() {
        text.push_str(&format!(", {}", row.flags.join(", ")));
    }
    text
}

/// A tick without needless digits.
pub(super) fn trim(value: f64) -> String {
    let text = sig3_or(value, "");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
