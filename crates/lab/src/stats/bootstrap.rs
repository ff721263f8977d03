//! The percentile bootstrap, for statistics that have no exact interval.

use super::describe::sorted;
use super::{Interval, LEVEL, SplitMix64};

/// Resamples drawn for every bootstrap interval.
pub const DRAWS: usize = 10_000;

/// The 95 % percentile interval of `statistic` under resampling of `values` with replacement, 10,000 draws from `seed`.
///
/// `level` is nominal, and at few values too high: for the median it is really 87.5 % at 7, 96.1 % at 9 and 93.5 % at
/// 11 values. Below 15 values use [`super::order_statistics_interval`] for a median. `statistic` may reorder the slice
/// it is given. `None` without values or when the statistic is not known for one of the draws.
pub fn bootstrap_interval(
    values: &[f64],
    seed: u64,
    mut statistic: impl FnMut(&mut [f64]) -> Option<f64>,
) -> Option<Interval> {
    let values = sorted(values);
    if values.is_empty() {
        return None;
    }
    let mut random = SplitMix64::new(seed);
    let mut resample = vec![0.0; values.len()];
    let mut found = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        for slot in &mut resample {
            *slot = values[random.below(values.len())];
        }
        found.push(statistic(&mut resample).filter(|value| !value.is_nan())?);
    }
    found.sort_by(f64::total_cmp);
    let outside = (DRAWS as f64 * (1.0 - LEVEL) / 2.0).round() as usize;
    Some(Interval {
        low: found[outside],
        high: found[DRAWS - 1 - outside],
        level: LEVEL,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::stats::{mad, median};

    fn of_median(n: usize, seed: u64) -> Interval {
        let values: Vec<f64> = (1..=n).map(|i| i as f64).collect();
        bootstrap_interval(&values, seed, |draw| median(draw)).unwrap()
    }

    /// Chance that the true median lies between the order statistics `rank` and n + 1 - `rank`.
    fn coverage(n: u32, rank: u32) -> f64 {
        let mut choose = 1.0;
        let mut below = 0.0;
        for i in 0..rank {
            below += choose;
            choose *= f64::from(n - i) / f64::from(i + 1);
        }
        1.0 - 2.0 * below / 2_f64.powi(n as i32)
    }

    #[test]
    fn median_at_few_values_has_its_known_ends_and_coverage() {
        for (n, rank, expected) in [(7_u32, 2_u32, 0.875), (9, 2, 0.961), (11, 3, 0.935)] {
            for seed in 0..3 {
                let found = of_median(n as usize, seed);
                assert_eq!(
                    (found.low, found.high),
                    (f64::from(rank), f64::from(n + 1 - rank)),
                    "n = {n}"
                );
            }
            assert!(
                (coverage(n, rank) - expected).abs() < 0.000_5,
                "n = {n}: {}",
                coverage(n, rank)
            );
        }
    }

    #[test]
    fn seeds_replay() {
        let values = [3.1, 2.7, 9.4, 4.4, 8.8, 1.3, 5.2];
        let mean = |draw: &mut [f64]| Some(draw.iter().sum::<f64>() / draw.len() as f64);
        let first = bootstrap_interval(&values, 11, mean);
        assert_eq!(first, bootstrap_interval(&values, 11, mean));
        assert_ne!(first, bootstrap_interval(&values, 12, mean));
        let found = first.unwrap();
        // Mean 4.99, standard error of the mean 1.06: the ends lie about two of them away.
        assert!(
            (2.6..3.4).contains(&found.low) && (6.6..7.4).contains(&found.high),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_not_known_stays_so() {
        assert_eq!(bootstrap_interval(&[], 1, |draw| median(draw)), None);
        assert_eq!(bootstrap_interval(&[f64::NAN], 1, |draw| median(draw)), None);
        assert_eq!(bootstrap_interval(&[1.0, f64::INFINITY], 1, |draw| mad(draw)), None);
        let one = bootstrap_interval(&[4.0], 1, |draw| median(draw)).unwrap();
        assert_eq!((one.low, one.high), (4.0, 4.0));
    }
}
