//! The workload `bip324`: batch size against packets a second, and every case as a table.

use super::figure::{DataTable, Entry, Figure};
use super::packets::{axes, panel};
use crate::bip324::GPU_SHARE;
use crate::format::{clean, list_range, sig3_or, times};
use crate::report::bip324::{BIP324, case, findings, leading, sections};
use crate::report::finding;
use crate::report::packets::Family;
use crate::report::view::{OURS, View, speed};
use crate::result::ResultRow;

/// The figure; `None` for a run without such rows.
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let mut figure = Figure {
        id: BIP324.to_owned(),
        table: table(view),
        ..Figure::default()
    };
    if figure.table.rows.is_empty() {
        return None;
    }
    let sections = sections(view.run);
    let swept: Vec<&Family<'_>> = sections
        .iter()
        .map(|section| &section.family)
        .filter(|family| family.sweep)
        .collect();
    let axes = axes(&swept);
    for (place, family) in swept.iter().enumerate() {
        let subjects = family.subjects(&view.subjects, "rate");
        let id = format!("{BIP324}-{place}");
        figure.drawings.push(panel(&id, family, &subjects, axes));
    }
    figure.caption = findings(view.run).join(" ");
    if figure.caption.is_empty() {
        figure.caption = "Figures for each case.".to_owned();
    }
    if !figure.drawings.is_empty() {
        let rows = view.run.results.iter().filter(|row| row.workload == BIP324);
        let who = if finding::reference(rows) == OURS {
            "sealway is the processor alone; the others have a GPU beside it, for all packets or for as many as pay."
        } else {
            "Only sealway works on a batch at once; the grey line is our engine packet by packet, the others are peers."
        };
        figure.reading = format!(
            "Each point is the median over rounds, its bar the interval (or the range, with few rounds); hollow points are noisy. \
             Both axes are logarithmic and the same in every panel. {who}"
        );
    }
    Some(figure)
}

/// What a metric is shown as: words, a factor, a unit.
fn shown(metric: &str) -> Option<(&'static str, f64, &'static str)> {
    Some(match metric {
        "rate" => ("rate", 1e-6, "10^6/s"),
        "throughput" => ("contents", 1e-9, "GB/s"),
        "wire_throughput" => ("wire", 1e-9, "GB/s"),
        "latency_p50" => ("batch, median", 1e6, "us"),
        "latency_p99" => ("batch, 99th percentile", 1e6, "us"),
        "packet_p50" => ("packet, median", 1e9, "ns"),
        "packet_p99" => ("packet, 99th percentile", 1e9, "ns"),
        "cpu_per_op" => ("CPU of both ends", 1e9, "ns a message"),
        "cpu_per_gb" => ("CPU of both ends", 1.0, "s/GB"),
        "setup_time" => ("time", 1e6, "us"),
        "overhead" => ("overhead", 100.0, "%"),
        GPU_SHARE => ("done by the GPU", 100.0, "% of packets"),
        _ => return None,
    })
}

/// Every case, subject and metric.
fn table(view: &View<'_>) -> DataTable {
    let ours = view.run.results.iter().filter(|row| row.workload == BIP324);
    let to = format!("to {}", finding::reference(ours));
    let mut table = DataTable::new(
        "BIP324 connections",
        &[
            ("case", false),
            ("subject", false),
            ("figure", false),
            ("median", true),
            ("from to", true),
            ("unit", false),
            (&to, true),
            ("rounds", true),
            ("marks", false),
        ],
    );
    let wanted = |row: &&ResultRow| row.workload == BIP324;
    for row in view.run.results.iter().filter(wanted) {
        let Some((words, scale, unit)) = shown(&row.metric) else {
            continue;
        };
        let value = row.median.get() * scale;
        let ratio = match speed(row).filter(|_| leading(row)) {
            Some(speed) => Entry::number(format!("{} {}", times(speed.estimate), clean(speed.to)), speed.estimate),
            None => Entry::text(""),
        };
        table.rows.push(vec![
            Entry::text(case(row)),
            Entry::text(clean(&row.subject)),
            Entry::text(words),
            Entry::number(sig3_or(value, "not known"), value),
            Entry::number(list_range(row.low.get() * scale, row.high.get() * scale), row.low.get()),
            Entry::text(unit),
            ratio,
            Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
            Entry::text(row.flags.join(", ")),
        ]);
    }
    table
}
