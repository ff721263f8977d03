//! Order statistics of one list of values.

use super::{Interval, LEVEL, MIN_INTERVAL_ROUNDS};
use crate::result::{Num, ResultRow};

/// The values that are numbers, ascending.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The least and the most of some values, NaN left out; of none, a range that is turned round.
pub(crate) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    })
}

/// A number, or `None` for NaN.
pub(super) fn known(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// The median of an ascending list; the mean of the two middle values when their number is even.
pub(super) fn median_sorted(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(sorted.len() / 2 - 1)?;
    // `midpoint` of two equal infinities is that infinity; of opposite ones NaN, which is not known.
    if lower == upper {
        Some(lower)
    } else {
        known(lower.midpoint(upper))
    }
}

/// The median; `None` without values, or when the middle lies between -inf and +inf.
pub fn median(values: &[f64]) -> Option<f64> {
    median_sorted(&sorted(values))
}

/// The median absolute deviation from the median, not scaled; `None` when the median is not known or not finite.
///
/// Multiply by [`super::MAD_TO_SIGMA`] for an estimate of the standard deviation that one or two shocks do not move.
pub fn mad(values: &[f64]) -> Option<f64> {
    let centre = median(values).filter(|centre| centre.is_finite())?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&deviations)
}

/// The quantile `q` (0 to 1), linear between the two nearest order statistics (Hyndman and Fan's type 7).
///
/// `None` without values, for `q` outside 0 to 1, or between opposite infinities.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let sorted = sorted(values);
    if !(0.0..=1.0).contains(&q) || sorted.is_empty() {
        return None;
    }
    let place = q * (sorted.len() - 1) as f64;
    let index = place.floor() as usize;
    let part = place - place.floor();
    let lower = *sorted.get(index)?;
    let upper = sorted.get(index + 1).copied().unwrap_or(lower);
    if part == 0.0 || lower == upper {
        Some(lower)
    } else {
        known(lower * (1.0 - part) + upper * part)
    }
}

/// The narrowest symmetric pair of order statistics that covers the true median with at least 95 %, and its exact
/// coverage; `None` below six values, where not even the whole range reaches 95 %.
///
/// Assumes independent values of one continuous distribution and nothing about its shape: the number of values below
/// the true median is binomial with p = 1/2. Coverage is 96.9 % at 6 (the range), 98.4 % at 7, 96.1 % at 9 (second to
/// eighth), 96.5 % at 15 (fourth to twelfth); ties only raise it.
pub fn order_statistics_interval(values: &[f64]) -> Option<Interval> {
    let sorted = sorted(values);
    let n = sorted.len();
    if n < MIN_INTERVAL_ROUNDS {
        return None;
    }
    // Logarithms, because 2^-n leaves the range of a double beyond a thousand values.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    let mut best = None;
    for rank in 0..n / 2 {
        let level = 1.0 - 2.0 * tail;
        if level < LEVEL {
            break;
        }
        best = Some(Interval {
            low: *sorted.get(rank)?,
            high: *sorted.get(n - 1 - rank)?,
            level,
        });
        log_term += ((n - rank) as f64 / (rank + 1) as f64).ln();
        tail += log_term.exp();
    }
    best
}

/// What `low` and `high` of a [`Summary`] are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    /// An interval for the median, from order statistics.
    OrderStatistics,
    /// Minimum and maximum.
    Range,
}

impl How {
    /// The text of the `how` field of a result row.
    pub const fn as_str(self) -> &'static str {
        match self {
            How::OrderStatistics => "order-statistics",
            How::Range => "range",
        }
    }
}

/// One subject, one case, one metric over all rounds. NaN is "not known".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Rounds that have a value.
    pub n: usize,
    /// Median over rounds.
    pub median: f64,
    /// Median absolute deviation, not scaled.
    pub mad: f64,
    /// Lower end: see `how`.
    pub low: f64,
    /// Upper end: see `how`.
    pub high: f64,
    /// What the ends are.
    pub how: How,
}

impl Summary {
    /// Median with the order-statistics interval from six rounds on, and with the range below.
    pub fn of(values: &[f64]) -> Self {
        let mut summary = Self::range(values);
        if let Some(interval) = order_statistics_interval(values) {
            (summary.low, summary.high) = (interval.low, interval.high);
            summary.how = How::OrderStatistics;
        }
        summary
    }

    /// Median with minimum and maximum whatever the number of rounds: what the quick profile prints.
    pub fn range(values: &[f64]) -> Self {
        let sorted = sorted(values);
        Summary {
            n: sorted.len(),
            median: median_sorted(&sorted).unwrap_or(f64::NAN),
            mad: mad(&sorted).unwrap_or(f64::NAN),
            low: sorted.first().copied().unwrap_or(f64::NAN),
            high: sorted.last().copied().unwrap_or(f64::NAN),
            how: How::Range,
        }
    }

    /// Writes the figures into the fields of a result row that hold them; `values` and the rest stay as they are.
    pub fn store(&self, row: &mut ResultRow) {
        row.median = Num(self.median);
        row.mad = Num(self.mad);
        row.low = Num(self.low);
        row.high = Num(self.high);
        row.how = self.how.as_str().to_owned();
        row.rounds = u32::try_from(self.n).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const INF: f64 = f64::INFINITY;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
        assert_eq!(median(&[4.0]), Some(4.0));
        assert_eq!(median(&[4.0, f64::NAN, 1.0]), Some(2.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[INF, INF]), Some(INF));
        assert_eq!(median(&[-INF, INF]), None);
        assert_eq!(median(&[1.0, INF]), Some(INF));
        assert_eq!(median(&[f64::MAX, f64::MAX / 2.0]), Some(f64::MAX * 0.75));
    }

    #[test]
    fn deviations() {
        assert_eq!(mad(&[]), None);
        assert_eq!(mad(&[5.0]), Some(0.0));
        assert_eq!(mad(&[1.0, 2.0, 3.0, 4.0, 100.0]), Some(1.0));
        assert_eq!(mad(&[1.0, 2.0, INF]), Some(1.0));
        assert_eq!(mad(&[1.0, INF, INF]), None);
    }

    #[test]
    fn quantiles() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.25, 0.5, 0.75].map(|q| quantile(&values, q)),
            [Some(1.75), Some(2.5), Some(3.25)]
        );
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&values, 1.1), None);
        assert_eq!(quantile(&values, f64::NAN), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[-INF, INF], 0.5), None);
    }

    fn ascending(n: usize) -> Vec<f64> {
        (1..=n).map(|i| i as f64).collect()
    }

    #[test]
    fn order_statistics_have_their_exact_coverage() {
        // Ranks from one, and the number of sign patterns outside the interval, by hand from binomial coefficients.
        let table = [
            (6, 1, 2),
            (7, 1, 2),
            (8, 1, 2),
            (9, 2, 20),
            (10, 2, 22),
            (11, 2, 24),
            (12, 3, 158),
            (15, 4, 1152),
        ];
        for (n, rank, outside) in table {
            let interval = order_statistics_interval(&ascending(n)).unwrap();
            assert_eq!(interval.low, rank as f64, "n = {n}");
            assert_eq!(interval.high, (n + 1 - rank) as f64, "n = {n}");
            let exact = 1.0 - f64::from(outside) / 2_f64.powi(n as i32);
            assert!(
                (interval.level - exact).abs() < 1e-12,
                "n = {n}: {} against {exact}",
                interval.level
            );
        }
        for n in 0..6 {
            assert_eq!(order_statistics_interval(&ascending(n)), None, "n = {n}");
        }
        let long = order_statistics_interval(&ascending(5_000)).unwrap();
        assert!(long.level >= 0.95 && long.level < 0.952, "{long:?}");
        assert!((2_425.0..2_432.0).contains(&long.low), "{long:?}");
    }

    #[test]
    fn summaries() {
        let shown = |summary: Summary| (summary.n, summary.median, summary.low, summary.high, summary.how);
        assert_eq!(shown(Summary::of(&[3.0, 1.0, 2.0])), (3, 2.0, 1.0, 3.0, How::Range));
        let nine = ascending(9);
        assert_eq!(shown(Summary::of(&nine)), (9, 5.0, 2.0, 8.0, How::OrderStatistics));
        assert_eq!(shown(Summary::range(&nine)), (9, 5.0, 1.0, 9.0, How::Range));
        let none = Summary::of(&[]);
        assert_eq!(none.n, 0);
        assert!(none.median.is_nan() && none.mad.is_nan() && none.low.is_nan() && none.high.is_nan());
    }

    proptest! {
        #[test]
        fn anything_can_be_summarised(values in proptest::collection::vec(proptest::num::f64::ANY, 0..40)) {
            let summary = Summary::of(&values);
            prop_assert_eq!(summary.n, values.iter().filter(|value| !value.is_nan()).count());
            if !summary.median.is_nan() {
                prop_assert!(summary.low <= summary.median && summary.median <= summary.high);
            }
        }

        #[test]
        fn order_does_not_matter(mut values in proptest::collection::vec(-1e9..1e9_f64, 1..30)) {
            let before = Summary::of(&values);
            values.reverse();
            prop_assert_eq!(before, Summary::of(&values));
        }

        #[test]
        fn mad_follows_scale_and_ignores_place(values in proptest::collection::vec(-1e3..1e3_f64, 1..30), k in 0.5..8.0_f64) {
            let scaled: Vec<f64> = values.iter().map(|value| value * k + 7.0).collect();
            let (before, after) = (mad(&values).unwrap(), mad(&scaled).unwrap());
            prop_assert!((after - before * k).abs() < 1e-8);
        }
    }
}
