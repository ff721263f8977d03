//! Which rounds the values of a row are of.

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{ResultRow, RunResult, Window};
use crate::run::Mark;

/// Values of two rows in the rounds that both have. `None` where the windows do not tell which these are: two parts of a
/// run share no rounds, and a result may have been stored without windows.
pub(super) fn paired(run: &RunResult, [over, under]: [&ResultRow; 2]) -> Option<[Vec<f64>; 2]> {
    if (&over.workload, &over.workload_def) != (&under.workload, &under.workload_def) {
        return None;
    }
    let (over, under) = (by_round(run, over)?, by_round(run, under)?);
    let common = over
        .iter()
        .filter_map(|(round, value)| Some((*value, *under.get(round)?)));
    let (over, under) = common.unzip();
    Some([over, under])
}

/// The values of a row by round. A row has a place for each round that counts of any subject of its case; which these are
/// differs from case to case, for each repeats its own spoiled rounds under new numbers.
fn by_round(run: &RunResult, row: &ResultRow) -> Option<BTreeMap<u32, f64>> {
    let superseded = Mark::Superseded.to_string();
    // A subject that failed has windows and no rows, and no places either.
    let counts = |window: &Window| {
        run.results.iter().any(|known| {
            (&known.subject, &known.workload, &known.workload_def)
                == (&window.subject, &row.workload, &row.workload_def)
                && known.case == row.case
        })
    };
    let rounds: BTreeSet<u32> = part(run, row)?
        .into_iter()
        .filter(|window| window.case == row.case && !window.marks.contains(&superseded) && counts(window))
        .map(|window| window.round)
        .collect();
    let values = row.values.iter().map(|value| value.get());
    (rounds.len() == row.values.len()).then(|| rounds.into_iter().zip(values).collect())
}

/// The windows of the part of the run that a row is of. Windows do not say which definition they follow; where a workload
/// ran several times, with others between, its definitions stand in the same order as their windows.
fn part<'r>(run: &'r RunResult, row: &ResultRow) -> Option<Vec<&'r Window>> {
    let mut definitions: Vec<&str> = Vec::new();
    for known in run.results.iter().filter(|known| known.workload == row.workload) {
        if !definitions.contains(&known.workload_def.as_str()) {
            definitions.push(&known.workload_def);
        }
    }
    let mut windows: Vec<&Window> = run.windows.iter().collect();
    windows.sort_by_key(|window| window.order);
    let parts: Vec<&[&Window]> = windows
        .chunk_by(|one, next| one.workload == next.workload)
        .filter(|part| part.iter().all(|window| window.workload == row.workload))
        .collect();
    let at = definitions.iter().position(|known| *known == row.workload_def)?;
    (parts.len() == definitions.len()).then(|| parts[at].to_vec())
}
