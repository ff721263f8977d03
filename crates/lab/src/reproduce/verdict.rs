//! How far a published ratio is borne out: one rule for all claims.

use crate::result::Ratio;
use crate::stats;

/// The most that an interval is widened by, and how near to 1 no difference is.
const TOLERANCE: f64 = 0.10;

/// What a measured ratio says of a published one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The same direction, and the published ratio lies in the interval widened by the tolerance.
    Confirmed,
    /// The same direction; the effect here is larger than published.
    Larger,
    /// The same direction; the effect here is smaller than published.
    Smaller,
    /// No difference here, and one as large as the margin would have been seen.
    NoDifference,
    /// The other direction; or, for a claim of no difference, one of more than 10 %.
    Contradicted,
    /// These rounds do not tell the direction.
    NotDecided,
    /// There are no figures for it.
    NotMeasured,
}

impl Verdict {
    /// The word in result files and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Larger => "larger",
            Verdict::Smaller => "smaller",
            Verdict::NoDifference => "no difference",
            Verdict::Contradicted => "contradicted",
            Verdict::NotDecided => "not decided",
            Verdict::NotMeasured => "not measured",
        }
    }

    /// The rule.
    ///
    /// `measured` is a ratio for which more is better, so that `faster` and `slower` in it stand for above and below 1;
    /// they say so only if the whole interval lies beyond the margin of the metric (1 % for rates and times), or, with too
    /// few rounds for an interval, the whole range beyond 20 %. `published` is above 0; 1 stands for a claim that there is
    /// no difference, which an interval bears out that lies within the tolerance, and contradicts if it lies wholly
    /// beyond.
    pub fn of(published: f64, measured: &Ratio) -> Verdict {
        let (estimate, low, high) = (measured.estimate.get(), measured.low.get(), measured.high.get());
        if [estimate, low, high, published]
            .iter()
            .any(|value| value.is_nan() || *value <= 0.0)
        {
            return Verdict::NotDecided;
        }
        let is = |verdict: stats::Verdict| measured.verdict == verdict.as_str();
        let (above, below) = (is(stats::Verdict::Faster), is(stats::Verdict::Slower));
        let wider = 1.0 + tolerance(published);
        if published == 1.0 {
            let beyond = high < 1.0 / wider || wider < low;
            // A range of a few rounds is narrow by chance; it can only show that there is a difference.
            return if measured.level > 0.0 && 1.0 / wider <= low && high <= wider {
                Verdict::Confirmed
            } else if beyond && (above || below) {
                Verdict::Contradicted
            } else {
                Verdict::NotDecided
            };
        }
        if is(stats::Verdict::Same) {
            return Verdict::NoDifference;
        }
        if !above && !below {
            return Verdict::NotDecided;
        }
        if above != (published > 1.0) {
            return Verdict::Contradicted;
        }
        if low / wider <= published && published <= high * wider {
            return Verdict::Confirmed;
        }
        if estimate.ln().abs() > published.ln().abs() {
            Verdict::Larger
        } else {
            Verdict::Smaller
        }
    }
}

/// How far an interval is widened before a published ratio is looked for in it, as a fraction, counted alike in both
/// directions. Published figures are single runs without a spread of their own, hence 10 %; but no more than half of what
/// was published, or a small effect would be confirmed by one of several times its size.
pub(super) fn tolerance(published: f64) -> f64 {
    if published == 1.0 {
        return TOLERANCE;
    }
    (published.ln().abs() / 2.0).exp_m1().min(TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Num;

    fn ratio(low: f64, estimate: f64, high: f64, verdict: &str) -> Ratio {
        Ratio {
            to: "b".to_owned(),
            estimate: Num(estimate),
            low: Num(low),
            high: Num(high),
            level: 0.961,
            how: "signed-rank".to_owned(),
            mde: Num(0.01),
            verdict: verdict.to_owned(),
        }
    }

    #[test]
    fn the_published_ratio_may_lie_at_the_edge_of_the_widened_interval() {
        let found = |published| Verdict::of(published, &ratio(1.50, 1.55, 1.60, "faster"));
        assert_eq!(found(1.58), Verdict::Confirmed);
        assert_eq!(found(1.60 * 1.0999), Verdict::Confirmed);
        assert_eq!(found(1.7601), Verdict::Smaller);
        assert_eq!(found(1.50 / 1.0999), Verdict::Confirmed);
        assert_eq!(found(1.36), Verdict::Larger);
    }

    #[test]
    fn a_small_effect_is_not_confirmed_by_one_of_several_times_its_size() {
        let found =
            |published, low, high| Verdict::of(published, &ratio(low, f64::midpoint(low, high), high, "faster"));
        assert_eq!(found(1.02, 1.105, 1.115), Verdict::Larger);
        assert_eq!(found(1.02, 1.025, 1.029), Verdict::Confirmed);
        assert_eq!(found(1.02, 1.032, 1.035), Verdict::Larger);
        assert_eq!(found(1.0001, 1.011, 1.012), Verdict::Larger);
        assert!((tolerance(1.02) - 0.00995).abs() < 1e-5 && (tolerance(1.0 / 1.02) - 0.00995).abs() < 1e-5);
        assert_eq!([tolerance(3.0), tolerance(0.2), tolerance(1.0)], [0.10; 3]);
    }

    #[test]
    fn below_one_the_effect_counts_downwards() {
        let found = |published| Verdict::of(published, &ratio(0.60, 0.65, 0.70, "slower"));
        assert_eq!(found(0.70), Verdict::Confirmed);
        assert_eq!(found(0.50), Verdict::Smaller);
        assert_eq!(found(0.90), Verdict::Larger);
        assert_eq!(found(1.10), Verdict::Contradicted);
    }

    #[test]
    fn the_direction_comes_before_the_size() {
        let contradicts = ratio(0.97, 0.98, 0.985, "slower");
        assert_eq!(Verdict::of(1.02, &contradicts), Verdict::Contradicted);
        let holds_one = ratio(0.99, 1.05, 1.30, "unknown");
        assert_eq!(Verdict::of(1.05, &holds_one), Verdict::NotDecided);
        let same = ratio(0.999, 1.0, 1.001, "same");
        assert_eq!(Verdict::of(1.18, &same), Verdict::NoDifference);
    }

    #[test]
    fn a_claim_of_no_difference_is_judged_by_the_interval() {
        let found = |low, high, verdict| Verdict::of(1.0, &ratio(low, f64::midpoint(low, high), high, verdict));
        assert_eq!(found(0.999, 1.001, "same"), Verdict::Confirmed);
        assert_eq!(
            found(0.95, 1.09, "unknown"),
            Verdict::Confirmed,
            "it holds 1 and nothing beyond"
        );
        assert_eq!(found(1.02, 1.05, "faster"), Verdict::Confirmed);
        assert_eq!(found(1.05, 1.20, "faster"), Verdict::NotDecided);
        assert_eq!(found(0.80, 1.30, "same"), Verdict::NotDecided, "too wide");
        assert_eq!(found(1.11, 1.20, "faster"), Verdict::Contradicted);
        assert_eq!(found(0.80, 0.90, "slower"), Verdict::Contradicted);
        let range = |low, high, verdict: &str| {
            let measured = Ratio {
                level: 0.0,
                ..ratio(low, f64::midpoint(low, high), high, verdict)
            };
            Verdict::of(1.0, &measured)
        };
        assert_eq!(range(0.999, 1.001, "unknown"), Verdict::NotDecided);
        assert_eq!(range(1.30, 1.40, "faster"), Verdict::Contradicted);
    }

    #[test]
    fn what_is_no_ratio_decides_nothing() {
        for value in [f64::NAN, 0.0, -1.0] {
            assert_eq!(
                Verdict::of(1.1, &ratio(value, value, value, "faster")),
                Verdict::NotDecided
            );
            assert_eq!(Verdict::of(value, &ratio(1.0, 1.1, 1.2, "faster")), Verdict::NotDecided);
        }
        assert_eq!(
            Verdict::of(1.1, &ratio(1.0, 1.1, 1.2, "no such word")),
            Verdict::NotDecided
        );
    }
}
