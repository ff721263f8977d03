//! What kind of quantity a metric is, because noise and importance differ by kind.

/// Which way is good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Better {
    /// More is better: throughput, rate.
    Higher,
    /// Less is better: time, cost, memory.
    Lower,
}

impl Better {
    /// Reads the `better` field of a result row; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "higher" => Some(Better::Higher),
            "lower" => Some(Better::Lower),
            _ => None,
        }
    }

    /// The text of the `better` field.
    pub const fn as_str(self) -> &'static str {
        match self {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }

    /// The logarithm of a ratio turned so that positive is good.
    pub fn goodness(self, log_ratio: f64) -> f64 {
        match self {
            Better::Higher => log_ratio,
            Better::Lower => -log_ratio,
        }
    }
}

/// Whether subjects and runs are judged by the metric called `name`. All else is shown only, never called best and not
/// compared: the CPUs that a program keeps busy (`cpu_busy_…`), as one that waits less is busier and may be better for it,
/// energy (`energy_per_…`), which is that of whole packages, whoever used it, and cycles (`cycles_per_…`), which say another way
/// what CPU time says, on some machines only.
pub fn is_judged(name: &str) -> bool {
    ["cpu_busy_", "energy_per_", "cycles_per_"]
        .iter()
        .all(|shown| !name.starts_with(shown))
}

/// The kind of a metric, found from its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// Processor time: `cpu_per_op`, `cpu_per_gb`, …
    Cpu,
    /// Counted instructions: `instructions`, `instructions_per_op`, …
    Instructions,
    /// Memory: `memory`, `memory_peak`, …
    Memory,
    /// The tail of a latency distribution, p99 and beyond, and the maximum.
    Tail,
    /// Everything measured by the wall clock: throughput, rate, time per operation, other percentiles.
    Wall,
}

impl MetricKind {
    /// The kind of the metric called `name`; what is not recognised is [`MetricKind::Wall`].
    pub fn of(name: &str) -> Self {
        let mut words = name.split(['_', '-']);
        if words.clone().any(|word| word.starts_with("p99") || word == "max") {
            return MetricKind::Tail;
        }
        match words.next() {
            Some("cpu") => MetricKind::Cpu,
            Some("instructions") => MetricKind::Instructions,
            Some("memory") => MetricKind::Memory,
            _ => MetricKind::Wall,
        }
    }

    /// The difference, as a fraction, that a whole interval must exceed before there is a winner: 2 % for processor
    /// time, 5 % for the tail, 1 % for all else.
    ///
    /// Why not simply an interval that excludes 1: in 4,000 simulated runs of nine rounds with equal subjects, 2 % noise
    /// and stray shocks of three times that, this alone named a winner in 3.9 %, with the 1 % margin in 0.3 %.
    pub const fn margin(self) -> f64 {
        match self {
            MetricKind::Cpu => 0.02,
            MetricKind::Tail => 0.05,
            MetricKind::Instructions | MetricKind::Memory | MetricKind::Wall => 0.01,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_name() {
        let cases = [
            ("throughput", MetricKind::Wall),
            ("time_per_op", MetricKind::Wall),
            ("setup_time", MetricKind::Wall),
            ("latency_p50", MetricKind::Wall),
            ("latency_p95", MetricKind::Wall),
            ("latency_p99", MetricKind::Tail),
            ("latency_p99.9", MetricKind::Tail),
            ("latency_max", MetricKind::Tail),
            ("cpu_per_gb", MetricKind::Cpu),
            ("cpu_per_op", MetricKind::Cpu),
            ("memory", MetricKind::Memory),
            ("memory_peak", MetricKind::Memory),
            ("instructions", MetricKind::Instructions),
            ("", MetricKind::Wall),
        ];
        for (name, kind) in cases {
            assert_eq!(MetricKind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn what_is_only_shown_is_not_judged() {
        for name in [
            "cpu_busy_client",
            "cpu_busy_peak_server",
            "energy_per_byte",
            "energy_per_op",
            "cycles_per_byte",
            "cycles_per_op",
        ] {
            assert!(!is_judged(name), "{name}");
        }
        assert!(is_judged("throughput") && is_judged("cpu_per_gb"));
    }

    #[test]
    fn better_round_trips() {
        for better in [Better::Higher, Better::Lower] {
            assert_eq!(Better::parse(better.as_str()), Some(better));
        }
        assert_eq!(Better::parse("more"), None);
    }
}
