//! Why there is no trend.

use std::fmt;

use crate::format::plain;

/// Cases or metrics that an error names at most.
const NAMED: usize = 12;

/// Characters of each that it shows at most.
const MOST_SHOWN: usize = 200;

/// Why there is no trend. All are faults of the question.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TrendError {
    /// No run has such a case; these the newest run of the workload has.
    NoCase(Vec<String>),
    /// Several cases fit.
    SeveralCases(Vec<String>),
    /// The case has no such metric; these it has.
    NoMetric(Vec<String>),
    /// A row says neither that more nor that less is better.
    Malformed(String),
}

impl fmt::Display for TrendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &[String]| {
            let first = names.iter().take(NAMED).map(|name| format!("\n  {}", shown(name)));
            let more = names.len().saturating_sub(NAMED);
            let more = (more > 0).then(|| format!("\n  and {more} more"));
            first.chain(more).collect::<String>()
        };
        match self {
            TrendError::NoCase(names) if names.is_empty() => {
                f.write_str("no kept run that fits has figures of this workload and subject")
            }
            TrendError::NoCase(names) => write!(f, "no kept run has such a case; these there are:{}", list(names)),
            TrendError::SeveralCases(names) => write!(f, "say which case is meant:{}", list(names)),
            TrendError::NoMetric(names) => write!(f, "the case has no such metric; these it has:{}", list(names)),
            TrendError::Malformed(what) => write!(f, "a kept result contradicts the format: {}", shown(what)),
        }
    }
}

/// Text of a result, which may come from anywhere, for a terminal.
fn shown(text: &str) -> String {
    plain(&text.chars().take(MOST_SHOWN).collect::<String>())
}

impl std::error::Error for TrendError {}
