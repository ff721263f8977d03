//! How far a published ratio is borne out: one rule for all claims.

use crate::result::Ratio;
use crate::stats;

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
    /// The other direction; or, for a claim of no difference, one beyond the tolerance.
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
    /// no difference. `tolerance` is a fraction, counted alike in both directions.
    pub fn of(published: f64, tolerance: f64, measured: &Ratio) -> Verdict {
        let (estimate, low, high) = (measured.estimate.get(), measured.low.get(), measured.high.get());
        let known = [estimate, low, high, published].iter().all(|value| *value > 0.0);
        let is = |verdict: stats::Verdict| measured.verdict == verdict.as_str();
        let above = is(stats::Verdict::Faster);
        let same = is(stats::Verdict::Same);
        if !known || !(above || same || is(stats::Verdict::Slower)) {
            return Verdict::NotDecided;
        }
        let agrees = low / (1.0 + tolerance) <= published && published <= high * (1.0 + tolerance);
        if published == 1.0 {
            return if same || agrees {
                Verdict::Confirmed
            } else {
                Verdict::Contradicted
            };
        }
        if same {
            return Verdict::NoDifference;
        }
        if above != (published > 1.0) {
            return Verdict::Contradicted;
        }
        if agrees {
            return Verdict::Confirmed;
        }
        if estimate.ln().abs() > published.ln().abs() {
            Verdict::Larger
        } else {
            Verdict::Smaller
        }
    }
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
        let found = |published| Verdict::of(published, 0.10, &ratio(1.10, 1.15, 1.20, "faster"));
        assert_eq!(found(1.18), Verdict::Confirmed);
        assert_eq!(found(1.20 * 1.10), Verdict::Confirmed);
        assert_eq!(found(1.3201), Verdict::Smaller);
        assert_eq!(found(1.0001), Verdict::Confirmed, "1.10 / 1.10 is 1");
        assert_eq!(
            Verdict::of(1.05, 0.01, &ratio(1.10, 1.15, 1.20, "faster")),
            Verdict::Larger
        );
    }

    #[test]
    fn below_one_the_effect_counts_downwards() {
        let found = |published| Verdict::of(published, 0.05, &ratio(0.60, 0.65, 0.70, "slower"));
        assert_eq!(found(0.70), Verdict::Confirmed);
        assert_eq!(found(0.50), Verdict::Smaller);
        assert_eq!(found(0.90), Verdict::Larger);
        assert_eq!(found(1.10), Verdict::Contradicted);
    }

    #[test]
    fn the_direction_comes_before_the_size() {
        let contradicts = ratio(0.97, 0.98, 0.985, "slower");
        assert_eq!(Verdict::of(1.02, 0.10, &contradicts), Verdict::Contradicted);
        let holds_one = ratio(0.99, 1.05, 1.30, "unknown");
        assert_eq!(Verdict::of(1.05, 0.10, &holds_one), Verdict::NotDecided);
        let same = ratio(0.999, 1.0, 1.001, "same");
        assert_eq!(Verdict::of(1.18, 0.10, &same), Verdict::NoDifference);
    }

    #[test]
    fn a_claim_of_no_difference_is_judged_by_the_tolerance() {
        let found = |low, high, verdict| Verdict::of(1.0, 0.10, &ratio(low, f64::midpoint(low, high), high, verdict));
        assert_eq!(found(0.999, 1.001, "same"), Verdict::Confirmed);
        assert_eq!(found(1.05, 1.20, "faster"), Verdict::Confirmed);
        assert_eq!(found(1.11, 1.20, "faster"), Verdict::Contradicted);
        assert_eq!(found(0.80, 0.90, "slower"), Verdict::Contradicted);
        assert_eq!(found(0.90, 1.30, "unknown"), Verdict::NotDecided);
    }

    #[test]
    fn what_is_no_ratio_decides_nothing() {
        for value in [f64::NAN, 0.0, -1.0] {
            assert_eq!(
                Verdict::of(1.1, 0.1, &ratio(value, value, value, "faster")),
                Verdict::NotDecided
            );
            assert_eq!(
                Verdict::of(value, 0.1, &ratio(1.0, 1.1, 1.2, "faster")),
                Verdict::NotDecided
            );
        }
        assert_eq!(
            Verdict::of(1.1, 0.1, &ratio(1.0, 1.1, 1.2, "no such word")),
            Verdict::NotDecided
        );
    }
}
