//! Ratios to the reference with their intervals: which subject is faster, by how much, how sure.

use super::figure::{DataTable, Entry, Figure};
use super::scale::Log;
use super::svg::{Anchor, Svg};
use super::throughput::trim;
use crate::format::{clean, list_range, percent_from_one, sig3_or, size, times};
use crate::report::finding::{self, MARGIN, leading};
use crate::report::view::{PRIMITIVES, Speed, View, op_title, series, speed};
use crate::result::ResultRow;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 336.0;
const ROW: f64 = 21.0;
const HEAD: f64 = 30.0;

/// The figure of one subject, a panel for each suite; `None` when it has no ratio.
pub(super) fn figure(view: &View<'_>, subject: &str) -> Option<Figure> {
    let rows: Vec<(&ResultRow, Speed<'_>)> = view
        .run
        .results
        .iter()
        .filter(|row| row.workload == PRIMITIVES && row.subject == subject && leading(row))
        .filter_map(|row| Some((row, speed(row)?)))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut figure = Figure {
        id: format!("forest-{}", view.subjects.iter().position(|s| *s == subject)?),
        ..Figure::default()
    };
    for (place, suite) in view.suites().into_iter().enumerate() {
        let members: Vec<&(&ResultRow, Speed<'_>)> = rows
            .iter()
            .filter(|(row, _)| row.case.text("suite").unwrap_or("") == suite)
            .collect();
        if !members.is_empty() {
            let axis = axis(&rows, members.first().map_or("", |(_, speed)| speed.to));
            let id = format!("{}-{place}", figure.id);
            figure.drawings.push(panel(&id, subject, suite, &members, axis));
        }
    }
    figure.caption = finding::standings(view.run, PRIMITIVES, subject)
        .iter()
        .map(finding::Standing::sentence)
        .collect::<Vec<_>>()
        .join(" ");
    figure.reading = "Right of the line is faster; times are turned round, so this holds for key set-up too. Bars are \
                      intervals (thin and pale: the plain range of a few rounds), the grey band is 1 % either way, \
                      arrows leave the scale, hollow points are noisy. The same log scale in all panels with \
                      the same reference."
        .to_owned();
    figure.table = table(subject, &rows);
    Some(figure)
}

/// The scale of all panels with one reference; panels with different ones do not invite comparison.
fn axis(rows: &[(&ResultRow, Speed<'_>)], to: &str) -> Log {
    let same = rows.iter().filter(|(_, speed)| speed.to == to);
    let ends = same.flat_map(|(_, speed)| [speed.low, speed.high, speed.estimate]);
    let (low, high) = ends
        .filter(|v| v.is_finite() && *v > 0.0)
        .fold((0.95, 1.0 / 0.95), |(low, high): (f64, f64), v| {
            (low.min(v), high.max(v))
        });
    Log::new((low / 1.02).max(0.02), (high * 1.02).min(50.0), LEFT, RIGHT)
}

fn table(subject: &str, rows: &[(&ResultRow, Speed<'_>)]) -> DataTable {
    let mut table = DataTable::new(
        &format!("{} against the reference", clean(subject)),
        &[
            ("case", false),
            ("reference", false),
            ("speed ratio", true),
            ("from to", true),
            ("difference", true),
            ("level", true),
            ("smallest detectable", true),
            ("verdict", false),
        ],
    );
    for (row, speed) in rows {
        let (level, mde) = row
            .ratio
            .as_ref()
            .map_or((0.0, f64::NAN), |ratio| (ratio.level, ratio.mde.get()));
        let level_text = if level > 0.0 {
            format!("{:.1} %", level * 100.0)
        } else {
            "range only".to_owned()
        };
        let mde_text = if mde.is_finite() {
            format!("{:.1} %", mde * 100.0)
        } else {
            "not known".to_owned()
        };
        table.rows.push(vec![
            Entry::text(finding::case(row)),
            Entry::text(clean(speed.to)),
            Entry::number(sig3_or(speed.estimate, "not known"), speed.estimate),
            Entry::number(list_range(speed.low, speed.high), speed.low),
            Entry::number(percent_from_one(speed.estimate), speed.estimate),
            Entry::number(level_text, level),
            Entry::number(mde_text, mde),
            Entry::text(finding::verdict(speed.verdict).2),
        ]);
    }
    table
}

fn panel(id: &str, subject: &str, suite: &str, rows: &[&(&ResultRow, Speed<'_>)], axis: Log) -> String {
    // An operation's name stands over its sizes.
    let op = |row: &ResultRow| row.case.text("op").unwrap_or("").to_owned();
    let mut ops: Vec<String> = Vec::new();
    for (row, _) in rows {
        if !ops.contains(&op(row)) {
            ops.push(op(row));
        }
    }
    let bottom = HEAD + 8.0 + ROW * (rows.len() + ops.len()) as f64;
    let to = rows.first().map_or("", |(_, speed)| speed.to);
    let title = format!("{}: {} against {}", clean(suite), clean(subject), clean(to));
    let description = format!(
        "Ratios of {} to {} with intervals. The table below has the figures.",
        clean(subject),
        clean(to)
    );
    let mut svg = Svg::new(id, "forest", WIDTH, bottom + 44.0, &title, &description);
    svg.text("title", (0.0, 16.0), Anchor::Start, &title);
    svg.rect(
        "band",
        (axis.at(1.0 - MARGIN), HEAD),
        (axis.at(1.0 + MARGIN) - axis.at(1.0 - MARGIN), bottom - HEAD),
    );
    for tick in axis.ticks() {
        svg.line("gridline", (axis.at(tick), HEAD), (axis.at(tick), bottom));
    }
    let mut free_from = f64::MIN;
    for tick in axis.ticks() {
        let place = axis.at(tick);
        // The label of 1 always has its room.
        let near_one = (place - axis.at(1.0)).abs() < 24.0 && (tick - 1.0).abs() > 1e-9;
        if place - 13.0 >= free_from && !near_one {
            svg.text("tick", (place, bottom + 16.0), Anchor::Middle, &trim(tick));
            free_from = place + 13.0;
        }
    }
    svg.line("one", (axis.at(1.0), HEAD), (axis.at(1.0), bottom));
    svg.text(
        "axis",
        (axis.at(1.0) - 8.0, bottom + 34.0),
        Anchor::End,
        "\u{2190} slower",
    );
    svg.text(
        "axis",
        (axis.at(1.0) + 8.0, bottom + 34.0),
        Anchor::Start,
        "faster \u{2192}  (ratio, log scale)",
    );

    let class = series(subject);
    let mut y = HEAD + 8.0;
    for name in &ops {
        svg.text(
            "rowhead",
            (0.0, y + 14.0),
            Anchor::Start,
            &op_title(name).replace(" for each message", ""),
        );
        y += ROW;
        for (row, speed) in rows.iter().filter(|(row, _)| op(row) == *name) {
            let middle = y + ROW / 2.0;
            let label = row.case.int("bytes").map_or_else(|| "a key".to_owned(), size);
            svg.text("row", (LEFT - 12.0, middle + 4.0), Anchor::End, &label);
            svg.open(&format!("series s{class}"), subject);
            mark(&mut svg, row, speed, axis, middle, class);
            svg.close();
            let estimate = format!("{:>5}", sig3_or(speed.estimate, "?"));
            svg.text("number strong", (RIGHT + 48.0, middle + 4.0), Anchor::End, &estimate);
            svg.text(
                "number",
                (WIDTH, middle + 4.0),
                Anchor::End,
                &list_range(speed.low, speed.high).replace(" to ", "\u{2013}"),
            );
            y += ROW;
        }
    }
    svg.finish()
}

fn mark(svg: &mut Svg, row: &ResultRow, speed: &Speed<'_>, axis: Log, y: f64, class: usize) {
    let (low, high) = (axis.at(speed.low), axis.at(speed.high));
    svg.line(
        if speed.interval { "interval" } else { "interval few" },
        (low, y),
        (high, y),
    );
    if !axis.holds(speed.low) {
        svg.shape("arrow", &[(low - 6.0, y), (low + 1.0, y - 4.0), (low + 1.0, y + 4.0)]);
    }
    if !axis.holds(speed.high) {
        svg.shape(
            "arrow",
            &[(high + 6.0, y), (high - 1.0, y - 4.0), (high - 1.0, y + 4.0)],
        );
    }
    let hollow = if row.flags.is_empty() { "" } else { "hollow" };
    let tip = format!(
        "{}: {} {} ({}), {}",
        finding::case(row),
        times(speed.estimate),
        clean(speed.to),
        list_range(speed.low, speed.high),
        finding::verdict(speed.verdict).2
    );
    svg.point(hollow, class, (axis.at(speed.estimate), y), 4.5, &tip);
}
