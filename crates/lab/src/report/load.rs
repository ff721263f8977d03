//! The rows of the workloads `requests`, `flows` and `files`, sorted for display. Both reports use the same tables and words.

use std::collections::BTreeMap;

use super::files::{self, FILES};
use super::finding::{Headline, rounds_note, verdict};
use super::view::{OURS, speed};
use crate::format::{clean, sig3_or, times};
use crate::result::{ResultRow, RunResult};

/// The workloads.
pub(crate) const LOADS: [&str; 3] = ["requests", "flows", FILES];

/// The control, which is not ranked.
pub(crate) const DIRECT: &str = "direct";

/// A metric as tables show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) metric: &'static str,
    /// What its unit is multiplied by.
    pub(crate) scale: f64,
    pub(crate) unit: &'static str,
    pub(crate) title: &'static str,
}

const fn shown(metric: &'static str, scale: f64, unit: &'static str, title: &'static str) -> Shown {
    Shown {
        metric,
        scale,
        unit,
        title,
    }
}

const US: f64 = 1e6;
const KIB: f64 = 1.0 / 1024.0;
const MIB: f64 = KIB / 1024.0;

/// What is shown of a case, in this order; what a case has not is left out.
pub(crate) const SHOWN: [Shown; 30] = [
    shown("throughput", 1e-9, "GB/s", "GB/s"),
    shown("throughput_synced", 1e-9, "GB/s", "synced GB/s"),
    shown("setup_time", 1e3, "ms", "first byte ms"),
    shown("total_time", 1e3, "ms", "all ms"),
    shown("rate", 1.0, "1/s", "rate 1/s"),
    shown("cpu_per_gb", 1.0, "s/GB", "s/GB"),
    shown("cpu_per_gb_sender", 1.0, "s/GB", "sender"),
    shown("cpu_per_gb_receiver", 1.0, "s/GB", "receiver"),
    shown("cpu_per_gb_relay", 1.0, "s/GB", "relay"),
    shown("cpu_per_transfer", 1e3, "ms", "CPU ms"),
    shown("memory", MIB, "MiB", "MiB"),
    shown("memory_sender", MIB, "MiB", "sender MiB"),
    shown("memory_receiver", MIB, "MiB", "receiver MiB"),
    shown("memory_relay", MIB, "MiB", "relay MiB"),
    shown("memory_per_connection", KIB, "KiB", "server KiB"),
    shown("memory_per_connection_client", KIB, "KiB", "client KiB"),
    shown("memory_per_connection_front", KIB, "KiB", "front KiB"),
    shown("memory_per_connection_kernel", KIB, "KiB", "kernel KiB"),
    shown("cpu_per_op", US, "us", "CPU us"),
    shown("cpu_per_op_client", US, "us", "client us"),
    shown("cpu_per_op_server", US, "us", "server us"),
    shown("cpu_per_op_front", US, "us", "front us"),
    shown("latency_p50", US, "us", "p50 us"),
    shown("latency_p95", US, "us", "p95 us"),
    shown("latency_p99", US, "us", "p99 us"),
    shown("latency_p99.9", US, "us", "p99.9 us"),
    shown("first_byte_p50", US, "us", "first p50 us"),
    shown("first_byte_p99", US, "us", "first p99 us"),
    shown("service_p99", US, "us", "service p99 us"),
    shown("failed", 100.0, "%", "failed %"),
];

/// Those whose ratio has a column of its own.
pub(crate) const COMPARED: [&str; 7] = [
    "throughput",
    "setup_time",
    "rate",
    "cpu_per_gb",
    "cpu_per_op",
    "latency_p99",
    "memory_per_connection",
];

/// The metric that stands for a row's case in rankings.
pub(crate) fn leading(row: &ResultRow) -> bool {
    if row.workload == FILES {
        return files::leading(row);
    }
    row.metric == "rate"
}

/// What the figures of a workload mean.
pub(crate) fn reading(workload: &str) -> &'static str {
    if workload == FILES { files::READING } else { READING }
}

/// A figure of a row, scaled; a percentile that falls among failures has no number.
pub(crate) fn number(row: &ResultRow, scale: f64) -> String {
    if row.median.get() == f64::INFINITY {
        return ">2s".to_owned();
    }
    sig3_or(row.median.get() * scale, "?")
}

/// One case.
pub(crate) struct Family<'a> {
    pub(crate) title: String,
    /// The same in a few words.
    pub(crate) short: String,
    rows: Vec<&'a ResultRow>,
}

impl<'a> Family<'a> {
    /// The row of a subject.
    pub(crate) fn row(&self, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        let mut rows = self.rows.iter().copied();
        rows.find(|row| row.subject == subject && row.metric == metric)
    }

    /// The metrics that the case has.
    pub(crate) fn shown(&self) -> impl Iterator<Item = Shown> {
        let has = |shown: &Shown| self.rows.iter().any(|row| row.metric == shown.metric);
        SHOWN.into_iter().filter(has)
    }

    /// Those of `subjects` that have any row, in that order.
    pub(crate) fn subjects<'s>(&self, subjects: &[&'s str]) -> Vec<&'s str> {
        let has = |name: &&str| self.rows.iter().any(|row| row.subject == *name);
        subjects.iter().copied().filter(has).collect()
    }
}

/// The cases of a workload, in the order in which they stand.
pub(crate) fn families<'a>(run: &'a RunResult, workload: &str) -> Vec<Family<'a>> {
    let mut places = BTreeMap::new();
    let mut families: Vec<Family<'a>> = Vec::new();
    for row in run.results.iter().filter(|row| row.workload == workload) {
        let place = *places.entry(row.case.canonical()).or_insert(families.len());
        if place == families.len() {
            families.push(Family {
                title: title(row),
                short: case(row),
                rows: Vec::new(),
            });
        }
        families[place].rows.push(row);
    }
    families
}

/// `Requests on kept connections, vless-tcp-tls, 64 connections, closed loop`.
fn title(row: &ResultRow) -> String {
    if row.workload == FILES {
        return files::title(row);
    }
    let text = |name| clean(row.case.text(name).unwrap_or_default());
    let what = match text("mode").as_str() {
        "keep" => "Requests on kept connections".to_owned(),
        "close" => "Requests, each on its own connection".to_owned(),
        "flow" => "Short connections".to_owned(),
        "flow-pq" => "Short connections with larger handshakes".to_owned(),
        "hold" => "Idle connections, memory of each".to_owned(),
        other => other.to_owned(),
    };
    let count = row.case.int("connections").unwrap_or(0);
    let load = match text("load").as_str() {
        "idle" => String::new(),
        "closed" => ", closed loop".to_owned(),
        load => match load.strip_prefix("open-") {
            Some(percent) => format!(", open loop at {percent} % of the slowest ceiling"),
            None => format!(", {load}"),
        },
    };
    format!("{what}: {}, {count} connections{load}", text("stack"))
}

/// A case in a few words: `keep vless-tcp-tls`, `keep vless-tcp-tls open-50`.
pub(crate) fn case(row: &ResultRow) -> String {
    if row.workload == FILES {
        return files::case(row);
    }
    let text = |name| clean(row.case.text(name).unwrap_or_default());
    let mut words = format!("{} {}", text("mode"), text("stack"));
    let load = text("load");
    if !matches!(load.as_str(), "closed" | "idle") {
        words.push_str(&format!(" {load}"));
    }
    words
}

/// What the figures mean, before them.
const READING: &str = "Generator, programs and server share this machine and its loopback: no network, and \
                                  CPU that one takes is lost to the others. CPU and latency are a request or connection; \
                                  direct is the generator straight to the server.";

/// The answer of a run without ciphers: our engine in the case that leads the run.
pub(crate) fn headline(run: &RunResult) -> Option<Headline> {
    let leads = |row: &&ResultRow| {
        LOADS.contains(&row.workload.as_str())
            && row.workload != FILES
            && row.subject == OURS
            && matches!(row.metric.as_str(), "rate" | "memory_per_connection")
    };
    let rank = |row: &&ResultRow| {
        let mode = row.case.text("mode");
        (
            row.metric == "rate",
            mode == Some("keep"),
            row.case.text("stack") == Some("vless-tcp-tls"),
        )
    };
    let row = run.results.iter().filter(leads).max_by_key(rank)?;
    let of = |metric: &str| {
        let mut rows = run.results.iter();
        rows.find(|other| other.case == row.case && other.subject == OURS && other.metric == metric)
    };
    let figure = |metric: &str, scale: f64| of(metric).map(|row| number(row, scale));
    let what = match row.workload.as_str() {
        "requests" => "requests",
        _ => "short connections",
    };
    let mut answer = format!("{OURS} serves {} {what} a second ({}).", number(row, 1.0), case(row));
    if row.metric != "rate" {
        let each = number(row, KIB);
        answer = format!(
            "{OURS} holds an idle connection in {each} KiB of its server ({}).",
            case(row)
        );
    }
    let parts = [
        figure("latency_p99", US).map(|us| format!("99 % of them within {us} us.")),
        figure("cpu_per_op", US).map(|us| format!("{us} us of CPU each, client and server together.")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut headline = Headline {
        answer,
        detail: parts.join(" "),
        which: clean(row.case.text("stack").unwrap_or("?")),
        which_note: "the case that leads this run".to_owned(),
        lead: "not known".to_owned(),
        lead_note: "nothing to compare".to_owned(),
        sure: "not known".to_owned(),
        sure_note: rounds_note(run),
    };
    if let Some(speed) = speed(row) {
        headline.lead = times(speed.estimate);
        headline.lead_note = format!("as good as {}", clean(speed.to));
        headline.sure = verdict(speed.verdict).2.to_owned();
    }
    Some(headline)
}
