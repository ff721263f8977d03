//! What is read out of windows, and the metrics that several workloads have.

use crate::measure::cpu::Method;
use crate::measure::{cycles, energy};
use crate::result::{Case, Window};
use crate::stats::Better;
use crate::stats::latency::Tail;

/// What a metric makes of a window.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    /// Works it out of a window and its cost in seconds; without it, it is the figure of the window that has its name.
    value: Option<fn(&Window, f64) -> f64>,
    /// The clock behind it, where it is not the one of the window's cost.
    pub(crate) method: Option<Method>,
    /// Whether it has ratios although it is not the first.
    pub(crate) related: bool,
    /// Of which latencies it is a percentile; over several rounds it is that of all their samples.
    pub(crate) percentile: Option<Percentile>,
}

/// A percentile of the latencies of windows.
#[derive(Clone, Copy)]
pub(crate) struct Percentile {
    /// Name of the latencies.
    pub(crate) of: &'static str,
    /// 0 to 1; 1 is the longest.
    pub(crate) q: f64,
    /// Shared out over the packets of a batch.
    pub(crate) each: bool,
}

impl Percentile {
    /// The percentile of all samples of a cell in seconds; `None` where they are too few to tell it.
    pub(crate) fn of_all(&self, tail: &Tail, case: &Case) -> Option<f64> {
        self.share(tail.quantile(self.q)?, case)
    }

    /// That of the samples of one round, however few: a round that stood still has few, and must not drop out for it.
    /// NaN without any.
    pub(crate) fn of_round(&self, tail: &Tail, case: &Case) -> f64 {
        tail.at(self.q)
            .and_then(|value| self.share(value, case))
            .unwrap_or(f64::NAN)
    }

    fn share(&self, seconds: f64, case: &Case) -> Option<f64> {
        if !self.each {
            return Some(seconds);
        }
        let batch = case.int("batch").filter(|batch| *batch > 0)?;
        Some(seconds / batch as f64)
    }
}

impl Metric {
    /// A figure that the cell itself works out; more is better.
    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Metric {
        Metric {
            name,
            unit,
            better: Better::Higher,
            value: None,
            method: None,
            related: false,
            percentile: None,
        }
    }

    /// A figure that the cell itself works out; less is better.
    pub(crate) const fn lower(name: &'static str, unit: &'static str) -> Metric {
        Metric {
            better: Better::Lower,
            ..Metric::higher(name, unit)
        }
    }

    /// Worked out of the window and its cost in seconds instead.
    pub(crate) const fn of(self, value: fn(&Window, f64) -> f64) -> Metric {
        Metric {
            value: Some(value),
            ..self
        }
    }

    /// Read from another clock than the window's cost.
    pub(crate) const fn by(self, method: Method) -> Metric {
        Metric {
            method: Some(method),
            ..self
        }
    }

    /// With ratios also where it is not the first.
    pub(crate) const fn related(self) -> Metric {
        Metric { related: true, ..self }
    }

    /// The percentile `q` of the latencies called `of`.
    pub(crate) const fn percentile(self, of: &'static str, q: f64) -> Metric {
        self.percentile_of(of, q, false)
    }

    const fn percentile_of(self, of: &'static str, q: f64, each: bool) -> Metric {
        Metric {
            percentile: Some(Percentile { of, q, each }),
            ..self
        }
    }

    /// What it makes of a window that cost so many seconds; NaN if the window has no such figure.
    pub(crate) fn value(&self, window: &Window, cost: f64) -> f64 {
        self.value
            .map_or_else(|| figure(window, self.name), |value| value(window, cost))
    }
}

/// A figure that the cell has worked out; NaN if it has not.
pub(crate) fn figure(window: &Window, name: &str) -> f64 {
    window.figures.get(name).map_or(f64::NAN, |value| value.get())
}

/// Operations a second.
pub(crate) const RATE: Metric = Metric::higher("rate", "1/s").of(|window, s| window.ops as f64 / s);

/// Payload bytes a second.
pub(crate) const THROUGHPUT: Metric = Metric::higher("throughput", "B/s").of(|window, s| window.bytes as f64 / s);

/// Seconds an operation.
pub(crate) const CPU_PER_OP: Metric = Metric::lower("cpu_per_op", "s/op").of(|window, s| s / window.ops as f64);

/// Seconds to set something up.
pub(crate) const SETUP_TIME: Metric = Metric::lower("setup_time", "s/op").of(|window, s| s / window.ops as f64);

/// Latencies of batches.
pub(crate) const BATCHES: &str = "batch";

/// A batch from submission to done.
pub(crate) const LATENCY_P50: Metric = wall("latency_p50", "s").percentile(BATCHES, 0.5);
pub(crate) const LATENCY_P99: Metric = wall("latency_p99", "s").percentile(BATCHES, 0.99);

/// The same shared out over its packets.
pub(crate) const PACKET_P50: Metric = wall("packet_p50", "s/op").percentile_of(BATCHES, 0.5, true);
pub(crate) const PACKET_P99: Metric = wall("packet_p99", "s/op").percentile_of(BATCHES, 0.99, true);

const fn wall(name: &'static str, unit: &'static str) -> Metric {
    Metric::lower(name, unit).by(Method::Wall)
}

/// How full the vector lanes of the cipher and of the authenticator were.
pub(crate) const LANE_USE: Metric = Metric::higher("lane_use", "1");
pub(crate) const LANE_USE_MAC: Metric = Metric::higher("lane_use_mac", "1");

/// Joules of the processor packages and cycles of the measuring thread, for each byte.
const PER_BYTE: [Metric; 2] = [
    Metric::lower("energy_per_byte", "J/B")
        .of(|window, _| share(window, energy::FIGURE, window.bytes))
        .by(Method::Package),
    Metric::lower("cycles_per_byte", "cycles/B")
        .of(|window, _| share(window, cycles::FIGURE, window.bytes))
        .by(Method::Counter),
];

/// The same for each operation.
const PER_OP: [Metric; 2] = [
    Metric::lower("energy_per_op", "J/op")
        .of(|window, _| share(window, energy::FIGURE, window.ops))
        .by(Method::Package),
    Metric::lower("cycles_per_op", "cycles/op")
        .of(|window, _| share(window, cycles::FIGURE, window.ops))
        .by(Method::Counter),
];

fn share(window: &Window, name: &str, amount: u64) -> f64 {
    let counted = figure(window, name);
    if amount > 0 { counted / amount as f64 } else { f64::NAN }
}

/// What counters of the machine are shared out over in a case, by what leads it: nothing where that is no work, as the memory
/// of idle connections.
pub(crate) fn counters(metrics: &[Metric]) -> &'static [Metric] {
    match metrics.first().map(|metric| metric.unit) {
        Some("B/s") => &PER_BYTE,
        Some("1/s" | "s/op") => &PER_OP,
        _ => &[],
    }
}
