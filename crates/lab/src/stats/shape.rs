//! Whether rounds can be believed: their spread, strays, two modes.

use super::describe::sorted;
use super::{MAD_TO_SIGMA, Summary};

/// The mark for how far apart the rounds are, by 1.4826 times the median absolute deviation, as a fraction of the median: `noisy` above
/// 5 %, still ranked; `unusable` above 10 %, not ranked, and an error under `--strict`.
///
/// None for fewer than two rounds or without a finite median. A median of zero has no relative spread: none when all deviations
/// are zero too, else unusable.
fn spread(summary: &Summary) -> Option<&'static str> {
    if summary.n < 2 || !summary.median.is_finite() || summary.mad.is_nan() || summary.mad == 0.0 {
        return None;
    }
    match MAD_TO_SIGMA * summary.mad / summary.median.abs() {
        spread if spread <= 0.05 => None,
        spread if spread <= 0.10 => Some("noisy"),
        _ => Some("unusable"),
    }
}

/// Robust standard deviations from the median beyond which a value is marked.
const OUTLIER_DISTANCE: f64 = 5.0;

/// With more than half of the values equal the robust deviation is zero: a value is then marked from this fraction of
/// the median on, and two clusters closer than this are not called modes.
const RELEVANT: f64 = 0.01;

/// Rounds a cluster needs to be called a mode; one or two strays are outliers.
const MODE_ROUNDS: usize = 3;

/// Indices of the values that lie further than 5 robust standard deviations from the median.
///
/// They are marked, never removed: only a recorded cause (steal, suspend, throttling) repeats a round. Empty below
/// three values and without a finite median.
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let summary = Summary::range(values);
    if summary.n < 3 || !summary.median.is_finite() || summary.mad.is_nan() {
        return Vec::new();
    }
    let limit = if summary.mad == 0.0 {
        RELEVANT * summary.median.abs()
    } else {
        OUTLIER_DISTANCE * MAD_TO_SIGMA * summary.mad
    };
    let far = |&(_, value): &(usize, &f64)| (value - summary.median).abs() > limit;
    values.iter().enumerate().filter(far).map(|(index, _)| index).collect()
}

/// Whether one gap takes more than half of the range: a median then describes neither cluster beside it.
///
/// Each cluster needs three rounds, the gap 1 % of the upper end: in nine rounds of one uniform distribution the rule
/// is wrong 3 % of the time, in six 6 %. Infinite values are not looked at (they are outliers).
pub fn has_two_modes(values: &[f64]) -> bool {
    let mut sorted = sorted(values);
    sorted.retain(|value| value.is_finite());
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        return false;
    };
    let (range, scale) = (last - first, first.abs().max(last.abs()));
    let mut splits = MODE_ROUNDS..=sorted.len().saturating_sub(MODE_ROUNDS);
    splits.any(|split| {
        let gap = sorted[split] - sorted[split - 1];
        gap > range / 2.0 && gap > RELEVANT * scale
    })
}

/// The marks a result row gets from its round values alone: `noisy` or `unusable`, `two-modes`, `outlier`.
pub fn flags(values: &[f64]) -> Vec<String> {
    let mut flags = Vec::new();
    flags.extend(spread(&Summary::range(values)));
    if has_two_modes(values) {
        flags.push("two-modes");
    }
    if !outliers(values).is_empty() {
        flags.push("outlier");
    }
    flags.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn of(median: f64, mad: f64) -> Option<&'static str> {
        spread(&Summary {
            median,
            mad,
            ..Summary::range(&[1.0, 1.0])
        })
    }

    #[test]
    fn spread_classes_at_their_edges() {
        let at = |fraction: f64| of(100.0, 100.0 * fraction / MAD_TO_SIGMA);
        assert_eq!([0.0, 0.0499].map(at), [None; 2]);
        assert_eq!([0.0501, 0.0999].map(at), [Some("noisy"); 2]);
        assert_eq!(at(0.1001), Some("unusable"));
        assert_eq!((of(-100.0, 1.0), of(0.0, 0.0)), (None, None));
        assert_eq!(of(0.0, 1.0), Some("unusable"));
        assert_eq!(of(1.0, f64::INFINITY), Some("unusable"));
        assert_eq!(of(f64::INFINITY, f64::NAN), None);
        assert_eq!(
            [&[][..], &[3.0]].map(|values| spread(&Summary::range(values))),
            [None; 2]
        );
    }

    #[test]
    fn outliers_are_found_and_kept_in_place() {
        // Median 100, deviations 0 1 1 1 2 2: the limit is 5 * 1.4826 * 1.
        let values = [100.0, 101.0, 99.0, 107.5, 98.0, 101.0, 99.0];
        assert_eq!(outliers(&values), [3]);
        assert!(outliers(&[100.0, 101.0, 99.0, 107.3, 98.0, 101.0, 99.0]).is_empty());
        // Equal values: one per cent of the median.
        assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.04, 5.1]), [4]);
        assert_eq!(outliers(&[1.0, 1.1, f64::NAN, 0.9, f64::INFINITY]), [4]);
        assert!(outliers(&[1.0, 50.0]).is_empty() && outliers(&[f64::INFINITY; 4]).is_empty());
    }

    #[test]
    fn two_modes_need_two_clusters() {
        assert!(has_two_modes(&[10.0, 20.0, 10.1, 20.2, 9.9, 20.1, 10.2]));
        for (values, why) in [
            (&[10.0, 10.1, 9.9, 10.2, 10.0, 20.0][..], "one stray is an outlier"),
            (&[100.0, 100.0, 100.0, 100.5, 100.5, 100.5], "too close to matter"),
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "no gap"),
            (&[10.0, 10.5, 11.0, 14.5, 15.0, 18.0], "under half of the range"),
            (&[7.0; 8], "no range"),
            (&[], "nothing"),
            (&[1.0, 1.0, 9.0, 9.0], "too few"),
        ] {
            assert!(!has_two_modes(values), "{why}");
        }
        assert!(has_two_modes(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, f64::INFINITY, f64::NAN]));
    }

    #[test]
    fn flags_name_what_is_wrong() {
        assert!(flags(&[100.0, 101.0, 99.0]).is_empty());
        assert_eq!(flags(&[100.0, 104.0, 96.0, 105.0, 95.0]), ["noisy"]);
        assert_eq!(flags(&[10.0, 20.0, 10.1, 20.2, 9.9, 20.1]), ["unusable", "two-modes"]);
        assert_eq!(flags(&[100.0, 101.0, 99.0, 150.0, 100.0]), ["outlier"]);
        assert!(flags(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_panics(values in proptest::collection::vec(proptest::num::f64::ANY, 0..20)) {
            let marked = outliers(&values);
            prop_assert!(marked.len() * 2 <= values.len(), "at most half can be far from the median");
            flags(&values);
        }
    }
}
