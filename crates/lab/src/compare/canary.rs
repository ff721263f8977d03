//! The speed of the processor as the control, where two runs of one machine share no peer.

use super::Key;
use crate::result::{ResultRow, RunResult};
use crate::run::Mark;

/// What the canary says for each round of a row: its time for times, its speed for rates, and nothing (1) for what does not go by
/// the clock. `None` where a round has no canary.
pub(crate) fn control(run: &RunResult, key: &Key, row: &ResultRow) -> Option<Vec<f64>> {
    let power = match row.unit.as_str() {
        unit if unit == "s" || unit.starts_with("s/") => 1,
        unit if unit.ends_with("/s") => -1,
        _ => return Some(vec![1.0; row.values.len()]),
    };
    let superseded = Mark::Superseded.to_string();
    let mut rounds: Vec<(u32, f64)> = run
        .windows
        .iter()
        .filter(|window| {
            (&window.workload, &window.subject, &window.case) == (&key.workload, &key.subject, &key.case)
                && !window.marks.contains(&superseded)
        })
        .map(|window| {
            let times: Vec<f64> = window.canary.iter().map(|sample| sample.cpu_s).collect();
            (window.round, times.iter().sum::<f64>() / times.len() as f64)
        })
        .collect();
    rounds.sort_by_key(|(round, _)| *round);
    let usable = rounds.len() == row.values.len() && rounds.iter().all(|(_, time)| time.is_finite() && *time > 0.0);
    usable.then(|| rounds.iter().map(|(_, time)| time.powi(power)).collect())
}
