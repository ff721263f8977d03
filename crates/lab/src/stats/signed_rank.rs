//! The exact distribution of the Wilcoxon signed-rank statistic, and what follows from it.
//!
//! Under "no difference" every difference is as likely to be positive as negative, so each of the 2^n sign patterns
//! over the ranks is equally likely. Counting them needs no normal approximation at the few rounds of a run.

use super::describe::{known, median};
use super::{Interval, LEVEL, MIN_INTERVAL_ROUNDS};

/// The most values these functions take. Work grows with the cube of the number and 2^-n must stay a normal double;
/// longer lists are "not known".
pub const MAX_ROUNDS: usize = 1_000;

/// Probability of each sum of the ranks in `doubled` (ranks times two, so that tied ranks are whole) when each is
/// counted with probability one half. Index: the doubled sum.
fn distribution(doubled: &[usize]) -> Vec<f64> {
    let total: usize = doubled.iter().sum();
    let mut probability = vec![0.0; total + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for &rank in doubled {
        for sum in (0..=reached).rev() {
            let half = probability[sum] / 2.0;
            probability[sum] = half;
            probability[sum + rank] += half;
        }
        reached += rank;
    }
    probability
}

/// The largest `k` with 1 - 2 P(W <= k) >= [`LEVEL`] for `n` untied differences, and that coverage: 96.9 % at 6, 95.3 % at 7,
/// 96.1 % at 9, 95.2 % at 15. `None` below six, where none exists, and above [`MAX_ROUNDS`].
fn critical(n: usize) -> Option<(usize, f64)> {
    if n > MAX_ROUNDS {
        return None;
    }
    let ranks: Vec<usize> = (1..=n).collect();
    let mut tail = 0.0;
    let mut best = None;
    for (k, probability) in distribution(&ranks).into_iter().enumerate() {
        tail += probability;
        let coverage = 1.0 - 2.0 * tail;
        if coverage < LEVEL {
            break;
        }
        best = Some((k, coverage));
    }
    best
}

/// All means of two differences, each with itself too, ascending; `None` when one is not a number, as the mean of
/// opposite infinities is, or when there are too few or too many.
fn pairwise_means(differences: &[f64]) -> Option<Vec<f64>> {
    let n = differences.len();
    if n == 0 || n > MAX_ROUNDS {
        return None;
    }
    let mut means = Vec::with_capacity(n * (n + 1) / 2);
    for (i, a) in differences.iter().enumerate() {
        for b in &differences[i..] {
            means.push(known(if a == b { *a } else { a.midpoint(*b) })?);
        }
    }
    means.sort_by(f64::total_cmp);
    Some(means)
}

/// The Hodges-Lehmann estimate of the middle of `differences`: the median of all pairwise means.
///
/// Nearly as precise as the mean on normal data, and unmoved by a stray round. `None` for no values, for NaN among
/// them, for opposite infinities, and above [`MAX_ROUNDS`].
pub fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    median(&pairwise_means(differences)?)
}

/// The interval for the middle of `differences` that inverts the exact signed-rank test, with its exact coverage (at
/// least 95 %). Ties only raise the coverage.
///
/// `None` below six differences, and where [`hodges_lehmann`] is `None`.
pub fn signed_rank_interval(differences: &[f64]) -> Option<Interval> {
    let means = pairwise_means(differences)?;
    if differences.len() < MIN_INTERVAL_ROUNDS {
        return None;
    }
    let (k, level) = critical(differences.len())?;
    Some(Interval {
        low: *means.get(k)?,
        high: *means.get(means.len() - 1 - k)?,
        level,
    })
}

/// The exact two-sided p-value of "the differences are symmetric around zero".
///
/// Zero differences are dropped and tied sizes share their mean rank, as Wilcoxon did; the distribution is the exact
/// one for those ranks. 1 when every difference is zero. `None` for no values, for NaN, and above [`MAX_ROUNDS`].
pub fn signed_rank_p(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.len() > MAX_ROUNDS || differences.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sizes: Vec<(f64, bool)> = differences
        .iter()
        .filter(|value| **value != 0.0)
        .map(|value| (value.abs(), *value > 0.0))
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut doubled = Vec::with_capacity(sizes.len());
    let mut positive = 0;
    for tied in sizes.chunk_by(|a, b| a.0 == b.0) {
        // Ranks first+1 ..= first+len; twice their mean is the sum of the two ends.
        let rank = 2 * doubled.len() + tied.len() + 1;
        positive += rank * tied.iter().filter(|(_, up)| *up).count();
        doubled.extend(std::iter::repeat_n(rank, tied.len()));
    }
    let probability = distribution(&doubled);
    let below: f64 = probability[..=positive].iter().sum();
    let above: f64 = probability[positive..].iter().sum();
    Some((2.0 * below.min(above)).min(1.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    /// Every sign pattern, one by one.
    fn sums_by_enumeration(ranks: &[usize]) -> Vec<usize> {
        let patterns = 0..1_usize << ranks.len();
        patterns
            .map(|signs| {
                ranks
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| signs >> i & 1 == 1)
                    .map(|(_, r)| r)
                    .sum()
            })
            .collect()
    }

    #[test]
    fn distribution_equals_enumeration() {
        for n in 0..=14 {
            let ranks: Vec<usize> = (1..=n).collect();
            let mut counts = vec![0_u32; n * (n + 1) / 2 + 1];
            for sum in sums_by_enumeration(&ranks) {
                counts[sum] += 1;
            }
            let exact: Vec<f64> = counts
                .into_iter()
                .map(|count| f64::from(count) / 2_f64.powi(n as i32))
                .collect();
            assert_eq!(distribution(&ranks), exact, "n = {n}");
        }
    }

    #[test]
    fn coverages_of_the_published_table() {
        // Critical values of the two-sided test at 5 %, as in every textbook table, and the tail counts below them.
        let table = [
            (6, 0, 0.969),
            (7, 2, 0.953),
            (8, 3, 0.961),
            (9, 5, 0.961),
            (10, 8, 0.951),
            (15, 25, 0.952),
        ];
        for (n, k, coverage) in table {
            let (found, level) = critical(n).unwrap();
            assert_eq!(found, k, "n = {n}");
            assert!((level - coverage).abs() < 0.000_5, "n = {n}: {level}");
        }
        let coverage = |n| critical(n).map(|(_, level)| level);
        assert_eq!(coverage(6), Some(1.0 - 2.0 / 64.0));
        assert_eq!(coverage(7), Some(1.0 - 6.0 / 128.0));
        assert_eq!(coverage(9), Some(1.0 - 20.0 / 512.0));
        for n in (0..6).chain([MAX_ROUNDS + 1]) {
            assert_eq!(critical(n), None, "n = {n}");
        }
    }

    #[test]
    fn interval_covers_as_often_as_it_says() {
        // With the middle at zero, a sign pattern over fixed sizes misses exactly when the interval excludes zero.
        for n in 6..=12_usize {
            let sizes: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64).exp2()).collect();
            let covered = (0..1_usize << n)
                .filter(|signs| {
                    let signed: Vec<f64> = sizes
                        .iter()
                        .enumerate()
                        .map(|(i, size)| if signs >> i & 1 == 1 { *size } else { -size })
                        .collect();
                    let interval = signed_rank_interval(&signed).unwrap();
                    interval.low <= 0.0 && 0.0 <= interval.high
                })
                .count();
            let share = covered as f64 / (1_usize << n) as f64;
            assert_eq!(share, critical(n).unwrap().1, "n = {n}");
        }
    }

    #[test]
    fn six_differences_span_everything() {
        let interval = signed_rank_interval(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((interval.low, interval.high, interval.level), (1.0, 6.0, 0.968_75));
        assert_eq!(signed_rank_interval(&[1.0; 5]), None);
    }

    #[test]
    fn estimates() {
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[2.0]), Some(2.0));
        assert_eq!(hodges_lehmann(&[1.0, 2.0, 6.0]), Some(2.75));
        assert_eq!(hodges_lehmann(&[1.0, f64::NAN]), None);
        assert_eq!(hodges_lehmann(&[f64::INFINITY, f64::NEG_INFINITY]), None);
        assert_eq!(hodges_lehmann(&[f64::INFINITY; 3]), Some(f64::INFINITY));
        assert_eq!(hodges_lehmann(&vec![1.0; MAX_ROUNDS + 1]), None);
    }

    #[test]
    fn p_values() {
        assert_eq!(signed_rank_p(&[]), None);
        assert_eq!(signed_rank_p(&[f64::NAN]), None);
        assert_eq!(signed_rank_p(&[0.0, 0.0]), Some(1.0));
        assert_eq!(signed_rank_p(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some(2.0 / 64.0));
        assert_eq!(signed_rank_p(&[1.0; 9]), Some(2.0 / 512.0));
        assert_eq!(signed_rank_p(&[1.0, -1.0]), Some(1.0));
        assert!(signed_rank_p(&[f64::INFINITY, -1.0, 2.0]).is_some());
    }

    proptest! {
        #[test]
        fn p_value_equals_enumeration(small in proptest::collection::vec(-4_i32..=4, 1..11)) {
            // Small integers give ties and zeros.
            let values: Vec<f64> = small.iter().copied().map(f64::from).collect();
            let kept: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
            let rank = |value: &f64| {
                let smaller = kept.iter().filter(|other| other.abs() < value.abs()).count();
                let equal = kept.iter().filter(|other| other.abs() == value.abs()).count();
                2 * smaller + equal + 1
            };
            let ranks: Vec<usize> = kept.iter().map(rank).collect();
            let observed: usize = kept.iter().filter(|value| **value > 0.0).map(rank).sum();
            let sums = sums_by_enumeration(&ranks);
            let below = sums.iter().filter(|sum| **sum <= observed).count();
            let above = sums.iter().filter(|sum| **sum >= observed).count();
            let exact = (2.0 * below.min(above) as f64 / sums.len() as f64).min(1.0);
            prop_assert!((signed_rank_p(&values).unwrap() - exact).abs() < 1e-12);
        }

        #[test]
        fn estimate_lies_in_the_interval_and_moves_with_the_data(
            values in proptest::collection::vec(-100.0..100.0_f64, 6..20),
            shift in -50.0..50.0_f64,
        ) {
            let estimate = hodges_lehmann(&values).unwrap();
            let interval = signed_rank_interval(&values).unwrap();
            prop_assert!(interval.low <= estimate && estimate <= interval.high);
            let moved: Vec<f64> = values.iter().map(|value| value + shift).collect();
            prop_assert!((hodges_lehmann(&moved).unwrap() - estimate - shift).abs() < 1e-9);
            let negated: Vec<f64> = values.iter().map(|value| -value).collect();
            let mirror = signed_rank_interval(&negated).unwrap();
            prop_assert_eq!((mirror.low, mirror.high), (-interval.high, -interval.low));
        }

        #[test]
        fn nothing_panics(values in proptest::collection::vec(proptest::num::f64::ANY, 0..15)) {
            hodges_lehmann(&values);
            signed_rank_interval(&values);
            if let Some(p) = signed_rank_p(&values) {
                prop_assert!((0.0..=1.0).contains(&p));
            }
        }
    }
}
