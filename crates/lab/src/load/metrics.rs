//! How the windows of load are read.

use crate::measure::cpu::Method;
use crate::result::{Case, Window};
use crate::stats::Better;
use crate::workload::rows::Metric;

const RATE: Metric = Metric {
    name: "rate",
    unit: "1/s",
    better: Better::Higher,
    value: |window, s| window.ops as f64 / s,
    method: None,
    related: true,
};

/// A metric that the cell itself works out; less is better.
macro_rules! figure {
    ($name:literal, $unit:literal, $method:ident) => {
        Metric {
            name: $name,
            unit: $unit,
            better: Better::Lower,
            value: |window, _| figure(window, $name),
            method: Some(Method::$method),
            related: true,
        }
    };
}

fn figure(window: &Window, name: &str) -> f64 {
    window.figures.get(name).map_or(f64::NAN, |value| value.get())
}

const P50: Metric = figure!("latency_p50", "s", Wall);
const P95: Metric = figure!("latency_p95", "s", Wall);
const P99: Metric = figure!("latency_p99", "s", Wall);
const P999: Metric = figure!("latency_p99.9", "s", Wall);
const MAX: Metric = figure!("latency_max", "s", Wall);
const FIRST50: Metric = figure!("first_byte_p50", "s", Wall);
const FIRST95: Metric = figure!("first_byte_p95", "s", Wall);
const FIRST99: Metric = figure!("first_byte_p99", "s", Wall);
const SERVICE50: Metric = figure!("service_p50", "s", Wall);
const SERVICE99: Metric = figure!("service_p99", "s", Wall);
const CPU: Metric = figure!("cpu_per_op", "s/op", Process);
const CPU_CLIENT: Metric = figure!("cpu_per_op_client", "s/op", Process);
const CPU_SERVER: Metric = figure!("cpu_per_op_server", "s/op", Process);
const CPU_FRONT: Metric = figure!("cpu_per_op_front", "s/op", Process);
const FAILED: Metric = figure!("failed", "1", Wall);

const REQUESTS_CLOSED: [Metric; 11] = [
    RATE, P50, P95, P99, P999, MAX, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED,
];
const REQUESTS_OPEN: [Metric; 12] = [
    P99, P50, P95, P999, MAX, SERVICE50, SERVICE99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED,
];
const FLOWS_CLOSED: [Metric; 14] = [
    RATE, P50, P95, P99, P999, MAX, FIRST50, FIRST95, FIRST99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED,
];
const FLOWS_OPEN: [Metric; 13] = [
    P99, P50, P95, P999, MAX, FIRST50, FIRST95, FIRST99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED,
];
const IDLE: [Metric; 4] = [
    figure!("memory_per_connection", "B", Wall),
    figure!("memory_per_connection_client", "B", Wall),
    figure!("memory_per_connection_front", "B", Wall),
    figure!("memory_per_connection_kernel", "B", Wall),
];

/// Metrics of a case of `requests`.
pub(crate) fn requests(case: &Case) -> &'static [Metric] {
    match case.text("load") {
        Some("closed") => &REQUESTS_CLOSED,
        _ => &REQUESTS_OPEN,
    }
}

/// Metrics of a case of `flows`.
pub(crate) fn flows(case: &Case) -> &'static [Metric] {
    match case.text("load") {
        Some("closed") => &FLOWS_CLOSED,
        Some("idle") => &IDLE,
        _ => &FLOWS_OPEN,
    }
}
