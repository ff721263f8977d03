//! How the windows of load are read.

use crate::measure::cpu::Method;
use crate::result::Case;
use crate::transports::FORGEABLE;
use crate::workload::metric::{self, Metric};

const RATE: Metric = metric::RATE.related();

/// A figure by the wall.
const fn wall(name: &'static str, unit: &'static str) -> Metric {
    Metric::lower(name, unit).by(Method::Wall).related()
}

/// CPU time for each exchange.
const fn cpu(name: &'static str) -> Metric {
    Metric::lower(name, "s/op").by(Method::Process).related()
}

/// Latencies of exchanges from their intended start, to the first byte of the answer, and from when they were sent.
pub(crate) const LATENCY: &str = "latency";
pub(crate) const FIRST_BYTE: &str = "first_byte";
pub(crate) const SERVICE: &str = "service";

const P50: Metric = wall("latency_p50", "s").percentile(LATENCY, 0.5);
const P95: Metric = wall("latency_p95", "s").percentile(LATENCY, 0.95);
const P99: Metric = wall("latency_p99", "s").percentile(LATENCY, 0.99);
const P999: Metric = wall("latency_p99.9", "s").percentile(LATENCY, 0.999);
const MAX: Metric = wall("latency_max", "s").percentile(LATENCY, 1.0);
const FIRST50: Metric = wall("first_byte_p50", "s").percentile(FIRST_BYTE, 0.5);
const FIRST95: Metric = wall("first_byte_p95", "s").percentile(FIRST_BYTE, 0.95);
const FIRST99: Metric = wall("first_byte_p99", "s").percentile(FIRST_BYTE, 0.99);
const SERVICE50: Metric = wall("service_p50", "s").percentile(SERVICE, 0.5);
const SERVICE99: Metric = wall("service_p99", "s").percentile(SERVICE, 0.99);
const CPU: Metric = cpu("cpu_per_op");
const CPU_CLIENT: Metric = cpu("cpu_per_op_client");
const CPU_SERVER: Metric = cpu("cpu_per_op_server");
const CPU_FRONT: Metric = cpu("cpu_per_op_front");
const FAILED: Metric = wall("failed", "1");
const FORGED: Metric = Metric::lower(FORGEABLE, "1");

const REQUESTS_CLOSED: [Metric; 12] = [
    RATE, P50, P95, P99, P999, MAX, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED, FORGED,
];
const REQUESTS_OPEN: [Metric; 13] = [
    P99, P50, P95, P999, MAX, SERVICE50, SERVICE99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED, FORGED,
];
const FLOWS_CLOSED: [Metric; 15] = [
    RATE, P50, P95, P99, P999, MAX, FIRST50, FIRST95, FIRST99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED, FORGED,
];
const FLOWS_OPEN: [Metric; 14] = [
    P99, P50, P95, P999, MAX, FIRST50, FIRST95, FIRST99, CPU, CPU_CLIENT, CPU_SERVER, CPU_FRONT, FAILED, FORGED,
];
const IDLE: [Metric; 5] = [
    wall("memory_per_connection", "B"),
    wall("memory_per_connection_client", "B"),
    wall("memory_per_connection_front", "B"),
    wall("memory_per_connection_kernel", "B"),
    FORGED,
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
