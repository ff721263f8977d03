//! How calm the machine was while the windows behind a claim ran.

use crate::result::{Case, ResultRow, RunResult, Window};

/// Marks of windows in which something else had a part in the figures.
const DISTURBED: [&str; 7] = [
    "canary",
    "preempted",
    "steal",
    "suspended",
    "swap",
    "thermal",
    "throttled",
];

/// Share of disturbed windows that medians over nine rounds can bear.
const BEARABLE: f64 = 0.2;

/// The windows behind a claim.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Calm {
    /// How many.
    pub(crate) windows: usize,
    /// Those of them with a recorded disturbance.
    pub(crate) marked: usize,
}

impl Calm {
    /// Of the windows of these cases and subjects.
    pub(crate) fn of(run: &RunResult, rests_on: &[(Case, String)]) -> Calm {
        let has = |window: &Window, mark: &str| window.marks.iter().any(|found| found == mark);
        let behind = |window: &&Window| {
            let mut rests_on = rests_on.iter();
            !has(window, "superseded")
                && rests_on.any(|(case, subject)| *case == window.case && *subject == window.subject)
        };
        let mut calm = Calm::default();
        for window in run.windows.iter().filter(behind) {
            calm.windows += 1;
            calm.marked += usize::from(DISTURBED.iter().any(|mark| has(window, mark)));
        }
        calm
    }

    /// Of the windows of these rows.
    pub(crate) fn of_rows<'a>(run: &RunResult, rows: impl Iterator<Item = &'a ResultRow>) -> Calm {
        let rests_on: Vec<(Case, String)> = rows.map(|row| (row.case.clone(), row.subject.clone())).collect();
        Calm::of(run, &rests_on)
    }

    /// Whether so many were disturbed that the claim cannot be clear.
    pub(crate) fn disturbed(&self) -> bool {
        self.marked as f64 > BEARABLE * self.windows as f64
    }
}
