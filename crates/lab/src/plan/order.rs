//! The order of visits: Williams squares inside cases, cases reversed in every second round.

use std::collections::BTreeMap;

use crate::stats::SplitMix64;

/// The cells of a run grouped by case, cases in the order of their first cell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Layout(Vec<Vec<usize>>);

impl Layout {
    /// Groups cells 0, 1, 2, … by the key of their case; cells of one case need not be neighbours.
    pub fn by_case<K: Ord>(keys: impl IntoIterator<Item = K>) -> Self {
        let mut places = BTreeMap::new();
        let mut cases: Vec<Vec<usize>> = Vec::new();
        for (cell, key) in keys.into_iter().enumerate() {
            let place = *places.entry(key).or_insert(cases.len());
            match cases.get_mut(place) {
                Some(case) => case.push(cell),
                None => cases.push(vec![cell]),
            }
        }
        Layout(cases)
    }

    /// Cell indices of every case.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.0
    }

    /// Number of cases.
    pub fn cases(&self) -> usize {
        self.0.len()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Subjects in the case that has most; 0 without cases.
    pub fn largest_case(&self) -> usize {
        self.0.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Keeps the first `cases` cases.
    pub fn truncate(&mut self, cases: usize) {
        self.0.truncate(cases);
    }
}

/// The rows of a Williams square for `subjects` subjects: orders in which each subject has each place equally often
/// and follows each other subject equally often (E. J. Williams, 1949).
///
/// As many rows as subjects if that is even, twice as many if odd; one row for one subject, none for none. For two
/// subjects the rows are A B and B A, so two rounds make A B B A or B A A B.
pub fn williams(subjects: usize) -> Vec<Vec<usize>> {
    match subjects {
        0 => return Vec::new(),
        1 => return vec![vec![0]],
        _ => {}
    }
    // 0, 1, n-1, 2, n-2, …: neighbours differ by every non-zero amount once, so turning it gives every pair once.
    let zigzag = (0..subjects).map(|place| {
        if place % 2 == 1 {
            place.div_ceil(2)
        } else {
            (subjects - place / 2) % subjects
        }
    });
    let zigzag: Vec<usize> = zigzag.collect();
    let mut rows: Vec<Vec<usize>> = (0..subjects)
        .map(|turn| zigzag.iter().map(|subject| (subject + turn) % subjects).collect())
        .collect();
    if subjects % 2 == 1 {
        // With an odd number the zigzag repeats some differences and lacks their opposites; the mirror has those.
        let mirrored: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

/// The visits of every round, as cell indices in order.
///
/// Each case takes one row of its Williams square a round. The rows are shuffled per case from `seed`, and anew each
/// time all have been used, so that a pattern in time cannot favour a subject. Cases run forwards in even rounds (from
/// 0) and backwards in odd ones.
pub fn schedule(layout: &Layout, rounds: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut schedule = vec![Vec::with_capacity(layout.cells()); rounds as usize];
    let per_case: Vec<Vec<Vec<usize>>> = layout
        .groups()
        .iter()
        .enumerate()
        .map(|(case, cells)| orders(cells, schedule.len(), &mut SplitMix64::stream(seed, case as u64)))
        .collect();
    for (round, visits) in schedule.iter_mut().enumerate() {
        let mut case_orders: Vec<&[usize]> = per_case
            .iter()
            .filter_map(|orders| orders.get(round).map(Vec::as_slice))
            .collect();
        if round % 2 == 1 {
            case_orders.reverse();
        }
        visits.extend(case_orders.into_iter().flatten());
    }
    schedule
}

/// The order of one case in every round.
fn orders(cells: &[usize], rounds: usize, random: &mut SplitMix64) -> Vec<Vec<usize>> {
    let square = williams(cells.len());
    let mut orders = Vec::with_capacity(rounds);
    while orders.len() < rounds && !square.is_empty() {
        let mut rows = square.clone();
        random.shuffle(&mut rows);
        rows.truncate(rounds - orders.len());
        orders.extend(rows.into_iter().map(|row| {
            row.into_iter()
                .filter_map(|subject| cells.get(subject).copied())
                .collect()
        }));
    }
    orders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_squares() {
        assert!(williams(0).is_empty());
        assert_eq!(williams(1), [[0]]);
        assert_eq!(williams(2), [[0, 1], [1, 0]]);
        assert_eq!(williams(4), [[0, 1, 3, 2], [1, 2, 0, 3], [2, 3, 1, 0], [3, 0, 2, 1]]);
        assert_eq!(williams(3).len(), 6);
    }

    #[test]
    fn every_subject_follows_every_other_and_has_every_place_equally_often() {
        for k in 2..=12_usize {
            let rows = williams(k);
            let each = if k % 2 == 0 { 1 } else { 2 };
            assert_eq!(rows.len(), k * each, "k = {k}");
            let mut follows = vec![vec![0; k]; k];
            let mut places = vec![vec![0; k]; k];
            for row in &rows {
                let mut sorted = row.clone();
                sorted.sort_unstable();
                assert!(
                    sorted.into_iter().eq(0..k),
                    "k = {k}: {row:?} is no order of all subjects"
                );
                for pair in row.windows(2) {
                    follows[pair[0]][pair[1]] += 1;
                }
                for (place, subject) in row.iter().enumerate() {
                    places[*subject][place] += 1;
                }
            }
            for a in 0..k {
                for b in 0..k {
                    assert_eq!(follows[a][b], if a == b { 0 } else { each }, "k = {k}: {a} before {b}");
                    assert_eq!(places[a][b], each, "k = {k}: {a} at place {b}");
                }
            }
        }
    }

    #[test]
    fn two_subjects_go_there_and_back() {
        let layout = Layout::by_case(["x", "x"]);
        for seed in 0..20 {
            let rounds = schedule(&layout, 4, seed);
            for pair in rounds.chunks(2) {
                let reversed: Vec<usize> = pair[0].iter().rev().copied().collect();
                assert_eq!(pair[1], reversed, "A B B A or B A A B");
            }
        }
        let firsts: std::collections::BTreeSet<usize> = (0..20).map(|seed| schedule(&layout, 1, seed)[0][0]).collect();
        assert_eq!(firsts.len(), 2, "the seed decides who is first");
    }

    #[test]
    fn cases_turn_round_in_odd_rounds() {
        let layout = Layout::by_case(["a", "b", "a", "c", "b"]);
        assert_eq!(layout.groups(), [vec![0, 2], vec![1, 4], vec![3]]);
        let case_of = |cell: usize| layout.groups().iter().position(|case| case.contains(&cell));
        for (round, visits) in schedule(&layout, 5, 9).into_iter().enumerate() {
            let mut order: Vec<Option<usize>> = visits.into_iter().map(case_of).collect();
            order.dedup();
            let expected = if round % 2 == 0 { [0, 1, 2] } else { [2, 1, 0] };
            assert_eq!(order, expected.map(Some));
        }
    }

    proptest! {
        #[test]
        fn every_round_visits_every_cell_once(
            keys in proptest::collection::vec(0_u8..6, 0..30),
            rounds in 0_u32..14,
            seed in any::<u64>(),
        ) {
            let layout = Layout::by_case(keys.iter());
            prop_assert_eq!(layout.cells(), keys.len());
            let plan = schedule(&layout, rounds, seed);
            prop_assert_eq!(plan.len(), rounds as usize);
            prop_assert_eq!(&plan, &schedule(&layout, rounds, seed), "a seed replays");
            for visits in plan {
                let mut visits = visits;
                visits.sort_unstable();
                prop_assert!(visits.into_iter().eq(0..keys.len()));
            }
        }

        #[test]
        fn whole_squares_are_balanced_whatever_the_seed(k in 2_usize..=6, seed in any::<u64>()) {
            let rows = williams(k).len();
            let plan = schedule(&Layout::by_case(vec![(); k]), u32::try_from(2 * rows).unwrap_or(0), seed);
            let mut follows = vec![vec![0; k]; k];
            for visits in &plan {
                for pair in visits.windows(2) {
                    follows[pair[0]][pair[1]] += 1;
                }
            }
            let each = 2 * rows / k;
            for (a, row) in follows.iter().enumerate() {
                for (b, count) in row.iter().enumerate() {
                    prop_assert_eq!(*count, if a == b { 0 } else { each });
                }
            }
        }
    }
}
