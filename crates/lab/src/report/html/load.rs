//! The workloads `requests`, `flows` and `files`: bars of rate, cost, latency and memory, and every figure as a table.

use super::bars::{Bars, Scale, panel};
use super::figure::{DataTable, Entry, Figure};
use crate::format::{clean, list_range, sig3_or, times};
use crate::report::files::FILES;
use crate::report::load::{Family, SHOWN, Shown, case, families, number, reading};
use crate::report::view::{View, speed};

/// Panels of a case: a title and the metrics in it. What shares a panel shares its scale.
const PANELS: [(&str, &[&str]); 9] = [
    ("Rate", &["rate"]),
    ("CPU of all programs", &["cpu_per_op"]),
    ("Latency", &["latency_p50", "latency_p95", "latency_p99"]),
    ("Time to the first byte", &["first_byte_p50", "first_byte_p99"]),
    (
        "Memory",
        &[
            "memory_per_connection",
            "memory_per_connection_client",
            "memory_per_connection_kernel",
        ],
    ),
    ("Throughput", &["throughput", "throughput_synced"]),
    ("Time for one byte", &["setup_time", "total_time"]),
    (
        "CPU for each gigabyte",
        &[
            "cpu_per_gb",
            "cpu_per_gb_sender",
            "cpu_per_gb_receiver",
            "cpu_per_gb_relay",
        ],
    ),
    ("Peak memory", &["memory_sender", "memory_receiver", "memory_relay"]),
];

/// The figure of a workload; `None` for a run without it.
pub(super) fn figure(view: &View<'_>, workload: &str) -> Option<Figure> {
    let families = families(view.run, workload);
    if families.is_empty() {
        return None;
    }
    let mut figure = Figure {
        id: workload.to_owned(),
        table: table(view, workload),
        ..Figure::default()
    };
    let mut sentences = Vec::new();
    for (place, family) in families.iter().enumerate() {
        for (index, (title, metrics)) in PANELS.iter().enumerate() {
            let shown: Vec<Shown> = family.shown().filter(|shown| metrics.contains(&shown.metric)).collect();
            let Some(first) = shown.first() else { continue };
            let bars: Vec<Bars<'_>> = shown.iter().map(|shown| bars(view, family, *shown)).collect();
            let scale = Scale {
                factor: first.scale,
                unit: first.unit,
            };
            let id = format!("{workload}-{place}-{index}");
            figure
                .drawings
                .push(panel(&id, &format!("{title}: {}", family.short), &bars, scale));
        }
        sentences.extend(finding(view, family));
    }
    figure.caption = if sentences.is_empty() {
        "What each subject did in each case.".to_owned()
    } else {
        sentences.join(" ")
    };
    figure.reading = format!(
        "Bars start at zero; the thin line is the interval, or the range with few rounds. {}",
        reading(workload)
    );
    Some(figure)
}

fn bars<'a>(view: &View<'a>, family: &Family<'a>, shown: Shown) -> Bars<'a> {
    let rows = view
        .subjects
        .iter()
        .filter_map(|name| Some((*name, family.row(name, shown.metric)?)));
    Bars {
        title: shown.title.to_owned(),
        rows: rows.collect(),
    }
}

/// Our engine against the best peer, in a sentence for each case.
fn finding(view: &View<'_>, family: &Family<'_>) -> Option<String> {
    let ours = view.ours()?;
    let metric = [
        "throughput",
        "setup_time",
        "rate",
        "latency_p99",
        "memory_per_connection",
    ]
    .into_iter()
    .find(|metric| family.row(ours, metric).is_some())?;
    let row = family.row(ours, metric)?;
    let shown = SHOWN.iter().find(|shown| shown.metric == metric)?;
    // As a share of the peer's figure, not turned round as in tables: it stands beside the figure itself.
    let ratio = row.ratio.as_ref().filter(|ratio| ratio.estimate.get().is_finite())?;
    Some(format!(
        "{}, {}: {} {}, {} that of {}.",
        case(row),
        shown.title,
        number(row, shown.scale),
        shown.unit,
        times(ratio.estimate.get()),
        clean(&ratio.to)
    ))
}

/// Every case, metric and subject.
fn table(view: &View<'_>, workload: &str) -> DataTable {
    let mut table = DataTable::new(
        if workload == FILES {
            "Files from end to end"
        } else {
            "Load on proxied paths"
        },
        &[
            ("case", false),
            ("metric", false),
            ("subject", false),
            ("figure", true),
            ("unit", false),
            ("from to", true),
            ("ratio, above 1 is better", true),
            ("rounds", true),
            ("marks", false),
        ],
    );
    for row in view.run.results.iter().filter(|row| row.workload == workload) {
        let shown = SHOWN.iter().find(|shown| shown.metric == row.metric);
        let (scale, unit) = shown.map_or((1.0, row.unit.as_str()), |shown| (shown.scale, shown.unit));
        let ratio = match speed(row) {
            Some(speed) => Entry::number(
                format!("{} {}", sig3_or(speed.estimate, "?"), clean(speed.to)),
                speed.estimate,
            ),
            None => Entry::text(""),
        };
        table.rows.push(vec![
            Entry::text(case(row)),
            Entry::text(clean(&row.metric)),
            Entry::text(clean(&row.subject)),
            Entry::number(number(row, scale), row.median.get() * scale),
            Entry::text(clean(unit)),
            Entry::number(
                list_range(row.low.get() * scale, row.high.get() * scale),
                row.low.get() * scale,
            ),
            ratio,
            Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
            Entry::text(row.flags.join(", ")),
        ]);
    }
    table
}
