//! The clocks: wall time, CPU time of this thread and process, and what reading them costs.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::measure::warning::WarningCode;
use crate::result::Warning;

/// CPU time the calling thread has used, user and system; `None` where the system has no such clock.
pub fn thread_cpu() -> Option<Duration> {
    duration(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
}

/// CPU time all threads of this process have used, finished ones included; `None` where there is no such clock.
pub fn process_cpu() -> Option<Duration> {
    duration(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

/// Time since boot that the monotonic clock did not count because the machine slept.
///
/// A window in which this grew was interrupted. `None` where the two clocks do not both exist.
pub fn suspended() -> Option<Duration> {
    let monotonic = duration(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))?;
    let boot = duration(rustix::time::clock_gettime(rustix::time::ClockId::Boottime))?;
    boot.checked_sub(monotonic)
}

fn duration(time: rustix::time::Timespec) -> Option<Duration> {
    Some(Duration::new(
        u64::try_from(time.tv_sec).ok()?,
        u32::try_from(time.tv_nsec).ok()?,
    ))
}

/// What a reading of the wall clock costs and how fine it is.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ClockFacts {
    /// Mean cost of one reading in the best batch, nanoseconds.
    pub cost_ns: f64,
    /// Smallest difference seen between two readings that differ, nanoseconds; 0 when none ever differed.
    pub step_ns: u64,
}

/// Readings in a batch: enough to see the step of a clock that moves every few microseconds.
const BATCH: u32 = 10_000;

/// Measures the clock itself. Takes a few milliseconds.
pub fn examine() -> ClockFacts {
    let start = Instant::now();
    examine_with(|| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// [`examine`] with any source of nanoseconds.
pub fn examine_with(mut read: impl FnMut() -> u64) -> ClockFacts {
    let mut cost_ns = f64::INFINITY;
    let mut step_ns = u64::MAX;
    // The best of several batches: anything that disturbs a batch can only make it look dearer.
    for _ in 0..5 {
        let first = read();
        let mut last = first;
        for _ in 0..BATCH {
            let now = read();
            let step = now.saturating_sub(last);
            if step > 0 {
                step_ns = step_ns.min(step);
            }
            last = now;
        }
        cost_ns = cost_ns.min(last.saturating_sub(first) as f64 / f64::from(BATCH));
    }
    ClockFacts {
        cost_ns,
        step_ns: if step_ns == u64::MAX { 0 } else { step_ns },
    }
}

/// The kernel's clock source (`tsc`, `arch_sys_counter`, `hpet`, …) below `root`; `None` where it is not told.
pub fn clocksource(root: &Path) -> Option<String> {
    let path = root.join("sys/devices/system/clocksource/clocksource0/current_clocksource");
    let name = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// True for sources that are a counter of the CPU itself, read without entering the kernel.
pub fn is_direct(clocksource: &str) -> bool {
    matches!(
        clocksource,
        "tsc" | "arch_sys_counter" | "riscv_clocksource" | "timebase" | "tod"
    )
}

/// The clock's warnings: a clock source that is not the CPU's counter, or steps too coarse for short windows.
pub fn warnings(facts: &ClockFacts, clocksource: Option<&str>) -> Vec<Warning> {
    let mut found = Vec::new();
    if let Some(name) = clocksource
        && !is_direct(name)
    {
        let text = format!(
            "The kernel takes time from {name}; a reading costs {:.0} ns.",
            facts.cost_ns
        );
        found.push(WarningCode::Clocksource.warn("clock", &text));
    }
    // A step over 10 us is over 1 in 10,000 of the shortest window that is used (0.1 s).
    if facts.step_ns == 0 || facts.step_ns > 10_000 {
        let text = format!("The clock moves in steps of {} ns.", facts.step_ns);
        found.push(WarningCode::CoarseClock.warn("clock", &text));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn facts(cost_ns: f64, step_ns: u64) -> ClockFacts {
        ClockFacts { cost_ns, step_ns }
    }

    #[test]
    fn cost_and_step_of_a_scripted_clock() {
        // Every reading takes 30 ns, the display moves in steps of 100 ns.
        let mut real = 0;
        let facts = examine_with(|| {
            real += 30;
            real / 100 * 100
        });
        assert_eq!(facts.step_ns, 100);
        assert!((facts.cost_ns - 30.0).abs() < 0.1, "{facts:?}");
    }

    #[test]
    fn a_clock_that_stands_still_or_runs_back() {
        assert_eq!(examine_with(|| 5), facts(0.0, 0));
        let mut time = u64::from(BATCH) * 10;
        let facts = examine_with(|| {
            time -= 1;
            time
        });
        assert_eq!(facts.step_ns, 0);
    }

    #[test]
    fn sources() {
        let fine = facts(20.0, 10);
        assert!(warnings(&fine, Some("tsc")).is_empty());
        assert!(warnings(&fine, None).is_empty());
        let found = warnings(&fine, Some("hpet"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, "clocksource");
        assert!(found[0].text.contains("hpet"));
        assert_eq!(warnings(&facts(20.0, 1_000_000), None)[0].code, "coarse-clock");
    }

    #[test]
    fn own_clocks_exist_and_rise() {
        let (thread, process) = (thread_cpu().unwrap(), process_cpu().unwrap());
        std::hint::black_box((0..100_000_u64).fold(1, |x: u64, y| x.wrapping_mul(y | 1)));
        assert!(thread_cpu().unwrap() >= thread);
        assert!(process_cpu().unwrap() >= process);
    }
}
