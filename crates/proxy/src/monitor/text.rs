//! Numbers as OpenMetrics text (version 1.0.0).

use std::fmt::Write;

use super::series::{Series, escape};
use super::table::SECTIONS;
use super::view::View;

/// What the text is called.
pub(super) const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Everything that is known, in the order of the table.
pub(super) fn write(view: &View) -> String {
    let mut out = String::with_capacity(16 << 10);
    for metric in SECTIONS.iter().flat_map(|section| section.metrics) {
        let _ = writeln!(out, "# TYPE {} {}", metric.name, metric.kind.word());
        if !metric.unit().is_empty() {
            let _ = writeln!(out, "# UNIT {} {}", metric.name, metric.unit());
        }
        let _ = write!(out, "# HELP {} ", metric.name);
        escape(&mut out, metric.help);
        out.push('\n');
        let mut series = Series {
            name: metric.name,
            suffix: metric.kind.suffix(),
            labels: metric.labels,
            out: &mut out,
        };
        (metric.read)(view, &mut series);
    }
    out.push_str("# EOF\n");
    out
}
