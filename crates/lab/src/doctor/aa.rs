//! One subject against itself.

use serde::Serialize;

use crate::result::Num;
use crate::run::Outcome;

/// Rounds of the check: enough for a 96 % signed-rank interval.
pub const ROUNDS: usize = 9;

/// Names the one subject goes by.
pub const NAMES: [&str; 2] = ["a", "b"];

/// Difference that counts as the lab's own error, as a fraction.
pub const MARGIN: f64 = 0.01;

/// A ratio and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioInterval {
    /// Estimate of the ratio; 1 is no difference.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Coverage, such as 0.961; 0 for a plain range.
    pub level: f64,
}

/// Ratio of the second list to the first with its interval, or `None` when there are too few values.
///
/// Values of equal position are of one round.
pub type Interval<'a> = dyn Fn(&[f64], &[f64]) -> Option<RatioInterval> + 'a;

/// How the check ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AaVerdict {
    /// No difference beyond the margin, and the interval covers 1.
    Sound,
    /// The lab sees a difference where there is none.
    Error,
    /// Too few rounds, or the subject failed.
    Unknown,
}

/// Result of the check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AaCheck {
    /// How it ended.
    pub verdict: AaVerdict,
    /// Rounds in which both names have a value.
    pub rounds: usize,
    /// Ratio of the second name to the first; NaN when not known.
    pub estimate: Num,
    /// Lower end of the interval.
    pub low: Num,
    /// Upper end of the interval.
    pub high: Num,
    /// Coverage of the interval.
    pub level: f64,
    /// The result in words, with the figures.
    pub text: String,
}

/// The visiting order: A B, B A, A B, …
pub fn schedule(rounds: usize) -> Vec<Vec<usize>> {
    (0..rounds)
        .map(|round| if round % 2 == 0 { vec![0, 1] } else { vec![1, 0] })
        .collect()
}

/// Judges two lists of values of the same subject; values of equal position are of one round.
pub fn judge(first: &[f64], second: &[f64], interval: &Interval<'_>) -> AaCheck {
    let rounds = first.len().min(second.len());
    let Some(ratio) = interval(&first[..rounds], &second[..rounds]) else {
        return unknown(
            rounds,
            format!("{rounds} rounds are too few to judge; run the check to its end."),
        );
    };
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let figures = format!(
        "one library measured as two differs by {:+.2} % ({:.1} % interval {:+.2} to {:+.2} %, {rounds} rounds)",
        percent(ratio.estimate),
        ratio.level * 100.0,
        percent(ratio.low),
        percent(ratio.high),
    );
    if ![ratio.estimate, ratio.low, ratio.high]
        .iter()
        .all(|value| value.is_finite())
    {
        return unknown(rounds, "The figures of the check are not numbers.".to_owned());
    }
    // A margin of exactly 1 % must not fail by the rounding of the division.
    let differs = (ratio.estimate - 1.0).abs() > MARGIN + 1e-12;
    let covers = ratio.low <= 1.0 && 1.0 <= ratio.high;
    let (verdict, text) = match (differs, covers) {
        _ if ratio.level <= 0.0 => {
            return unknown(
                rounds,
                format!("{figures}: too few rounds for an interval; run the check to its end."),
            );
        }
        (false, true) => {
            let reach = percent(ratio.high).abs().max(percent(ratio.low).abs());
            (
                AaVerdict::Sound,
                format!("{figures}. Differences under about {reach:.1} % cannot be told apart here."),
            )
        }
        (true, true) => (
            AaVerdict::Error,
            format!("{figures}, which is beyond 1 %: this is the lab's own error here."),
        ),
        (_, false) => (
            AaVerdict::Error,
            format!("{figures}, which is not 0: this is the lab's own error here."),
        ),
    };
    AaCheck {
        verdict,
        rounds,
        estimate: Num(ratio.estimate),
        low: Num(ratio.low),
        high: Num(ratio.high),
        level: ratio.level,
        text,
    }
}

fn unknown(rounds: usize, text: String) -> AaCheck {
    let none = Num(f64::NAN);
    AaCheck {
        verdict: AaVerdict::Unknown,
        rounds,
        estimate: none,
        low: none,
        high: none,
        level: 0.0,
        text,
    }
}

/// Judges the two cells of a run by their rates, paired by round.
pub(super) fn of_outcome(outcome: &Outcome, interval: &Interval<'_>) -> AaCheck {
    if let Some(fault) = outcome.faults.first() {
        return unknown(0, format!("The subject could not be measured: {}.", fault.error));
    }
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for a in outcome.counted(0) {
        if let Some(b) = outcome.counted(1).find(|b| b.round == a.round) {
            first.push(a.ops as f64 / a.wall_s);
            second.push(b.ops as f64 / b.wall_s);
        }
    }
    judge(&first, &second, interval)
}
