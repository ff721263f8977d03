//! What is read out of windows, and the metrics that several workloads have.

use crate::measure::cpu::Method;
use crate::result::Window;
use crate::stats::Better;

/// What a metric makes of a window.
#[derive(Clone, Copy)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    value: Value,
    /// The clock behind it, where it is not the one of the window's cost.
    pub(crate) method: Option<Method>,
    /// Whether it has ratios although it is not the first.
    pub(crate) related: bool,
}

#[derive(Clone, Copy)]
enum Value {
    /// The figure of the window that has the metric's name.
    Figure,
    /// Worked out of the window and its cost in seconds.
    Of(fn(&Window, f64) -> f64),
}

impl Metric {
    /// A figure that the cell itself works out; more is better.
    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Metric {
        Metric {
            name,
            unit,
            better: Better::Higher,
            value: Value::Figure,
            method: None,
            related: false,
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
            value: Value::Of(value),
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

    /// What it makes of a window that cost so many seconds; NaN if the window has no such figure.
    pub(crate) fn value(&self, window: &Window, cost: f64) -> f64 {
        match self.value {
            Value::Figure => figure(window, self.name),
            Value::Of(value) => value(window, cost),
        }
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

/// A batch from submission to done.
pub(crate) const LATENCY_P50: Metric = Metric::lower("latency_p50", "s").by(Method::Wall);
pub(crate) const LATENCY_P99: Metric = Metric::lower("latency_p99", "s").by(Method::Wall);

/// The same shared out over its packets.
pub(crate) const PACKET_P50: Metric = Metric::lower("packet_p50", "s/op").by(Method::Wall);
pub(crate) const PACKET_P99: Metric = Metric::lower("packet_p99", "s/op").by(Method::Wall);

/// How full the vector lanes of the cipher and of the authenticator were.
pub(crate) const LANE_USE: Metric = Metric::higher("lane_use", "1");
pub(crate) const LANE_USE_MAC: Metric = Metric::higher("lane_use_mac", "1");
