//! One subject against another in the same rounds.

use serde::Serialize;

use super::{
    Better, Interval, MAD_TO_SIGMA, MIN_INTERVAL_ROUNDS, MetricKind, Summary, ends, hodges_lehmann, mad,
    signed_rank_interval,
};
use crate::result::{Num, Ratio};

/// The difference below which a run without intervals names no winner.
pub const QUICK_MARGIN: f64 = 0.20;

/// Rounds below which a plain range names no winner: two rounds agree by chance too often.
pub const MIN_RANGE_ROUNDS: usize = 3;

/// Who won.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Better than the other by more than the margin.
    Faster,
    /// Worse than the other by more than the margin.
    Slower,
    /// No difference, and one as large as the margin would have been seen.
    Same,
    /// Cannot be told from these rounds.
    Unknown,
}

impl Verdict {
    /// The text of the `verdict` field.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Unknown => "unknown",
        }
    }
}

/// How strict a verdict is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Fraction that the whole interval must exceed, in either direction.
    pub margin: f64,
    /// False for the quick profile: the range instead of an interval, and no winner within [`QUICK_MARGIN`].
    pub intervals: bool,
}

impl Rules {
    /// The rules for the metric called `name` in a run with intervals: [`MetricKind::margin`].
    pub fn of(name: &str) -> Self {
        Rules {
            margin: MetricKind::of(name).margin(),
            intervals: true,
        }
    }

    /// The same rules for a quick run.
    #[must_use]
    pub const fn without_intervals(self) -> Self {
        Rules {
            intervals: false,
            ..self
        }
    }
}

/// The logarithm of `ours` over `theirs`, paired by index, which is the round.
///
/// A pair where one side has no value (NaN, or the shorter list ended) is left out. `None` when a pair has no
/// meaningful ratio: a negative value, or both zero, or both infinite; leaving such a pair out could flatter a side.
pub fn log_ratios(ours: &[f64], theirs: &[f64]) -> Option<Vec<f64>> {
    let pairs = ours.iter().zip(theirs).filter(|(a, b)| !a.is_nan() && !b.is_nan());
    pairs
        .map(|(a, b)| {
            // The difference of logarithms, because the quotient of two doubles can overflow. The logarithm of zero is
            // -inf, of a negative number NaN.
            let difference = if a == b && *a > 0.0 && a.is_finite() {
                0.0
            } else {
                a.ln() - b.ln()
            };
            (!difference.is_nan()).then_some(difference)
        })
        .collect()
}

/// The smallest effect that `log_ratios` would show four times in five, as a fraction: about 3.5 s / sqrt(n) with s
/// the robust standard deviation, 1.4826 times the median absolute deviation.
///
/// A rule of thumb (a simulation gave 1.4 s, 1.2 s and 0.85 s at 7, 9 and 15 rounds, the rule 1.3, 1.2 and 0.9), and
/// optimistic below six rounds. `None` below two values or without a finite deviation.
pub fn smallest_detectable(log_ratios: &[f64]) -> Option<f64> {
    let n = log_ratios.len();
    if n < 2 {
        return None;
    }
    let effect = 3.5 * MAD_TO_SIGMA * mad(log_ratios)? / (n as f64).sqrt();
    effect.is_finite().then(|| effect.exp_m1())
}

/// The standing of `ours` against `theirs`, the subject called `to`: paired by round, computed on logarithms.
///
/// From six common rounds on the interval is the exact signed-rank one; below, and for rules without intervals, it is
/// the plain range (`how: range`, `level: 0`). Ends and estimate are NaN where they are not known: no common round, or
/// a pair without a ratio (see [`log_ratios`]).
///
/// The verdict: `faster` or `slower` when the whole interval lies beyond the margin, counted alike in both directions
/// (a factor of 1 + margin), so that exchanging the subjects exchanges the verdicts. A range must lie beyond
/// [`QUICK_MARGIN`] and have three rounds. `same` when the interval lies inside the margin, or the estimate does and
/// the smallest detectable effect is within the margin too. Everything else is `unknown`.
pub fn ratio(to: &str, ours: &[f64], theirs: &[f64], better: Better, rules: Rules) -> Ratio {
    let unknown = |logs: Option<&[f64]>| {
        let mde = logs.and_then(smallest_detectable);
        assemble(to, [f64::NAN; 3], 0.0, "range", mde, Verdict::Unknown)
    };
    let Some(logs) = log_ratios(ours, theirs) else {
        return unknown(None);
    };
    let Some(estimate) = hodges_lehmann(&logs) else {
        return unknown(Some(&logs));
    };
    let mde = smallest_detectable(&logs);
    let interval = if rules.intervals && logs.len() >= MIN_INTERVAL_ROUNDS {
        signed_rank_interval(&logs)
    } else {
        None
    };
    match interval {
        Some(Interval { low, high, level }) => {
            let logs = [estimate, low, high];
            let verdict = verdict(better, logs, mde, rules.margin);
            assemble(to, logs, level, "signed-rank", mde, verdict)
        }
        None => {
            let (low, high) = ends(logs.iter().copied());
            let winner = winner(better, low, high, rules.margin.max(QUICK_MARGIN));
            let verdict = winner
                .filter(|_| logs.len() >= MIN_RANGE_ROUNDS)
                .unwrap_or(Verdict::Unknown);
            assemble(to, [estimate, low, high], 0.0, "range", mde, verdict)
        }
    }
}

/// The standing of `ours` against `theirs`, the subject called `to`, where no rounds pair them: the ratio of their medians,
/// from least over most to most over least. It is a range, and judged like that of [`ratio`].
pub fn unpaired(to: &str, ours: &[f64], theirs: &[f64], better: Better, rules: Rules) -> Ratio {
    let (a, b) = (Summary::range(ours), Summary::range(theirs));
    let logs = log_ratios(&[a.median, a.low, a.high], &[b.median, b.high, b.low]);
    let Some(&[estimate, low, high]) = logs.as_deref() else {
        return assemble(to, [f64::NAN; 3], 0.0, "range", None, Verdict::Unknown);
    };
    let verdict = winner(better, low, high, rules.margin.max(QUICK_MARGIN))
        .filter(|_| a.n.min(b.n) >= MIN_RANGE_ROUNDS)
        .unwrap_or(Verdict::Unknown);
    assemble(to, [estimate, low, high], 0.0, "range", None, verdict)
}

/// Who wins by a ratio whose whole interval or range lies beyond [`QUICK_MARGIN`]; nobody by another.
pub(crate) fn far_apart(better: Better, ratio: &Ratio) -> Verdict {
    let [low, high] = [&ratio.low, &ratio.high].map(|end| end.get().ln());
    winner(better, low, high, QUICK_MARGIN).unwrap_or(Verdict::Unknown)
}

fn assemble(to: &str, logs: [f64; 3], level: f64, how: &str, mde: Option<f64>, verdict: Verdict) -> Ratio {
    let [estimate, low, high] = logs.map(|log| Num(log.exp()));
    let mde = Num(mde.unwrap_or(f64::NAN));
    let verdict = verdict.as_str().to_owned();
    Ratio {
        to: to.to_owned(),
        estimate,
        low,
        high,
        level,
        how: how.to_owned(),
        mde,
        verdict,
    }
}

fn winner(better: Better, low: f64, high: f64, margin: f64) -> Option<Verdict> {
    let margin = margin.ln_1p();
    let (a, b) = (better.goodness(low), better.goodness(high));
    if a > margin && b > margin {
        Some(Verdict::Faster)
    } else if a < -margin && b < -margin {
        Some(Verdict::Slower)
    } else {
        None
    }
}

fn verdict(better: Better, [estimate, low, high]: [f64; 3], mde: Option<f64>, margin: f64) -> Verdict {
    if let Some(winner) = winner(better, low, high, margin) {
        return winner;
    }
    let inside = |log: f64| log.abs() <= margin.ln_1p();
    let sharp = mde.is_some_and(|mde| mde <= margin);
    if (inside(low) && inside(high)) || (inside(estimate) && sharp) {
        Verdict::Same
    } else {
        Verdict::Unknown
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_common_rounds_there_is_a_range() {
        let rules = Rules::of("throughput");
        let found = |ours: &[f64], theirs: &[f64]| unpaired("b", ours, theirs, Better::Higher, rules);
        let apart = found(&[2.0, f64::NAN, 3.0, 4.0], &[1.0, 1.0, 1.25]);
        let ends = [apart.estimate, apart.low, apart.high].map(|value| value.get());
        for (end, wanted) in ends.into_iter().zip([3.0, 1.6, 4.0]) {
            assert!((end - wanted).abs() < 1e-12, "{ends:?}");
        }
        assert_eq!(apart.how.as_str(), "range");
        assert_eq!(apart.level, 0.0);
        assert_eq!(apart.verdict.as_str(), "faster");
        assert_eq!(found(&[1.0; 9], &[1.1; 9]).verdict, "unknown", "within 20 %");
        assert_eq!(found(&[2.0; 9], &[1.0; 2]).verdict, "unknown", "two rounds");
        let lower = unpaired("b", &[2.0; 3], &[1.0; 3], Better::Lower, rules);
        assert_eq!(lower.verdict, "slower");
        for odd in [&[] as &[f64], &[f64::NAN], &[-1.0, 1.0, 2.0], &[0.0; 3]] {
            assert!(found(odd, &[0.0; 3]).estimate.get().is_nan(), "{odd:?}");
        }
    }
    use crate::stats::SplitMix64;

    fn standard(ours: &[f64], theirs: &[f64]) -> Ratio {
        ratio("peer", ours, theirs, Better::Higher, Rules::of("throughput"))
    }

    /// Nine rounds around `centre` with a spread of about one per cent.
    fn nine(centre: f64) -> Vec<f64> {
        [0.0, 0.4, -0.6, 0.9, -0.3, 0.2, -1.0, 0.7, -0.1]
            .iter()
            .map(|part| centre * (1.0 + part / 100.0))
            .collect()
    }

    #[test]
    fn a_clear_winner_has_an_exact_interval() {
        let found = standard(&nine(110.0), &[100.0; 9]);
        assert_eq!(found.to.as_str(), "peer");
        assert_eq!(found.how.as_str(), "signed-rank");
        assert_eq!(found.verdict.as_str(), "faster");
        assert_eq!(found.level, 1.0 - 20.0 / 512.0);
        assert!((found.estimate.get() - 1.1).abs() < 0.005, "{found:?}");
        assert!(found.low.get() > 1.08 && found.high.get() < 1.12, "{found:?}");
        assert!(found.mde.get() > 0.005 && found.mde.get() < 0.03, "{found:?}");
        let rules = Rules::of("time_per_op");
        let slower = ratio("peer", &nine(110.0), &[100.0; 9], Better::Lower, rules);
        assert_eq!(slower.verdict, "slower");
    }

    #[test]
    fn ties_are_same_only_when_sharp() {
        let steady: Vec<f64> = nine(100.0).iter().map(|value| 100.0 + (value - 100.0) / 10.0).collect();
        assert_eq!(standard(&steady, &[100.0; 9]).verdict, "same");
        assert_eq!(standard(&[100.0; 9], &[100.0; 9]).verdict, "same");
        let wide: Vec<f64> = nine(100.0).iter().map(|value| 100.0 + (value - 100.0) * 5.0).collect();
        assert_eq!(standard(&wide, &[100.0; 9]).verdict, "unknown");
    }

    #[test]
    fn margins_by_metric() {
        let ours: Vec<f64> = nine(103.0).iter().map(|value| 103.0 + (value - 103.0) / 20.0).collect();
        let verdict = |metric| ratio("peer", &ours, &[100.0; 9], Better::Higher, Rules::of(metric)).verdict;
        assert_eq!(verdict("throughput"), "faster");
        assert_eq!(verdict("cpu_per_op"), "faster");
        assert_eq!(verdict("latency_p99"), "same");
    }

    #[test]
    fn quick_runs_have_ranges_and_few_winners() {
        let rules = Rules::of("throughput").without_intervals();
        let quick = |ours: &[f64], theirs: &[f64]| ratio("peer", ours, theirs, Better::Higher, rules);
        let clear = quick(&[130.0, 128.0, 131.0, 129.0], &[100.0; 4]);
        assert_eq!(clear.how.as_str(), "range");
        assert_eq!(clear.level, 0.0);
        assert_eq!(clear.verdict.as_str(), "faster");
        assert!((clear.low.get() - 1.28).abs() < 1e-12 && (clear.high.get() - 1.31).abs() < 1e-12);
        assert_eq!(quick(&[119.0; 4], &[100.0; 4]).verdict, "unknown", "under 20 %");
        let one = quick(&[119.0, 140.0, 140.0], &[100.0; 3]);
        assert_eq!(one.verdict, "unknown", "one round under 20 %");
        assert_eq!(quick(&[100.0; 9], &[100.0; 9]).how, "range", "however many rounds");
        assert_eq!(quick(&[200.0; 2], &[100.0; 2]).verdict, "unknown", "two rounds");
        let five = standard(&[130.0; 5], &[100.0; 5]);
        assert_eq!(five.how, "range", "five rounds are too few for an interval");
    }

    #[test]
    fn what_has_no_ratio_is_not_known() {
        let unknown = |ours: &[f64], theirs: &[f64]| {
            let found = standard(ours, theirs);
            assert_eq!(found.verdict, "unknown", "{ours:?} {theirs:?}");
            assert!(found.estimate.get().is_nan() && found.low.get().is_nan(), "{found:?}");
        };
        unknown(&[], &[]);
        unknown(&[1.0], &[]);
        unknown(&[f64::NAN; 9], &[1.0; 9]);
        unknown(&[0.0; 9], &[0.0; 9]);
        unknown(&[-1.0; 9], &[1.0; 9]);
        unknown(&[f64::INFINITY; 9], &[f64::INFINITY; 9]);
        unknown(&[0.0, f64::INFINITY, 1.0, 1.0, 1.0, 1.0], &[1.0; 6]);
        let dead = standard(&[0.0; 9], &[1.0; 9]);
        assert_eq!((dead.estimate.get(), dead.verdict.as_str()), (0.0, "slower"));
        assert!(dead.mde.get().is_nan());
        let missing = standard(&[2.0, f64::NAN, 2.0, 2.0], &[1.0, 1.0, f64::NAN, 1.0]);
        assert_eq!(missing.estimate.get(), 2.0, "rounds stay paired");
        assert_eq!(
            log_ratios(&[1.0, f64::NAN, 3.0], &[1.0, 2.0, 3.0, 4.0]),
            Some(vec![0.0, 0.0])
        );
    }

    #[test]
    fn smallest_effects() {
        assert_eq!(smallest_detectable(&[]), None);
        assert_eq!(smallest_detectable(&[0.1]), None);
        assert_eq!(smallest_detectable(&[0.1; 4]), Some(0.0));
        let logs = [-0.02, -0.01, 0.0, 0.01, 0.02, 0.01, -0.01, 0.03, -0.03];
        let expected = (3.5 * MAD_TO_SIGMA * 0.01 / 3.0_f64).exp_m1();
        assert!((smallest_detectable(&logs).unwrap() - expected).abs() < 1e-12);
        assert_eq!(smallest_detectable(&[f64::INFINITY; 6]), None);
    }

    #[test]
    fn equal_subjects_seldom_win() {
        // Nine rounds at 2 % noise, one round in twenty three times as noisy, both subjects alike: the interval misses
        // 1 about as often as it says, and the margin removes nearly all of those.
        let mut random = SplitMix64::new(2_024);
        let mut uniform = move || random.next_u64() as f64 / u64::MAX as f64;
        let mut value = || {
            let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            100.0 + 2.0 * normal * if uniform() < 0.05 { 3.0 } else { 1.0 }
        };
        let (mut missed, mut won) = (0, 0);
        for _ in 0..4_000 {
            let rounds: Vec<(f64, f64)> = (0..9).map(|_| (value(), value())).collect();
            let (ours, theirs): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let found = standard(&ours, &theirs);
            missed += u32::from(found.low.get() > 1.0 || found.high.get() < 1.0);
            won += u32::from(found.verdict == "faster" || found.verdict == "slower");
        }
        // Expected 156 (3.9 %) with a standard deviation of 12.
        assert!((96..216).contains(&missed), "{missed}");
        assert!(won < 40, "{won}");
    }

    proptest! {
        #[test]
        fn exchanging_subjects_exchanges_verdicts(
            ours in proptest::collection::vec(50.0..150.0_f64, 3..16),
            factor in 0.7..1.4_f64,
        ) {
            let theirs: Vec<f64> = ours.iter().rev().map(|value| (value + 900.0) / 10.0 * factor).collect();
            let forth = standard(&ours, &theirs);
            let back = standard(&theirs, &ours);
            prop_assert!((forth.estimate.get() * back.estimate.get() - 1.0).abs() < 1e-9);
            let opposite = match forth.verdict.as_str() {
                "faster" => "slower",
                "slower" => "faster",
                other => other,
            };
            prop_assert_eq!(opposite, back.verdict.as_str());
        }

        #[test]
        fn nothing_panics(
            ours in proptest::collection::vec(proptest::num::f64::ANY, 0..12),
            theirs in proptest::collection::vec(proptest::num::f64::ANY, 0..12),
        ) {
            let found = standard(&ours, &theirs);
            if !found.estimate.get().is_nan() {
                prop_assert!(found.low <= found.estimate && found.estimate <= found.high, "{:?}", found);
            }
        }
    }
}
