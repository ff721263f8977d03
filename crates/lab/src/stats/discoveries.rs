//! Many ratios at once: false discoveries in long tables.

use super::Verdict;
use crate::result::Ratio;

/// Tables with more ratios than this need [`confirm`].
const LONG_TABLE: usize = 20;

/// Share of false winners accepted among all winners of a long table.
const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// Which of the hypotheses with p-values `p` may be rejected so that at most the share `rate` of the rejections is
/// false on average (Benjamini and Hochberg, 1995). `None` and NaN are never rejected but count as hypotheses.
pub fn benjamini_hochberg(p: &[Option<f64>], rate: f64) -> Vec<bool> {
    let mut ordered: Vec<f64> = p.iter().flatten().copied().filter(|p| !p.is_nan()).collect();
    ordered.sort_by(f64::total_cmp);
    let step = rate / p.len().max(1) as f64;
    let limit = ordered
        .iter()
        .enumerate()
        .rev()
        .find(|(index, p)| **p <= step * (index + 1) as f64)
        .map(|(_, p)| *p);
    p.iter()
        .map(|p| matches!((p, limit), (Some(p), Some(limit)) if *p <= limit))
        .collect()
}

/// Takes back the winners of a long table that chance alone could explain: with more than 20 ratios in `table`, each
/// `faster` or `slower` that Benjamini-Hochberg at 5 % does not confirm becomes `unknown`.
///
/// Each ratio comes with its exact p-value, [`super::signed_rank_p`] of its logarithms. Ratios with a plain range are
/// left alone: a range has no p-value, and its margin of 20 % guards it.
pub fn confirm(table: &mut [(&mut Ratio, Option<f64>)]) {
    let tested: Vec<usize> = (0..table.len())
        .filter(|&index| table[index].0.how == "signed-rank")
        .collect();
    if tested.len() <= LONG_TABLE {
        return;
    }
    let p: Vec<Option<f64>> = tested.iter().map(|&index| table[index].1).collect();
    for (&index, holds) in tested.iter().zip(benjamini_hochberg(&p, FALSE_DISCOVERY_RATE)) {
        let verdict = &mut table[index].0.verdict;
        if !holds && (verdict == Verdict::Faster.as_str() || verdict == Verdict::Slower.as_str()) {
            Verdict::Unknown.as_str().clone_into(verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;
    use crate::stats::{Better, Rules, ratio};

    #[test]
    fn benjamini_hochberg_steps_up() {
        // The example of the 1995 paper: 15 p-values, four rejected at 5 %.
        let paper = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        let p: Vec<Option<f64>> = paper.iter().copied().map(Some).collect();
        let rejected = benjamini_hochberg(&p, 0.05);
        assert_eq!(rejected.iter().filter(|r| **r).count(), 4);
        assert!(rejected[..4].iter().all(|r| *r));
        // The largest p that meets its own limit carries the smaller ones that do not: 0.04 > 0.025, yet rejected.
        assert_eq!(benjamini_hochberg(&[Some(0.04), Some(0.05)], 0.05), [true, true]);
        assert_eq!(benjamini_hochberg(&[Some(0.04), None], 0.05), [false, false]);
        assert_eq!(benjamini_hochberg(&[Some(f64::NAN), Some(0.01)], 0.05), [false, true]);
        assert_eq!(benjamini_hochberg(&[], 0.05), Vec::<bool>::new());
    }

    fn winner(how: &str) -> Ratio {
        let values = [110.0; 9];
        let found = ratio("peer", &values, &[100.0; 9], Better::Higher, Rules::of("throughput"));
        Ratio {
            how: how.to_owned(),
            ..found
        }
    }

    #[test]
    fn long_tables_lose_weak_winners() {
        let run = |count: usize, weak: f64, how: &str| {
            let mut ratios = vec![winner(how); count];
            let mut table: Vec<(&mut Ratio, Option<f64>)> = ratios.iter_mut().map(|ratio| (ratio, Some(1.0))).collect();
            table[0].1 = Some(1e-6);
            table[1].1 = Some(weak);
            confirm(&mut table);
            // How many winners are left.
            ratios.iter().filter(|ratio| ratio.verdict == "faster").count()
        };
        assert_eq!(run(21, 0.03, "signed-rank"), 1);
        assert_eq!(run(21, 0.004, "signed-rank"), 2);
        assert_eq!(run(20, 0.03, "signed-rank"), 20);
        assert_eq!(run(40, 0.03, "range"), 40);
    }

    proptest! {
        #[test]
        fn rejections_are_the_smallest(p in proptest::collection::vec(0.0..=1.0_f64, 0..40)) {
            let all: Vec<Option<f64>> = p.iter().copied().map(Some).collect();
            let rejected = benjamini_hochberg(&all, 0.05);
            let largest = p.iter().zip(&rejected).filter(|(_, r)| **r).map(|(p, _)| *p).fold(0.0, f64::max);
            for (p, r) in p.iter().zip(&rejected) {
                prop_assert!(*r || *p > largest || largest == 0.0);
            }
        }
    }
}
