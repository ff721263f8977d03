//! What a run left behind: windows, noise, faults, repeats, and the warnings that follow from them.

use crate::measure::{Noise, WarningCode, canary};
use crate::result::{Case, Warning, Window};
use crate::run::{CellError, Mark};
use crate::stats::ends;
use crate::stats::latency::Tail;

/// Everything the runner saw. Valid at any moment, also after an interruption.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Timed windows in the order they ran, superseded ones included. `t` is the start of the visit, before the
    /// warm-up; `steal` and `preempted` cover the whole visit and are 0 where the system does not tell (see `noise`).
    pub windows: Vec<Window>,
    /// For each window, the index of its cell.
    pub cells: Vec<usize>,
    /// For each window, what went on in the machine during the visit.
    pub noise: Vec<Noise>,
    /// For each window, the length of the visit in seconds: warm-up, timed part and verification.
    pub visits_s: Vec<f64>,
    /// For each window, its latencies by name.
    pub(crate) tails: Vec<Vec<(&'static str, Tail)>>,
    /// Cells that gave an error. Each has stopped at its error.
    pub faults: Vec<Fault>,
    /// How often a round was done again for a case, with all its subjects.
    pub repeats: usize,
    /// Rounds finished, extra ones included.
    pub rounds: u32,
    /// Cells that there was no time to check: nothing was measured of them.
    pub left_out: Vec<usize>,
    /// True when the time was up before everything was done.
    pub out_of_time: bool,
    /// True when the user stopped the run before everything was done.
    pub interrupted: bool,
}

/// A cell that gave an error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Index of the cell.
    pub cell: usize,
    /// Name of the subject.
    pub subject: String,
    /// Parameters of the case.
    pub case: Case,
    /// Round of the error; `None` for the check before the first round.
    pub round: Option<u32>,
    /// What happened.
    pub error: CellError,
}

impl Outcome {
    /// Windows that count, for one cell, in the order they ran: superseded ones are left out, and a cell with a fault
    /// has none. Pair subjects by `round`, because an interrupted round lacks some of them.
    pub fn counted(&self, cell: usize) -> impl Iterator<Item = &Window> {
        let sound = self.fault(cell).is_none();
        self.windows
            .iter()
            .zip(&self.cells)
            .filter(move |(window, of)| sound && **of == cell && !window.has(Mark::Superseded.code()))
            .map(|(window, _)| window)
    }

    /// The latencies of a window called `name`.
    pub(crate) fn tail_of(&self, window: &Window, name: &str) -> Option<&Tail> {
        let place = self.windows.iter().position(|known| known.order == window.order)?;
        let mut tails = self.tails.get(place)?.iter();
        tails.find(|(of, _)| *of == name).map(|(_, tail)| tail)
    }

    /// The error of a cell, if it had one.
    pub fn fault(&self, cell: usize) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.cell == cell)
    }

    /// Distance of the slowest canary from the fastest over the median, a fraction; `None` with too few of them.
    pub fn canary_spread(&self) -> Option<f64> {
        let median = canary::median(canary::around(&self.windows))?;
        let times = canary::around(&self.windows).map(|sample| sample.cpu_s);
        let (low, high) = ends(times.filter(|time| time.is_finite()));
        Some((high - low) / median)
    }

    /// What a reader must know, from marks, faults and repeats: one warning a cause, with counts.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut found: Vec<Warning> = self.faults.iter().map(fault_warning).collect();
        for (mark, code, what) in CAUSES {
            let hits: Vec<usize> = (0..self.windows.len())
                .filter(|i| self.windows[*i].has(mark.code()))
                .collect();
            if hits.is_empty() {
                continue;
            }
            let worst = self.worst(*mark, &hits);
            let text = format!("{what} in {} of {} windows{worst}.", hits.len(), self.windows.len());
            found.push(code.warn("", &text));
        }
        let softirq: Vec<f64> = self.noise.iter().filter_map(|noise| noise.softirq).collect();
        let mean = softirq.iter().sum::<f64>() / softirq.len().max(1) as f64;
        if mean > SOFTIRQ {
            let text = format!(
                "Soft interrupts took {:.0} % of the machine during the windows.",
                mean * 100.0
            );
            found.push(WarningCode::Interrupts.warn("", &text));
        }
        if self.repeats > 0 {
            let text = format!(
                "{} rounds of single cases were repeated for a recorded cause.",
                self.repeats
            );
            found.push(WarningCode::Repeated.warn("", &text));
        }
        if !self.left_out.is_empty() {
            let text = format!("The time limit left no room for {} cells.", self.left_out.len());
            found.push(WarningCode::CasesDropped.warn("", &text));
        }
        if self.out_of_time {
            let text = format!("There was no time for another round after {}.", self.rounds);
            found.push(WarningCode::OutOfTime.warn("", &text));
        }
        if self.interrupted {
            let text = format!("The run was stopped after {} full rounds.", self.rounds);
            found.push(WarningCode::Interrupted.warn("", &text));
        }
        found
    }

    fn worst(&self, mark: Mark, hits: &[usize]) -> String {
        let most = |value: &dyn Fn(usize) -> f64| hits.iter().map(|i| value(*i)).fold(0.0, f64::max);
        match mark {
            Mark::Canary => {
                let strays = canary::strays(&self.windows);
                let off = strays.iter().map(|(_, off)| off.abs()).fold(0.0, f64::max);
                format!(", at worst {:.0} % off", off * 100.0)
            }
            Mark::Steal => format!(
                ", at worst {:.0} %",
                most(&|i| self.noise[i].steal.unwrap_or(0.0)) * 100.0
            ),
            Mark::Throttled => {
                format!(
                    ", at worst {:.2} s of a visit",
                    most(&|i| self.noise[i].throttled_s.unwrap_or(0.0))
                )
            }
            _ => String::new(),
        }
    }
}

/// Mean share of soft interrupts that is worth a word where nothing is sent: other work is going on.
const SOFTIRQ: f64 = 0.05;

const CAUSES: &[(Mark, WarningCode, &str)] = &[
    (
        Mark::Canary,
        WarningCode::Canary,
        "The CPU's speed was over 3 % off its median",
    ),
    (
        Mark::Preempted,
        WarningCode::Preempted,
        "The measuring thread had to wait for its CPU",
    ),
    (
        Mark::Steal,
        WarningCode::Steal,
        "The hypervisor kept over 1 % of the machine",
    ),
    (Mark::Suspended, WarningCode::Suspended, "The machine slept"),
    (Mark::Swap, WarningCode::Swap, "Memory came back from swap"),
    (
        Mark::Thermal,
        WarningCode::Thermal,
        "The CPU slowed down because of heat",
    ),
    (Mark::Throttled, WarningCode::Throttled, "A CPU quota held the lab back"),
];

fn fault_warning(fault: &Fault) -> Warning {
    let code = match fault.error {
        CellError::Wrong { .. } => WarningCode::CellWrong,
        CellError::Failed { .. } => WarningCode::CellFailed,
        CellError::Unavailable { .. } => WarningCode::CellUnavailable,
    };
    let when = match fault.round {
        None => "Before the first round".to_owned(),
        Some(round) => format!("In round {}", round.saturating_add(1)),
    };
    let text = fault.error.to_string();
    code.warn(
        &format!("{} {}", fault.subject, fault.case),
        &format!("{when}: {}.", text.trim_end_matches('.')),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_told_by_their_mean() {
        let noise = |softirq| Noise {
            softirq,
            ..Noise::default()
        };
        let of = |noise: Vec<Noise>| {
            Outcome {
                noise,
                ..Outcome::default()
            }
            .warnings()
        };
        assert!(of(vec![noise(Some(0.05)), noise(None)]).is_empty());
        let found = of(vec![noise(Some(0.02)), noise(Some(0.18)), noise(None)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, "interrupts");
        assert!(found[0].text.contains("10 %"), "{}", found[0].text);
    }

    #[test]
    fn an_unavailable_subject_has_its_own_code() {
        let error = CellError::unavailable("install it.");
        let fault = Fault {
            cell: 0,
            subject: "x".to_owned(),
            case: Case::new().with("n", 1_i64),
            round: None,
            error,
        };
        let found = Outcome {
            faults: vec![fault],
            ..Outcome::default()
        }
        .warnings();
        assert_eq!(found[0].code.as_str(), "cell-unavailable");
        assert_eq!(found[0].place.as_str(), "x n=1");
        assert!(
            found[0]
                .text
                .starts_with("Before the first round: not available: install it. Install")
        );
    }
}
