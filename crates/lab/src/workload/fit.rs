//! Fits the windows of cells to the time there is.

use std::time::Duration;

use super::LabError;
use crate::plan::{Layout, Overhead, Plan, Profile};
use crate::run::Cell;

/// A plan for `cells` that keeps `limit`, where a visit takes `stretch` times, at least once, as long as its warm-up and window.
///
/// # Errors
/// [`LabError::Plan`].
pub(crate) fn fit(
    profile: Profile,
    cells: &[Cell],
    overhead: Overhead,
    limit: Option<Duration>,
    stretch: f64,
) -> Result<Plan, LabError> {
    fit_from(Duration::ZERO, profile, cells, overhead, limit, stretch)
}

/// The same for cells whose windows are never shorter than `least`.
///
/// # Errors
/// [`LabError::Plan`].
pub(crate) fn fit_from(
    least: Duration,
    profile: Profile,
    cells: &[Cell],
    overhead: Overhead,
    limit: Option<Duration>,
    stretch: f64,
) -> Result<Plan, LabError> {
    let layout = Layout::by_case(cells.iter().map(|cell| cell.case.canonical()));
    let mut plan = Plan::new(
        least,
        profile,
        layout,
        overhead,
        limit.map(|limit| limit.div_f64(stretch)),
    )?;
    plan.expected = plan.expected.mul_f64(stretch);
    let timed = plan.warmup + plan.window;
    plan.visit = plan.visit.mul_f64(stretch).max(timed);
    plan.limit = limit.or(profile.limit());
    Ok(plan)
}
