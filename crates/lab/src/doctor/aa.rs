//! One subject against itself.

use serde::Serialize;

use crate::result::{Num, Ratio};
use crate::run::Outcome;
use crate::stats::{Better, Rules, ratio};

/// Rounds of the check: enough for a 96 % signed-rank interval.
pub const ROUNDS: usize = 9;

/// Names the one subject goes by.
pub const NAMES: [&str; 2] = ["a", "b"];

/// Difference that counts as the lab's own error, as a fraction.
pub const MARGIN: f64 = 0.01;

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

/// Judges the ratio that a subject has to itself over so many rounds.
pub fn judge(rounds: usize, ratio: &Ratio) -> AaCheck {
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(Num::get);
    if !estimate.is_finite() {
        let text = format!("{rounds} rounds are too few to judge; run the check to its end.");
        return unknown(rounds, text);
    }
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let figures = format!(
        "one library measured as two differs by {:+.2} % ({:.1} % interval {:+.2} to {:+.2} %, {rounds} rounds)",
        percent(estimate),
        ratio.level * 100.0,
        percent(low),
        percent(high),
    );
    if !(low.is_finite() && high.is_finite()) {
        return unknown(rounds, "The figures of the check are not numbers.".to_owned());
    }
    if ratio.level <= 0.0 {
        let text = format!("{figures}: too few rounds for an interval; run the check to its end.");
        return unknown(rounds, text);
    }
    // A margin of exactly 1 % must not fail by the rounding of the division.
    let differs = (estimate - 1.0).abs() > MARGIN + 1e-12;
    let covers = low <= 1.0 && 1.0 <= high;
    let (verdict, text) = match (differs, covers) {
        (false, true) => {
            let reach = percent(high).abs().max(percent(low).abs());
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
        estimate: ratio.estimate,
        low: ratio.low,
        high: ratio.high,
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
pub(super) fn of_outcome(outcome: &Outcome) -> AaCheck {
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
    let rules = Rules::of("throughput");
    judge(first.len(), &ratio(NAMES[0], &second, &first, Better::Higher, rules))
}
