//! What else is made of the table of metrics: their reference, and the dashboard.

use std::fmt::Write;

use serde_json::{Value, json};

use super::table::{Kind, Metric, SECTIONS, Section};

/// The name of the samples of a metric, without those of a histogram.
fn sample_name(metric: &Metric) -> String {
    match metric.kind {
        Kind::Histogram => format!("{}_bucket", metric.name),
        kind => format!("{}{}", metric.name, kind.suffix()),
    }
}

/// The reference of all metrics, as Markdown.
fn reference() -> String {
    let mut out = String::from(
        "# Metrics\n\n\
         What `/metrics` tells, made from the table that the program itself tells by; `SEALWAY_UPDATE_GOLDEN=1 cargo test -p sealway-proxy \
         pages` writes it anew, and the dashboard in `packaging/grafana/sealway.json` with it. [The guide](../guide/fleet.md) says how \
         to switch it on.\n\n\
         The text is OpenMetrics 1.0.0, as Prometheus reads it. Numbers that only grow begin at 0 when the process does. Labels are \
         tags of the configuration, e-mails of users where that is wanted, and words of this page: nothing that a stranger says.\n",
    );
    for section in SECTIONS {
        let _ = write!(
            out,
            "\n## {}\n\n| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n",
            section.title
        );
        for metric in section.metrics {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let name = match metric.kind {
                Kind::Histogram => metric.name.to_owned(),
                _ => sample_name(metric),
            };
            let _ = writeln!(
                out,
                "| `{name}` | {} | {} | {} |",
                metric.kind.word(),
                labels.join(", "),
                metric.help
            );
        }
    }
    out
}

/// Panels beside each other, and how high they are.
const COLUMNS: usize = 3;
const WIDTH: usize = 24 / COLUMNS;
const HEIGHT: usize = 8;

/// The dashboard of Grafana that shows all metrics that have a title.
fn dashboard() -> Value {
    let mut panels = Vec::new();
    let (mut id, mut y) = (0, 0);
    let mut next = || {
        id += 1;
        id
    };
    for section in SECTIONS {
        panels.push(row(section, next(), y));
        y += 1;
        let shown: Vec<&Metric> = section
            .metrics
            .iter()
            .filter(|metric| !metric.title.is_empty())
            .collect();
        for (at, metric) in shown.iter().enumerate() {
            panels.push(panel(metric, next(), (at % COLUMNS * WIDTH, y + at / COLUMNS * HEIGHT)));
        }
        y += shown.len().div_ceil(COLUMNS) * HEIGHT;
    }
    json!({
        "title": "Sealway",
        "uid": "sealway",
        "tags": ["sealway"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-6h", "to": "now" },
        "templating": { "list": [
            { "name": "source", "label": "Source", "type": "datasource", "query": "prometheus" },
            {
                "name": "instance", "label": "Node", "type": "query", "refresh": 2, "multi": true, "includeAll": true,
                "datasource": { "type": "prometheus", "uid": "${source}" },
                "query": "label_values(sealway_ready, instance)",
            },
        ] },
        "panels": panels,
    })
}

fn row(section: &Section, id: usize, y: usize) -> Value {
    json!({
        "id": id, "type": "row", "title": section.title, "collapsed": false, "panels": [],
        "gridPos": { "x": 0, "y": y, "w": 24, "h": 1 },
    })
}

fn panel(metric: &Metric, id: usize, (x, y): (usize, usize)) -> Value {
    let queries = queries(metric).into_iter().enumerate().map(|(at, (expr, legend))| {
        json!({
            "refId": char::from(b'A' + at as u8).to_string(), "expr": expr, "legendFormat": legend,
            "datasource": { "type": "prometheus", "uid": "${source}" },
        })
    });
    let unit = match (metric.kind, metric.unit()) {
        (Kind::Counter, "bytes") => "Bps",
        (Kind::Counter, "seconds") => "percentunit",
        (Kind::Counter, _) => "cps",
        (_, "bytes") => "bytes",
        (_, "seconds") => "s",
        _ => "short",
    };
    json!({
        "id": id, "type": "timeseries", "title": metric.title, "description": metric.help,
        "datasource": { "type": "prometheus", "uid": "${source}" },
        "gridPos": { "x": x, "y": y, "w": WIDTH, "h": HEIGHT },
        "fieldConfig": { "defaults": { "unit": unit, "min": 0 }, "overrides": [] },
        "targets": queries.collect::<Vec<_>>(),
    })
}

/// Questions to Prometheus, each with what its lines are called.
fn queries(metric: &Metric) -> Vec<(String, String)> {
    let chosen = format!("{}{{instance=~\"$instance\"}}", sample_name(metric));
    // What has no labels of its own is told by node.
    let by = if metric.labels.is_empty() {
        vec!["instance"]
    } else {
        metric.labels.to_vec()
    };
    let legend = by
        .iter()
        .map(|label| format!("{{{{{label}}}}}"))
        .collect::<Vec<_>>()
        .join(" ");
    let by = by.join(", ");
    match metric.kind {
        Kind::Counter => vec![(format!("sum by ({by}) (rate({chosen}[$__rate_interval]))"), legend)],
        Kind::Gauge if metric.name.ends_with("_up") || metric.unit() == "seconds" => {
            vec![(format!("max by ({by}) ({chosen})"), legend)]
        }
        Kind::Gauge | Kind::Info => vec![(format!("sum by ({by}) ({chosen})"), legend)],
        Kind::Histogram => ["0.5", "0.95"]
            .map(|part| {
                let rate = format!("sum by (le, {by}) (rate({chosen}[$__rate_interval]))");
                (
                    format!("histogram_quantile({part}, {rate})"),
                    format!("{legend} {part}"),
                )
            })
            .into(),
    }
}

/// Compares a file of the repository with what the table makes of it, or writes it.
fn kept(name: &str, made: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "{name} is not what the table says; SEALWAY_UPDATE_GOLDEN=1 cargo test -p sealway-proxy pages"
    );
}

#[test]
fn the_reference_is_that_of_the_table() {
    kept("docs/reference/metrics.md", &reference());
}

#[test]
fn the_dashboard_is_that_of_the_table() {
    kept("packaging/grafana/sealway.json", &format!("{:#}\n", dashboard()));
}

#[test]
fn every_metric_is_named_as_the_format_wants_it() {
    let mut seen = std::collections::BTreeSet::new();
    for metric in SECTIONS.iter().flat_map(|section| section.metrics) {
        let name = metric.name;
        assert!(seen.insert(name), "{name} stands twice");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        assert!(
            ["sealway_", "process_"].iter().any(|start| name.starts_with(start)),
            "{name}"
        );
        assert!(
            !name.ends_with("_total") && !name.ends_with("_info"),
            "{name}: its kind says so"
        );
        assert!(
            metric.help.ends_with('.') && !metric.help.contains('|'),
            "{name}: {}",
            metric.help
        );
        assert!(
            !metric.labels.contains(&"le") && !metric.labels.contains(&"instance"),
            "{name}"
        );
    }
}
