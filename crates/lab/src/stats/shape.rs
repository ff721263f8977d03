//! Whether rounds can be believed: their spread, strays, two modes, drift inside windows.

use super::describe::{median, sorted};
use super::{MAD_TO_SIGMA, Summary};

/// How far apart the rounds are: 1.4826 times the median absolute deviation, as a fraction of the median.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Spread {
    /// At most 2 %.
    Steady,
    /// At most 5 %.
    Usable,
    /// At most 10 %: marked, still ranked.
    Noisy,
    /// Above 10 %: not ranked, and an error under `--strict`.
    Unusable,
    /// Fewer than two rounds, or no finite median.
    Unknown,
}

impl Spread {
    /// The class of a summary.
    ///
    /// A median of zero has no relative spread: it is steady when all deviations are zero too, else unusable.
    pub fn of(summary: &Summary) -> Self {
        if summary.n < 2 || !summary.median.is_finite() || summary.mad.is_nan() {
            return Spread::Unknown;
        }
        if summary.mad == 0.0 {
            return Spread::Steady;
        }
        match MAD_TO_SIGMA * summary.mad / summary.median.abs() {
            spread if spread <= 0.02 => Spread::Steady,
            spread if spread <= 0.05 => Spread::Usable,
            spread if spread <= 0.10 => Spread::Noisy,
            _ => Spread::Unusable,
        }
    }

    /// The mark of a result row, for the classes that have one.
    pub const fn flag(self) -> Option<&'static str> {
        match self {
            Spread::Noisy => Some("noisy"),
            Spread::Unusable => Some("unusable"),
            Spread::Steady | Spread::Usable | Spread::Unknown => None,
        }
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

/// One of two clusters of rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Median of the cluster.
    pub median: f64,
    /// Rounds in it.
    pub rounds: usize,
}

/// The two clusters, lower first, when one gap takes more than half of the range; a median would then describe
/// neither, and both must be shown.
///
/// Each cluster needs three rounds, the gap 1 % of the upper end: in nine rounds of one uniform distribution the rule
/// is wrong 3 % of the time, in six 6 %. Infinite values are not looked at (they are outliers).
pub fn two_modes(values: &[f64]) -> Option<[Mode; 2]> {
    let mut sorted = sorted(values);
    sorted.retain(|value| value.is_finite());
    let range = sorted.last()? - sorted.first()?;
    let scale = sorted.first()?.abs().max(sorted.last()?.abs());
    let split = (MODE_ROUNDS..=sorted.len().checked_sub(MODE_ROUNDS)?).find(|&split| {
        let gap = sorted[split] - sorted[split - 1];
        gap > range / 2.0 && gap > RELEVANT * scale
    })?;
    let (lower, upper) = sorted.split_at(split);
    let mode = |part: &[f64]| {
        Some(Mode {
            median: median(part)?,
            rounds: part.len(),
        })
    };
    Some([mode(lower)?, mode(upper)?])
}

/// Relative drift inside windows beyond which a case is "not steady" and asks for a longer warm-up.
pub const DRIFT_LIMIT: f64 = 0.05;

/// Drift inside the windows of a case: mean rate of the last third over that of the first third, minus one, median
/// over rounds. Each window is its list of rates in equal slices (100 ms).
///
/// The middle remainder of a length that three does not divide counts to neither third. Windows with fewer than three
/// slices, or a first third that is not positive and finite, say nothing; `None` when no window says anything.
/// Compare the absolute value with [`DRIFT_LIMIT`].
pub fn drift<W: AsRef<[f64]>>(windows: &[W]) -> Option<f64> {
    let drifts: Vec<f64> = windows
        .iter()
        .filter_map(|window| {
            let rates = window.as_ref();
            let third = rates.len() / 3;
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            let first = mean(rates.get(..third)?);
            let last = mean(rates.get(rates.len() - third..)?);
            (first > 0.0 && first.is_finite()).then_some(last / first - 1.0)
        })
        .collect();
    median(&drifts)
}

/// The marks a result row gets from its round values alone: `noisy` or `unusable`, `two-modes`, `outlier`.
pub fn flags(values: &[f64]) -> Vec<String> {
    let mut flags = Vec::new();
    flags.extend(Spread::of(&Summary::range(values)).flag());
    if two_modes(values).is_some() {
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

    fn spread(median: f64, mad: f64) -> Spread {
        Spread::of(&Summary {
            median,
            mad,
            ..Summary::range(&[1.0, 1.0])
        })
    }

    #[test]
    fn spread_classes_at_their_edges() {
        let at = |fraction: f64| spread(100.0, 100.0 * fraction / MAD_TO_SIGMA);
        assert_eq!(at(0.0), Spread::Steady);
        assert_eq!(at(0.0199), Spread::Steady);
        assert_eq!(at(0.0201), Spread::Usable);
        assert_eq!(at(0.0499), Spread::Usable);
        assert_eq!(at(0.0501), Spread::Noisy);
        assert_eq!(at(0.0999), Spread::Noisy);
        assert_eq!(at(0.1001), Spread::Unusable);
        assert_eq!(spread(-100.0, 1.0), Spread::Steady);
        assert_eq!(spread(0.0, 0.0), Spread::Steady);
        assert_eq!(spread(0.0, 1.0), Spread::Unusable);
        assert_eq!(spread(1.0, f64::INFINITY), Spread::Unusable);
        assert_eq!(spread(f64::INFINITY, f64::NAN), Spread::Unknown);
        assert_eq!(Spread::of(&Summary::range(&[])), Spread::Unknown);
        assert_eq!(Spread::of(&Summary::range(&[3.0])), Spread::Unknown);
    }

    #[test]
    fn outliers_are_found_and_kept_in_place() {
        // Median 100, deviations 0 1 1 1 2 2: the limit is 5 * 1.4826 * 1.
        let values = [100.0, 101.0, 99.0, 107.5, 98.0, 101.0, 99.0];
        assert_eq!(outliers(&values), vec![3]);
        assert_eq!(
            outliers(&[100.0, 101.0, 99.0, 107.3, 98.0, 101.0, 99.0]),
            Vec::<usize>::new()
        );
        assert_eq!(
            outliers(&[5.0, 5.0, 5.0, 5.04, 5.1]),
            vec![4],
            "equal values: one per cent of the median"
        );
        assert_eq!(outliers(&[1.0, 1.1, f64::NAN, 0.9, f64::INFINITY]), vec![4]);
        assert_eq!(outliers(&[1.0, 50.0]), Vec::<usize>::new());
        assert_eq!(outliers(&[f64::INFINITY; 4]), Vec::<usize>::new());
    }

    #[test]
    fn two_modes_need_two_clusters() {
        let modes = two_modes(&[10.0, 20.0, 10.1, 20.2, 9.9, 20.1, 10.2]).unwrap();
        assert_eq!(
            modes[0],
            Mode {
                median: 10.05,
                rounds: 4
            }
        );
        assert_eq!(
            modes[1],
            Mode {
                median: 20.1,
                rounds: 3
            }
        );
        assert_eq!(
            two_modes(&[10.0, 10.1, 9.9, 10.2, 10.0, 20.0]),
            None,
            "one stray is an outlier"
        );
        assert_eq!(
            two_modes(&[100.0, 100.0, 100.0, 100.5, 100.5, 100.5]),
            None,
            "too close to matter"
        );
        assert_eq!(two_modes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), None);
        assert_eq!(
            two_modes(&[10.0, 10.5, 11.0, 14.5, 15.0, 18.0]),
            None,
            "the gap is under half of the range"
        );
        assert_eq!(two_modes(&[7.0; 8]), None);
        assert_eq!(two_modes(&[]), None);
        assert_eq!(two_modes(&[1.0, 1.0, 9.0, 9.0]), None);
        assert!(two_modes(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, f64::INFINITY, f64::NAN]).is_some());
    }

    #[test]
    fn drift_compares_thirds() {
        let rising = vec![100.0, 100.0, 104.0, 108.0, 110.0, 110.0];
        let flat = vec![100.0; 6];
        assert!((drift(std::slice::from_ref(&rising)).unwrap() - 0.10).abs() < 1e-12);
        assert_eq!(
            drift(&[flat.clone(), rising.clone(), flat]),
            Some(0.0),
            "the median round decides"
        );
        let seven = [1.0, 1.0, 50.0, 50.0, 50.0, 2.0, 2.0];
        assert_eq!(drift(&[seven]), Some(1.0), "the middle remainder counts to neither");
        assert_eq!(drift::<Vec<f64>>(&[]), None);
        assert_eq!(drift(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(drift(&[[0.0, 1.0, 1.0]]), None);
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
            drift(&[&values]);
        }
    }
}
