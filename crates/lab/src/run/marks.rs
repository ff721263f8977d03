//! What is written on a window that was disturbed, and when a round is worth repeating.

use std::fmt;

use crate::measure::Noise;
use crate::measure::canary::{self, MARK, SPOIL};
use crate::result::CanarySample;

/// A mark on a window. Marked windows stay in the file and, unless superseded, in the figures.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Mark {
    /// `canary`: clock speed beside the window was over 3 % off the median of its part of the run.
    Canary,
    /// `preempted`: the canary took 10 % longer on the wall than on the CPU, or the measuring thread lost its CPU more
    /// than 100 times a second.
    Preempted,
    /// `spoiled`: one of the causes is strong enough to repeat the round (canary over 10 %, steal over 5 %, quota over
    /// 1 % of the time, sleep, heat).
    Spoiled,
    /// `steal`: the hypervisor kept over 1 % of the machine.
    Steal,
    /// `superseded`: another version of this round is used in the figures.
    Superseded,
    /// `suspended`: the machine slept.
    Suspended,
    /// `swap`: memory came back from swap.
    Swap,
    /// `thermal`: a CPU slowed down because of heat.
    Thermal,
    /// `throttled`: a CPU quota held us back.
    Throttled,
}

impl Mark {
    /// The text in the result file.
    pub const fn code(self) -> &'static str {
        match self {
            Mark::Canary => "canary",
            Mark::Preempted => "preempted",
            Mark::Spoiled => "spoiled",
            Mark::Steal => "steal",
            Mark::Superseded => "superseded",
            Mark::Suspended => "suspended",
            Mark::Swap => "swap",
            Mark::Thermal => "thermal",
            Mark::Throttled => "throttled",
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Share of steal that marks, and share that spoils.
const STEAL: (f64, f64) = (0.01, 0.05);

/// Share of the visit lost to a quota that spoils; any loss marks.
const QUOTA: f64 = 0.01;

/// Sleep that counts: shorter differences are the two clocks read one after the other.
const SLEEP_S: f64 = 0.01;

/// Wall over CPU time of a canary, and preemptions a second, above which the thread had to share its CPU.
const SHARED: (f64, f64) = (1.10, 100.0);

/// Marks of one window, sorted: from the canary before and after, and the noise of the whole visit.
///
/// `visit_s` is the length of the visit that `noise` covers; `median` that of the part's canaries, without which
/// clock speed is not judged. Values themselves are never looked at: a window is marked for a cause, not for a result.
pub fn judge(canaries: &[CanarySample], median: Option<f64>, noise: &Noise, visit_s: f64) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut spoiled = false;
    let mut note = |mark: Mark, found: bool, strong: bool| {
        if found {
            marks.push(mark);
        }
        spoiled |= strong;
    };
    let off = median.map_or(0.0, |median| canary::deviation(canaries, median));
    note(Mark::Canary, off > MARK, off > SPOIL);
    let waited = canaries.iter().any(|sample| sample.wall_over_cpu > SHARED.0);
    let rate = noise
        .preemptions
        .filter(|_| visit_s > 0.0)
        .map_or(0.0, |count| count as f64 / visit_s);
    note(Mark::Preempted, waited || rate > SHARED.1, false);
    let steal = noise.steal.unwrap_or(0.0);
    note(Mark::Steal, steal > STEAL.0, steal > STEAL.1);
    let slept = noise.suspended_s.unwrap_or(0.0) > SLEEP_S;
    note(Mark::Suspended, slept, slept);
    note(Mark::Swap, noise.swap_ins.unwrap_or(0) > 0, false);
    let hot = noise.thermal.unwrap_or(0) > 0;
    note(Mark::Thermal, hot, hot);
    let lost = noise.throttled_s.unwrap_or(0.0);
    let held = lost > 0.0 || noise.throttled_periods.unwrap_or(0) > 0;
    note(Mark::Throttled, held, lost > QUOTA * visit_s);
    if spoiled {
        marks.push(Mark::Spoiled);
    }
    marks.sort_unstable();
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(cpu_s: f64, wall_over_cpu: f64) -> [CanarySample; 2] {
        [
            CanarySample {
                cpu_s: 1.0,
                wall_over_cpu: 1.0,
            },
            CanarySample { cpu_s, wall_over_cpu },
        ]
    }

    fn of(canaries: &[CanarySample], noise: Noise) -> Vec<Mark> {
        judge(canaries, Some(1.0), &noise, 1.0)
    }

    fn noise() -> Noise {
        Noise::default()
    }

    #[test]
    fn a_calm_window_and_an_unknown_machine_have_no_marks() {
        assert_eq!(of(&canary(1.029, 1.1), noise()), []);
        assert_eq!(judge(&canary(2.0, 1.0), None, &noise(), 1.0), []);
        let calm = Noise {
            steal: Some(0.01),
            preemptions: Some(100),
            throttled_s: Some(0.0),
            ..noise()
        };
        assert_eq!(of(&canary(1.0, 1.0), calm), []);
    }

    #[test]
    fn the_canary_marks_at_3_and_spoils_at_10_per_cent() {
        for (time, marks) in [
            (1.031, &[Mark::Canary][..]),
            (0.969, &[Mark::Canary]),
            (1.110, &[Mark::Canary]),
            (1.112, &[Mark::Canary, Mark::Spoiled]),
            (0.909, &[Mark::Canary, Mark::Spoiled]),
        ] {
            assert_eq!(of(&canary(time, 1.0), noise()), marks, "{time}");
        }
        assert_eq!(of(&canary(1.0, 1.11), noise()), [Mark::Preempted]);
    }

    #[test]
    fn causes() {
        let fine = canary(1.0, 1.0);
        let causes: [(fn(&mut Noise), &[Mark]); 8] = [
            (|noise| noise.steal = Some(0.02), &[Mark::Steal]),
            (|noise| noise.steal = Some(0.06), &[Mark::Spoiled, Mark::Steal]),
            (|noise| noise.preemptions = Some(101), &[Mark::Preempted]),
            (|noise| noise.suspended_s = Some(1.0), &[Mark::Spoiled, Mark::Suspended]),
            (|noise| noise.swap_ins = Some(1), &[Mark::Swap]),
            (|noise| noise.thermal = Some(1), &[Mark::Spoiled, Mark::Thermal]),
            (|noise| noise.throttled_periods = Some(1), &[Mark::Throttled]),
            (
                |noise| noise.throttled_s = Some(0.02),
                &[Mark::Spoiled, Mark::Throttled],
            ),
        ];
        for (cause, marks) in causes {
            let mut noise = noise();
            cause(&mut noise);
            assert_eq!(of(&fine, noise), marks, "{noise:?}");
        }
    }
}
