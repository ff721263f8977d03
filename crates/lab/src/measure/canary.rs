//! The canary: a fixed piece of work before and after every window that shows when the machine changed.
//!
//! Its CPU time gives the relative clock speed, wall over CPU time gives preemption. It needs no right and no counter,
//! so it works in any virtual machine.

use std::hint::black_box;
use std::time::Instant;

use crate::measure::clock;
use crate::result::{CanarySample, Window};
use crate::stats;

/// CPU time one run of the canary should take, seconds.
pub const TARGET_S: f64 = 0.005;

/// Steps whose CPU time a sample gives, however many were run: each run calibrates by itself, and what a machine has become
/// slower by shows only where samples of all runs are of one number. It takes about [`TARGET_S`] at 4 GHz.
const STEPS: f64 = 4e6;

/// Deviation of a canary from the median of its part of the run that marks a window, as a fraction.
pub const MARK: f64 = 0.03;

/// Deviation of a canary from that median that spoils a round, as a fraction.
pub const SPOIL: f64 = 0.10;

/// A loop of a fixed number of multiplications, each waiting for the one before.
///
/// The count is set once by [`Canary::calibrate`] and then stays, so that a visit takes the same time throughout a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Canary {
    steps: u64,
}

impl Canary {
    /// Finds the number of steps that takes about [`TARGET_S`] here. Takes some 30 ms.
    pub fn calibrate() -> Self {
        Self::calibrate_with(TARGET_S, |steps| timed(steps).cpu_s)
    }

    /// [`Canary::calibrate`] with a given meter: `time` runs that many steps and returns seconds.
    pub fn calibrate_with(target_s: f64, mut time: impl FnMut(u64) -> f64) -> Self {
        const FIRST: u64 = 100_000;
        const BOUNDS: (f64, f64) = (1_000.0, 1e9);
        let mut steps = FIRST;
        // The shortest of several, because every disturbance makes it longer; twice, so that a CPU that was asleep at
        // first is up to speed in the second pass.
        for _ in 0..2 {
            let best = (0..3).map(|_| time(steps)).fold(f64::INFINITY, f64::min);
            if best > 0.0 && best.is_finite() {
                steps = (steps as f64 * target_s / best).clamp(BOUNDS.0, BOUNDS.1) as u64;
            }
        }
        Self { steps }
    }

    /// Runs once on the calling thread. The CPU time is that of 4,000,000 steps, so samples of several runs compare.
    ///
    /// Without a thread CPU clock, `cpu_s` is wall time and `wall_over_cpu` is 0 for "not known".
    pub fn run(&self) -> CanarySample {
        let sample = timed(self.steps);
        CanarySample {
            cpu_s: sample.cpu_s * STEPS / self.steps as f64,
            ..sample
        }
    }
}

/// What so many steps took.
fn timed(steps: u64) -> CanarySample {
    let wall = Instant::now();
    let cpu = clock::thread_cpu();
    black_box(chain(black_box(0x9e37_79b9_7f4a_7c15), steps));
    let cpu = cpu.and_then(|start| clock::thread_cpu()?.checked_sub(start));
    let wall_s = wall.elapsed().as_secs_f64();
    match cpu.map(|time| time.as_secs_f64()) {
        Some(cpu_s) if cpu_s > 0.0 => CanarySample {
            cpu_s,
            wall_over_cpu: wall_s / cpu_s,
        },
        _ => CanarySample {
            cpu_s: wall_s,
            wall_over_cpu: 0.0,
        },
    }
}

/// `steps` multiplications in a row, each needing the last result.
///
/// The factor depends on the state, so no compiler can fold two steps into one.
#[inline(never)]
fn chain(start: u64, steps: u64) -> u64 {
    let mut state = start;
    for _ in 0..steps {
        state = state.wrapping_mul(state | 1).wrapping_add(0xd1b5_4a32_d192_ed03);
    }
    state
}

/// The canaries before and after windows; one between two windows is of both.
pub fn around(windows: &[Window]) -> impl Iterator<Item = &CanarySample> {
    windows.iter().flat_map(|window| &window.canary)
}

/// The parts of a run, by its windows in the order that they ran: its workloads, or the steps of a recipe, one after the other.
///
/// What is compared with each other is of one part. So each has a median of its own: a machine that is slower from one part to the
/// next disturbs neither.
fn parts(windows: &[Window]) -> impl Iterator<Item = &[Window]> {
    windows.chunk_by(|one, next| one.workload == next.workload && one.round <= next.round)
}

/// When and how far the speed was off the median of its part of the run, for each canary around windows: the fraction of
/// [`deviation`], below 0 where it was slower. Parts with too few canaries for a median are left out.
pub fn strays(windows: &[Window]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for part in parts(windows) {
        let Some(median) = median(around(part)) else { continue };
        for window in part {
            found.extend(window.canary.iter().map(|sample| (window.t, off(sample, median))));
        }
    }
    found.retain(|(t, off)| t.is_finite() && off.is_finite());
    found
}

/// Distance of the speed of a sample from that of `median`, as a fraction of it: above 0 where it is faster.
fn off(sample: &CanarySample, median: f64) -> f64 {
    median / sample.cpu_s - 1.0
}

/// Median CPU time of some canaries, seconds; `None` below three, where a median says nothing about a deviation.
pub fn median<'a>(samples: impl IntoIterator<Item = &'a CanarySample>) -> Option<f64> {
    let times: Vec<f64> = samples
        .into_iter()
        .map(|sample| sample.cpu_s)
        .filter(|time| time.is_finite() && *time > 0.0)
        .collect();
    if times.len() < 3 { None } else { stats::median(&times) }
}

/// Largest distance of the speed of `samples` from that of `median`, as a fraction of it, slower or faster alike.
pub fn deviation(samples: &[CanarySample], median: f64) -> f64 {
    samples
        .iter()
        .map(|sample| off(sample, median).abs())
        .filter(|d| d.is_finite())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn sample(cpu_s: f64) -> CanarySample {
        CanarySample {
            cpu_s,
            wall_over_cpu: 1.0,
        }
    }

    #[test]
    fn calibration_reaches_the_target() {
        // 2 ns a step, and the first readings are slow as on a CPU that wakes up.
        let mut call = 0;
        let canary = Canary::calibrate_with(0.005, |steps| {
            call += 1;
            steps as f64 * if call < 4 { 8e-9 } else { 2e-9 }
        });
        assert_eq!(canary.steps, 2_500_000);
    }

    #[test]
    fn calibration_survives_a_broken_clock() {
        assert_eq!(Canary::calibrate_with(0.005, |_| 0.0).steps, 100_000);
        assert_eq!(Canary::calibrate_with(0.005, |_| f64::NAN).steps, 100_000);
        assert_eq!(Canary::calibrate_with(0.005, |_| 1e-300).steps, 1_000_000_000);
        assert_eq!(Canary::calibrate_with(0.005, |_| 1e300).steps, 1_000);
    }

    #[test]
    fn median_and_deviation() {
        assert_eq!(median(&[sample(1.0), sample(2.0)]), None);
        assert_eq!(median(&[sample(3.0), sample(1.0), sample(2.0)]), Some(2.0));
        assert_eq!(median(&[sample(4.0), sample(1.0), sample(2.0), sample(3.0)]), Some(2.5));
        assert_eq!(median(&[sample(f64::NAN), sample(1.0), sample(0.0)]), None);
        assert!((deviation(&[sample(0.8), sample(1.05)], 1.0) - 0.25).abs() < 1e-12);
        assert!((deviation(&[sample(1.25)], 1.0) - 0.2).abs() < 1e-12);
        assert_eq!(deviation(&[sample(f64::NAN)], 1.0), 0.0);
        assert_eq!(deviation(&[], 1.0), 0.0);
    }

    /// Windows of a workload, one in each round, with the time of the canary around each.
    fn windows(workload: &str, times: &[f64]) -> Vec<Window> {
        let window = |(round, time): (u32, &f64)| Window {
            workload: workload.to_owned(),
            round,
            canary: vec![sample(*time); 2],
            ..Window::default()
        };
        (0..).zip(times).map(window).collect()
    }

    #[test]
    fn each_part_of_a_run_has_its_own_median() {
        let worst = |windows: &[Window]| {
            strays(windows)
                .iter()
                .fold(0.0, |most: f64, (_, off)| most.max(off.abs()))
        };
        let run = |parts: [Vec<Window>; 2]| parts.concat();
        // The second part is a tenth slower than the first.
        let calm = run([windows("a", &[1.0; 3]), windows("b", &[1.1; 3])]);
        assert_eq!((parts(&calm).count(), worst(&calm)), (2, 0.0));
        // So are two steps with the same workload.
        let steps = run([windows("a", &[1.0; 3]), windows("a", &[1.1; 3])]);
        assert_eq!((parts(&steps).count(), worst(&steps)), (2, 0.0));
        let restless = run([windows("a", &[1.0, 1.0, 0.8]), windows("b", &[1.1; 3])]);
        assert!((worst(&restless) - 0.25).abs() < 1e-12);
        assert_eq!(strays(&restless).len(), 12);
        assert!(strays(&windows("a", &[1.0])).is_empty(), "two canaries have no median");
    }

    #[test]
    fn the_chain_is_a_chain() {
        let steps = |n| chain(7, n);
        assert_eq!(steps(0), 7);
        assert_eq!(steps(1), 7_u64.wrapping_mul(7).wrapping_add(0xd1b5_4a32_d192_ed03));
        assert_eq!(chain(steps(10), 10), steps(20));
    }

    #[test]
    fn samples_compare_whatever_a_run_has_calibrated() {
        // The shortest of several: whatever else runs here makes one longer.
        let shortest = |steps| {
            (0..9)
                .map(|_| Canary { steps }.run().cpu_s)
                .fold(f64::INFINITY, f64::min)
        };
        let ratio = shortest(100_000) / shortest(3_200_000);
        assert!((0.25..4.0).contains(&ratio), "{ratio}: unscaled it were 1/32");
    }

    #[test]
    fn a_real_run_reports_time() {
        let sample = Canary { steps: 1_000_000 }.run();
        assert!(sample.cpu_s > 0.0 && sample.wall_over_cpu.is_finite());
    }
}
