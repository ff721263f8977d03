//! The workload `packets`: batch size against operations a second, and every case as a table.

use super::figure::{DataTable, Entry, Figure};
use super::scale::{Log, spread};
use super::svg::{Anchor, Svg};
use super::throughput::trim;
use crate::format::{clean, list_range, sig3_or, times};
use crate::report::finding;
use crate::report::packets::{Family, PACKETS, case, families, lanes, link};
use crate::report::view::{View, series, speed};
use crate::result::ResultRow;

const METRIC: &str = "rate";
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 332.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 276.0;

/// The figure; `None` for a run without packets.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let mut figure = Figure {
        id: "packets".to_owned(),
        table: table(view),
        ..Figure::default()
    };
    if figure.table.rows.is_empty() {
        return None;
    }
    let families = families(view.run);
    let swept: Vec<&Family<'_>> = families.iter().filter(|family| family.sweep).collect();
    let axes = axes(&swept);
    for (place, family) in swept.iter().enumerate() {
        let subjects = family.subjects(&view.subjects, METRIC);
        figure
            .drawings
            .push(panel(&format!("packets-{place}"), family, &subjects, axes));
    }
    figure.caption = findings(view, &families);
    if !figure.drawings.is_empty() {
        figure.reading = "Each point is the median over rounds, its bar the interval (or the range, with few rounds); hollow \
                          points are noisy. Both axes are logarithmic and the same in every panel. Peers take the packets of \
                          a batch one by one; the grey lines are our engine held to narrower kernels."
            .to_owned();
    }
    Some(figure)
}

/// Our engine against the best peer at the largest batch of every sweep, and the lanes.
fn findings(view: &View<'_>, families: &[Family<'_>]) -> String {
    let mut sentences = Vec::new();
    for family in families.iter().filter(|family| family.sweep) {
        let row = family
            .columns
            .iter()
            .rev()
            .find_map(|column| column.row(view.ours()?, METRIC));
        if let Some((row, speed)) = row.and_then(|row| Some((row, speed(row)?))) {
            sentences.push(format!(
                "{}: {} million a second, {} {}, the best peer there.",
                case(row),
                sig3_or(row.median.get() / 1e6, "?"),
                times(speed.estimate),
                clean(speed.to)
            ));
        }
    }
    sentences.extend(lanes(view.run));
    sentences.extend(link(view.run));
    if sentences.is_empty() {
        return "Operations a second for each case.".to_owned();
    }
    sentences.join(" ")
}

/// Ends of the batch axis and of the rate axis in all panels.
pub(super) fn axes(families: &[&Family<'_>]) -> (Log, Log) {
    let (mut batches, mut rates) = ((f64::MAX, 0.0f64), (f64::MAX, 0.0f64));
    for row in families
        .iter()
        .flat_map(|family| &family.columns)
        .flat_map(|column| column.all(METRIC))
    {
        let batch = row.case.int("batch").unwrap_or(1) as f64;
        let rate = row.median.get() / 1e6;
        batches = (batches.0.min(batch), batches.1.max(batch));
        if rate.is_finite() && rate > 0.0 {
            rates = (rates.0.min(rate), rates.1.max(rate));
        }
    }
    (
        Log::new(batches.0 / 1.25, batches.1 * 1.25, LEFT, RIGHT),
        Log::new(rates.0 / 1.2, rates.1 * 1.2, BOTTOM, TOP),
    )
}

/// One sweep over batches. `id` is unique in the page.
pub(super) fn panel(id: &str, family: &Family<'_>, subjects: &[&str], (x, y): (Log, Log)) -> String {
    let description = "Lines of operations a second by batch size. The table below has the figures.";
    let mut svg = Svg::new(id, "panel", WIDTH, HEIGHT, &family.title, description);
    svg.text("title", (0.0, 16.0), Anchor::Start, &family.title);
    svg.text("axis", (0.0, 36.0), Anchor::Start, "million/s, log scale");
    for tick in y.ticks() {
        svg.line("gridline", (LEFT, y.at(tick)), (RIGHT, y.at(tick)));
        svg.text("tick", (LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, &trim(tick));
    }
    for column in &family.columns {
        let at = x.at(column.batch as f64);
        svg.line("tickmark", (at, BOTTOM), (at, BOTTOM + 5.0));
        svg.text("tick", (at, BOTTOM + 19.0), Anchor::Middle, &column.title);
    }
    svg.line("axisline", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text(
        "axis",
        (middle, BOTTOM + 38.0),
        Anchor::Middle,
        "packets in a batch, log scale",
    );
    let mut last = Vec::new();
    for &name in subjects {
        let class = format!("s{}", series(name));
        let points: Vec<(&ResultRow, (f64, f64))> = family
            .columns
            .iter()
            .filter_map(|column| Some((column.batch, column.row(name, METRIC)?)))
            .filter(|(_, row)| row.median.get().is_finite() && row.median.get() > 0.0)
            .map(|(batch, row)| (row, (x.at(batch as f64), y.at(row.median.get() / 1e6))))
            .collect();
        svg.open(&format!("series {class}"), name);
        let places: Vec<(f64, f64)> = points.iter().map(|(_, at)| *at).collect();
        svg.path("line", &places);
        for (row, at) in &points {
            let (low, high) = (y.at(row.low.get() / 1e6), y.at(row.high.get() / 1e6));
            svg.line("whisker", (at.0, low), (at.0, high));
            let hollow = if row.flags.is_empty() { "" } else { "hollow" };
            let radius = if class == "s0" { 5.5 } else { 3.6 };
            svg.point(hollow, series(name), *at, radius, &tip(row));
        }
        svg.close();
        last.extend(places.last().map(|at| (name, class, at.1)));
    }
    let wanted: Vec<f64> = last.iter().map(|(_, _, at)| *at).collect();
    for ((name, class, from), place) in last.iter().zip(spread(&wanted, 15.0, TOP, BOTTOM)) {
        svg.open(&format!("series {class}"), name);
        svg.line("leader", (RIGHT + 3.0, *from), (RIGHT + 14.0, place));
        svg.point("key", series(name), (RIGHT + 20.0, place), 3.5, "");
        svg.text("label", (RIGHT + 28.0, place + 4.0), Anchor::Start, &clean(name));
        svg.close();
    }
    svg.finish()
}

fn tip(row: &ResultRow) -> String {
    let mut text = format!(
        "{}, {}: {} million/s ({})",
        clean(&row.subject),
        finding::case(row),
        sig3_or(row.median.get() / 1e6, "?"),
        list_range(row.low.get() / 1e6, row.high.get() / 1e6)
    );
    if !row.flags.is_empty() {
        text.push_str(&format!(", {}", row.flags.join(", ")));
    }
    text
}

/// Every case and subject.
fn table(view: &View<'_>) -> DataTable {
    let ours = view.run.results.iter().filter(|row| row.workload == PACKETS);
    let to = format!("to {}", finding::reference(ours));
    let mut table = DataTable::new(
        "Packets in batches",
        &[
            ("case", false),
            ("subject", false),
            ("million/s", true),
            ("from to", true),
            (&to, true),
            ("rounds", true),
            ("marks", false),
        ],
    );
    let wanted = |row: &&ResultRow| row.workload == PACKETS && row.metric == METRIC;
    for row in view.run.results.iter().filter(wanted) {
        let rate = row.median.get() / 1e6;
        let ratio = match speed(row) {
            Some(speed) => Entry::number(format!("{} {}", times(speed.estimate), clean(speed.to)), speed.estimate),
            None => Entry::text(""),
        };
        table.rows.push(vec![
            Entry::text(case(row)),
            Entry::text(clean(&row.subject)),
            Entry::number(sig3_or(rate, "not known"), rate),
            Entry::number(list_range(row.low.get() / 1e6, row.high.get() / 1e6), row.low.get()),
            ratio,
            Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
            Entry::text(row.flags.join(", ")),
        ]);
    }
    table
}
