//! The workload `transports`: what a gigabyte costs, in bars of one piece for each program, and every case as a table.

use super::figure::{self, DataTable, Figure};
use super::scale::linear_ticks;
use super::svg::{Anchor, Svg};
use super::throughput::trim;
use crate::format::{clean, list_range, sig3_or, times};
use crate::report::transports::{Entry, LOOPBACK, ROLES, TRANSPORTS, against, case, entries};
use crate::report::view::{OURS, View, series, speed};
use crate::result::ResultRow;

const METRIC: &str = "cpu_per_gb";
const WIDTH: f64 = 480.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 408.0;
const ROW: f64 = 21.0;
const HEAD: f64 = 32.0;

/// The figure; `None` for a run without transports.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let mut figure = Figure {
        id: TRANSPORTS.to_owned(),
        table: table(view),
        ..Figure::default()
    };
    if figure.table.rows.is_empty() {
        return None;
    }
    let entries: Vec<Entry<'_>> = entries(view.run)
        .into_iter()
        .filter(|entry| !entry.subjects(&view.subjects, METRIC).is_empty())
        .collect();
    // One scale in all panels, or lengths could not be compared.
    let costs = entries.iter().flat_map(|entry| {
        let subjects = entry.subjects(&view.subjects, METRIC);
        subjects.into_iter().filter_map(|name| entry.row(name, METRIC))
    });
    let most = costs
        .map(|row| row.high.get())
        .filter(|cost| cost.is_finite())
        .fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.05 } else { 1.0 };
    for panel_of in entries.chunk_by(|a, b| a.kind() == b.kind()) {
        figure.drawings.push(panel(view, figure.drawings.len(), panel_of, most));
    }
    let sentences: Vec<String> = entries
        .iter()
        .filter_map(|entry| Some(format!("{}: {}", entry.title(), against(entry, OURS)?)))
        .take(5)
        .collect();
    figure.caption = if sentences.is_empty() {
        "CPU time for each 10^9 bytes delivered, for each case and program.".to_owned()
    } else {
        sentences.join(" ")
    };
    figure.reading = format!(
        "Bars start at zero; shorter is better. Each has a piece for the client, one for what stands before the server, and one \
         for the server, darkest first; the thin line is the interval of their sum, or the range with few rounds. The \
         generator's cost is in none. {LOOPBACK}"
    );
    Some(figure)
}

/// Cases that have streams and direction in common.
fn panel(view: &View<'_>, place: usize, entries: &[Entry<'_>], most: f64) -> String {
    let kind = entries.first().map(Entry::kind).unwrap_or_default();
    let lines: usize = entries
        .iter()
        .map(|entry| entry.subjects(&view.subjects, METRIC).len() + 1)
        .sum();
    let bottom = HEAD + ROW * lines as f64 + 8.0 * entries.len() as f64;
    let mut svg = Svg::new(
        &format!("{TRANSPORTS}-{place}"),
        "bars",
        WIDTH,
        bottom + 40.0,
        &kind,
        "Horizontal bars of CPU seconds for each gigabyte, one for each stack and subject, stacked by program. The table \
         below has the figures.",
    );
    svg.text("title", (0.0, 16.0), Anchor::Start, &kind);
    let x = |cost: f64| LEFT + (cost / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
    for tick in linear_ticks(0.0, most, 5) {
        svg.line("gridline", (x(tick), HEAD), (x(tick), bottom));
        svg.text("tick", (x(tick), bottom + 16.0), Anchor::Middle, &trim(tick));
    }
    svg.text(
        "axis",
        (f64::midpoint(LEFT, RIGHT), bottom + 34.0),
        Anchor::Middle,
        "CPU s/GB, from zero",
    );
    let mut y = HEAD;
    for entry in entries {
        svg.text("rowhead", (0.0, y + 15.0), Anchor::Start, &entry.stack());
        y += ROW;
        let subjects = entry.subjects(&view.subjects, METRIC);
        for name in &subjects {
            bar(&mut svg, entry, name, y, &x);
            y += ROW;
        }
        svg.line("axisline", (LEFT, y - ROW * subjects.len() as f64), (LEFT, y));
        y += 8.0;
    }
    svg.finish()
}

/// One subject's bar.
fn bar(svg: &mut Svg, entry: &Entry<'_>, name: &str, y: f64, x: &dyn Fn(f64) -> f64) {
    svg.text("row", (LEFT - 8.0, y + 14.0), Anchor::End, &clean(name));
    let Some(sum) = entry.row(name, METRIC) else { return };
    let cost = sum.median.get();
    let mut end = LEFT;
    if cost.is_finite() {
        svg.open(&format!("series s{}", series(name)), name);
        // Medians of the parts need not add up to that of the sum: pieces share out the bar.
        let parts = ROLES.map(|(role, metric)| (role, entry.row(name, metric).map_or(0.0, |row| row.median.get())));
        let whole: f64 = parts.iter().map(|(_, part)| part).sum();
        let mut from = 0.0;
        for (role, part) in parts.into_iter().filter(|(_, part)| *part > 0.0) {
            let to = from + cost * part / whole;
            let tip = format!(
                "{}, {}, {role}: {} s/GB",
                clean(name),
                entry.title(),
                sig3_or(part, "?")
            );
            let class = format!("bar part {role}");
            svg.bar(
                &class,
                (x(from), y + 3.0),
                ((x(to) - x(from)).max(0.5), ROW - 7.0),
                &tip,
            );
            from = to;
        }
        svg.line(
            "error",
            (x(sum.low.get()), y + ROW / 2.0 - 0.5),
            (x(sum.high.get()), y + ROW / 2.0 - 0.5),
        );
        svg.close();
        end = x(cost).max(x(sum.high.get()));
    }
    svg.text(
        "number strong",
        (end + 7.0, y + 14.0),
        Anchor::Start,
        &sig3_or(cost, "not known"),
    );
}

/// Every case and subject.
fn table(view: &View<'_>) -> DataTable {
    let mut table = DataTable::new(
        "Streams through proxies",
        &[
            ("case", false),
            ("subject", false),
            ("Gbit/s", true),
            ("to the best peer", true),
            ("CPU s/GB", true),
            ("from to", true),
            ("to the cheapest peer", true),
            ("client", true),
            ("front", true),
            ("server", true),
            ("MiB at most", true),
            ("rounds", true),
            ("marks", false),
        ],
    );
    for entry in entries(view.run) {
        for name in entry.subjects(&view.subjects, "throughput") {
            let Some(rate) = entry.row(name, "throughput") else {
                continue;
            };
            let number = |metric: &str, scale: f64| match entry.row(name, metric) {
                Some(row) => {
                    let value = row.median.get() * scale;
                    figure::Entry::number(sig3_or(value, "not known"), value)
                }
                None => figure::Entry::text(""),
            };
            let cost = entry.row(name, METRIC);
            let range = cost.map_or_else(
                || figure::Entry::text(""),
                |row| figure::Entry::number(list_range(row.low.get(), row.high.get()), row.low.get()),
            );
            let mut row = vec![
                figure::Entry::text(case(rate)),
                figure::Entry::text(clean(name)),
                number("throughput", 8e-9),
                ratio(Some(rate)),
                number(METRIC, 1.0),
                range,
                ratio(cost),
            ];
            row.extend(ROLES.map(|(_, metric)| number(metric, 1.0)));
            row.push(number("memory", 1.0 / f64::from(1 << 20)));
            row.push(figure::Entry::number(rate.rounds.to_string(), f64::from(rate.rounds)));
            row.push(figure::Entry::text(rate.flags.join(", ")));
            table.rows.push(row);
        }
    }
    table
}

/// The ratio as it stands in the row: of rates, or of costs.
fn ratio(row: Option<&ResultRow>) -> figure::Entry {
    let known = row
        .filter(|row| speed(row).is_some())
        .and_then(|row| row.ratio.as_ref());
    match known {
        Some(ratio) => figure::Entry::number(
            format!("{} {}", times(ratio.estimate.get()), clean(&ratio.to)),
            ratio.estimate.get(),
        ),
        None => figure::Entry::text(""),
    }
}
