//! How calm the machine was while the windows behind a claim ran.

use std::collections::BTreeSet;

use crate::format::count;
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
        Calm::behind(run, rests_on.iter().map(|(case, subject)| (case, subject.as_str())))
    }

    /// Of the windows of these rows.
    pub(crate) fn of_rows<'a>(run: &'a RunResult, rows: impl Iterator<Item = &'a ResultRow>) -> Calm {
        Calm::behind(run, rows.map(|row| (&row.case, row.subject.as_str())))
    }

    fn behind<'a>(run: &'a RunResult, claims: impl Iterator<Item = (&'a Case, &'a str)>) -> Calm {
        let claims: BTreeSet<(&Case, &str)> = claims.collect();
        let behind =
            |window: &&Window| !window.has("superseded") && claims.contains(&(&window.case, window.subject.as_str()));
        let mut calm = Calm::default();
        for window in run.windows.iter().filter(behind) {
            calm.windows += 1;
            calm.marked += usize::from(DISTURBED.iter().any(|mark| window.has(mark)));
        }
        calm
    }

    /// Whether so many were disturbed that the claim cannot be clear.
    pub(crate) fn disturbed(&self) -> bool {
        self.marked as f64 > BEARABLE * self.windows as f64
    }

    /// Whether so many were that the claim rests on disturbances.
    pub(crate) fn mostly_disturbed(&self) -> bool {
        self.marked * 2 > self.windows
    }

    /// How many were disturbed: `all 8 measurements`, `2 of 9 measurements`.
    pub(crate) fn share(&self) -> String {
        let all = count(self.windows, "measurement");
        if self.marked == self.windows {
            format!("all {all}")
        } else {
            format!("{} of {all}", self.marked)
        }
    }
}
