//! What a program says of itself, held against what the lab has seen of it.

use std::time::Duration;

use crate::peer::Ended;

/// Share of the time asked for that a program must have counted.
const LEAST: f64 = 0.9;

/// Checks the seconds that a program says it counted: about those it was asked for, and no more than it lived.
///
/// # Errors
/// Why they cannot be, for the reader.
pub(super) fn seconds(claimed: f64, asked: u64, life: Duration) -> Result<(), String> {
    let life = life.as_secs_f64();
    if claimed >= asked as f64 * LEAST && claimed <= life {
        return Ok(());
    }
    Err(format!(
        "it says that it counted for {claimed:.3} s; it was asked for {asked} s, and ended after {life:.3} s"
    ))
}

/// CPU seconds of whole lives, all together.
///
/// # Errors
/// That the system does not tell.
pub(super) fn cpu(lives: &[&Ended]) -> Result<f64, String> {
    let times: Option<Vec<Duration>> = lives.iter().map(|ended| ended.cpu).collect();
    let sum: Duration = times.ok_or("the system does not tell its CPU time")?.iter().sum();
    if sum.is_zero() {
        return Err("it used no CPU time: another program did the work".to_owned());
    }
    Ok(sum.as_secs_f64())
}

/// The first characters of what a program wrote, for an error.
pub(super) fn quoted(text: &str) -> String {
    let start: String = text.chars().take(80).collect();
    format!("{start:?}")
}
